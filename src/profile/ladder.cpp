// SPDX-License-Identifier: Apache-2.0
#include "profile/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/env.h"
#include "cpu/buffer.h"
#include "cpu/describe.h"
#include "engine/inside.h"
#include "gpu/open.h"
#include "plan/choose.h"
#include "profile/gpu_ladder.h"
#include "profile/ladder_parts.h"
#include "profile/sampling.h"

namespace ingot {

namespace profile {

namespace {

using Bytes = cpu::Buffer<char>;

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
  const auto reference = reference_of(problem, std::max(1, device.cpu.threads));
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
    judge(problem, *reference, subject.rung, bench.arguments.y, result);
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
  for (std::size_t k = 0; k < timed.size(); ++k) {
    RungResult& result = ladder.rungs[timed[k]];
    result.time = summarize(std::move((*samples)[k]));
    compare_again(benches[timed[k]], result);
  }
  set_speedups(ladder);
  return ladder;
}

}  // namespace profile

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
    if (const auto gpu = EngineInside::gpu(engine)) return profile::bench_gpu(gpu, *problem, options);
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

Result<Tuning> tune(const Engine& engine, const Mlp& mlp, std::int64_t tokens, const BenchOptions& options) {
  try {
    if (auto ok = validate(mlp, tokens); !ok) return ok.error();
    if (tokens < 1) return Error{ErrorCode::invalid_argument, "tokens: give 1 or more to tune for"};
    const auto gpu = EngineInside::gpu(engine);
    if (gpu == nullptr) {
      return Error{ErrorCode::unsupported, "tuning measures kernels of a GPU: open the engine with cuda"};
    }
    const auto problem = profile::Problem::make(mlp, tokens, options.layout, options.seed);
    if (!problem) return problem.error();
    auto found = profile::tune_gpu(gpu, *problem, options);
    if (!found) return found.error();
    if (auto ok =
            gpu::store_tuning(base::read_environment(), gpu->device->description().name, found->choices);
        !ok) {
      return ok.error();
    }
    return std::move(found->tuning);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to tune"};
  }
}

}  // namespace ingot
