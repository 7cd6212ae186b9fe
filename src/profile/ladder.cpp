// SPDX-License-Identifier: Apache-2.0
#include "profile/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "cpu/buffer.h"
#include "cpu/describe.h"
#include "cpu/reference.h"
#include "plan/choose.h"
#include "profile/sampling.h"

namespace ingot {

namespace profile {

namespace {

using Bytes = cpu::Buffer<char>;

// Multiply-adds in float64 the check may take, and how few rows still make one.
constexpr double check_budget = 3e9;
constexpr std::int64_t least_rows = 4, most_rows = 32;

std::int64_t rows_to_check(const Mlp& mlp) {
  const double per_row = 3 * flops(mlp, 1) / 2;  // the definition and two yardsticks
  return std::clamp(static_cast<std::int64_t>(check_budget / per_row), least_rows, most_rows);
}

Floor floor_of(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device) {
  Floor floor{.flops = flops(mlp, tokens), .bytes = least_bytes(mlp, tokens)};
  if (device.kind == DeviceKind::cpu) {
    floor.compute_us = 1e6 * floor.flops / device.cpu.gemm_flops_per_s;
    floor.memory_us = 1e6 * floor.bytes / device.cpu.memory_bytes_per_s;
  }
  return floor;
}

/// Output and workspace of one rung, and how to run it.
struct Bench {
  const Subject* subject = nullptr;
  RunArguments arguments;
  Bytes y, workspace;
  std::vector<char> first;  ///< bytes of the checked rows after the first run

  Result<void> run() const { return subject->prepared.run(arguments); }
};

Result<Bench> make_bench(const Problem& problem, const Subject& subject) {
  const std::size_t element = size_of(problem.mlp().dtype);
  Bench bench;
  bench.subject = &subject;
  const std::size_t size = static_cast<std::size_t>(problem.tokens() * problem.mlp().dim) * element;
  const std::size_t needed = subject.prepared.workspace_bytes(problem.tokens());
  bench.y = Bytes::allocate(size);
  bench.workspace = Bytes::allocate(needed);
  if (bench.y.data() == nullptr || bench.workspace.data() == nullptr) {
    return Error{ErrorCode::out_of_memory, fmt::format("not enough memory for the output and workspace of {}",
                                                       to_string(subject.rung))};
  }
  // Not-a-number everywhere: a value that is never written cannot pass the check.
  std::memset(bench.y.data(), 0xff, size);
  bench.arguments = {.tokens = problem.tokens(),
                     .x = problem.x(),
                     .x_row_stride = problem.mlp().dim,
                     .y = bench.y.data(),
                     .y_row_stride = problem.mlp().dim,
                     .workspace = bench.workspace.data(),
                     .workspace_bytes = needed,
                     .stream = {}};
  return bench;
}

void check(const Problem& problem, const cpu::Reference& reference, const Bench& bench, RungResult& result) {
  const Rung rung = bench.subject->rung;
  const cpu::Verdict verdict =
      cpu::judge(problem.mlp(), reference, rung, bench.arguments.y, bench.arguments.y_row_stride);
  result.error = verdict.error;
  result.framework_error = verdict.framework_error;
  result.bound = verdict.bound;
  result.ok = verdict.ok;
  if (!verdict.ok) result.reason = verdict.reason;
}

void compare_again(const Bench& bench, RungResult& result) {
  if (std::memcmp(bench.first.data(), bench.y.data(), bench.y.bytes()) == 0) return;
  result.ok = false;
  result.reason = "two runs on the same input gave different bits";
}

}  // namespace

Result<Ladder> run_ladder(const Problem& problem, const std::vector<Subject>& subjects,
                          const DeviceDescription& device, const BenchOptions& options, Timer& timer) {
  const Mlp& mlp = problem.mlp();
  const auto tell = [&](double fraction, const std::string& what) {
    if (options.progress) options.progress(fraction, what);
  };
  Ladder ladder{.device = device,
                .mlp = mlp,
                .tokens = problem.tokens(),
                .numerics = options.numerics,
                .layout = problem.layout(),
                .seed = options.seed,
                .floor = floor_of(mlp, problem.tokens(), device),
                .rungs = {}};
  tell(0, "float64 reference");
  auto pool = cpu::ThreadPool::create(std::max(1, device.cpu.threads));
  if (!pool) return pool.error();
  const auto reference = cpu::reference(mlp, problem.weights(), problem.x(), mlp.dim,
                                        cpu::spread_rows(problem.tokens(), rows_to_check(mlp)), **pool);
  if (!reference) return reference.error();

  std::vector<Bench> benches;
  for (const Subject& subject : subjects) {
    tell(0, fmt::format("checking {}", to_string(subject.rung)));
    auto plan = subject.prepared.plan(problem.tokens());
    if (!plan) return plan.error();
    auto made = make_bench(problem, subject);
    if (!made) return made.error();
    Bench bench = std::move(made).value();
    if (auto ran = bench.run(); !ran) return ran.error();
    RungResult result;
    result.candidate = plan->chosen;
    check(problem, *reference, bench, result);
    bench.first.assign(bench.y.data(), bench.y.data() + bench.y.bytes());
    ladder.rungs.push_back(std::move(result));
    benches.push_back(std::move(bench));
  }

  std::vector<Work> works;
  std::vector<std::size_t> timed;
  for (std::size_t i = 0; i < benches.size(); ++i) {
    if (!ladder.rungs[i].ok) continue;  // a wrong result has no time worth knowing
    works.emplace_back([&bench = benches[i]] { return bench.run(); });
    timed.push_back(i);
  }
  const SamplingLimits limits{.samples = options.samples,
                              .least_seconds = options.least_seconds,
                              .most_seconds = options.most_seconds};
  auto samples = sample(works, timer, limits, [&](double fraction) { tell(fraction, "timing"); });
  if (!samples) return samples.error();
  std::optional<double> unfused_us;
  for (std::size_t k = 0; k < timed.size(); ++k) {
    RungResult& result = ladder.rungs[timed[k]];
    result.time = summarize(std::move((*samples)[k]));
    compare_again(benches[timed[k]], result);
    if (result.candidate.rung == Rung::unfused && result.ok) unfused_us = result.time.median_us;
  }
  for (RungResult& result : ladder.rungs) {
    if (unfused_us && result.ok && result.time.median_us > 0)
      result.speedup = *unfused_us / result.time.median_us;
  }
  return ladder;
}

}  // namespace profile

bool Ladder::ok() const {
  return std::all_of(rungs.begin(), rungs.end(), [](const RungResult& result) { return result.ok; });
}

namespace {

/// What the ladder will allocate, against what the machine has left: an allocation that overcommits succeeds
/// and the process dies later.
Result<void> check_memory(const Mlp& mlp, std::int64_t tokens,
                          const std::vector<profile::Subject>& subjects) {
  double need = 0;
  const double y =
      static_cast<double>(tokens) * static_cast<double>(mlp.dim) * static_cast<double>(size_of(mlp.dtype));
  for (const profile::Subject& subject : subjects) {
    need += static_cast<double>(subject.prepared.workspace_bytes(tokens)) + 2 * y;
  }
  const double have = static_cast<double>(cpu::available_memory());
  if (have == 0 || need < have) return {};
  return Error{ErrorCode::out_of_memory,
               fmt::format("{} tokens of {} need {:.1f} GiB beside the weights, {:.1f} GiB are free", tokens,
                           to_string(mlp), need / 0x1p30, have / 0x1p30)};
}

}  // namespace

Result<Ladder> bench(const Engine& engine, const Mlp& mlp, std::int64_t tokens, const BenchOptions& options) {
  try {
    if (auto ok = validate(mlp, tokens); !ok) return ok.error();
    if (tokens == 0)
      return Error{ErrorCode::invalid_argument, "tokens: 0 leaves nothing to time, give 1 or more"};
    const double need = profile::Problem::bytes(mlp, tokens);
    const double have = static_cast<double>(cpu::available_memory());
    if (have > 0 && need > have) {
      return Error{ErrorCode::out_of_memory,
                   fmt::format("weights and inputs of {} take {:.1f} GiB, {:.1f} GiB are free",
                               to_string(mlp), need / 0x1p30, have / 0x1p30)};
    }
    const auto problem = profile::Problem::make(mlp, tokens, options.layout, options.seed);
    if (!problem) return problem.error();
    const bool packed = options.layout != GateLayout::separate;
    const Choice choice =
        choose(mlp, tokens, engine.device(), {.numerics = options.numerics, .rung = {}, .packed = packed});
    std::vector<profile::Subject> subjects;
    for (std::size_t i = 0; i < rung_count; ++i) {
      const Rung rung = static_cast<Rung>(i);
      const auto& asked = options.rungs;
      if (asked.empty() && choice.candidates[i].rejected == Rejection::not_on_device) continue;
      if (!asked.empty() && std::find(asked.begin(), asked.end(), rung) == asked.end()) continue;
      auto prepared = engine.prepare(mlp, problem->weights(), {.numerics = options.numerics, .rung = rung});
      if (!prepared) return prepared.error();
      subjects.push_back({rung, std::move(prepared).value()});
    }
    if (auto ok = check_memory(mlp, tokens, subjects); !ok) return ok.error();
    profile::SteadyTimer timer;
    auto ladder = profile::run_ladder(*problem, subjects, engine.device(), options, timer);
    if (!ladder) return ladder;
    for (RungResult& result : ladder->rungs) {
      result.chosen = choice.found && result.candidate.rung == choice.rung;
    }
    return ladder;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory for the ladder"};
  }
}

}  // namespace ingot
