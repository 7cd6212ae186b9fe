// SPDX-License-Identifier: Apache-2.0
#include "profile/gpu_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "plan/choose.h"
#include "profile/ladder_parts.h"
#include "profile/sampling.h"

namespace ingot::profile {

namespace {

constexpr int sustained_turns = 3;

/// A ladder on its way: what takes part, and the row each one fills.
struct Climb {
  Ladder ladder;
  std::vector<Contender> contenders;  ///< by row
};

/// Rows whose results are right: others have no time worth knowing.
std::vector<std::size_t> right_rows(const Ladder& ladder) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < ladder.rungs.size(); ++i) {
    if (ladder.rungs[i].ok) rows.push_back(i);
  }
  return rows;
}

std::vector<Work> works(const GpuStage& stage, const Climb& climb, const std::vector<std::size_t>& rows,
                        const std::function<int(const RungResult&)>& times) {
  std::vector<Work> out;
  out.reserve(rows.size());
  for (const std::size_t row : rows)
    out.push_back(stage.replays(climb.contenders[row], times(climb.ladder.rungs[row])));
  return out;
}

/// Seconds of a call from those of its graph.
std::vector<double> per_call(std::vector<double> seconds, double calls) {
  for (double& each : seconds) each /= calls;
  return seconds;
}

using Tell = std::function<void(double, const std::string&)>;

Result<void> time_bursts(const GpuStage& stage, Climb& climb, const BenchOptions& options, StageTimer& timer,
                         const Tell& tell) {
  const auto rows = right_rows(climb.ladder);
  const SamplingLimits limits{.samples = options.samples,
                              .least_seconds = options.least_seconds,
                              .most_seconds = options.most_seconds,
                              .shuffle = options.seed + 1};
  auto samples = sample(works(stage, climb, rows, [](const RungResult&) { return 1; }), timer, limits,
                        [&](double fraction) { tell(0.7 * fraction, "timing"); });
  if (!samples) return samples.error();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    climb.ladder.rungs[rows[k]].time = summarize(per_call(std::move((*samples)[k]), stage.copies()));
  }
  return {};
}

Result<void> time_sustained(const GpuStage& stage, Climb& climb, const BenchOptions& options,
                            StageTimer& timer, const Tell& tell) {
  const auto rows = right_rows(climb.ladder);
  if (!(options.sustained_seconds > 0)) return {};
  const auto times = [&](const RungResult& rung) {
    const double graph_s = 1e-6 * rung.time.median_us * stage.copies();
    return graph_s > 0 ? std::max(1, static_cast<int>(std::ceil(options.sustained_seconds / graph_s))) : 1;
  };
  const SamplingLimits limits{.samples = sustained_turns,
                              .least_seconds = 0,
                              .most_seconds = HUGE_VAL,
                              .warm_up_runs = 0,
                              .shuffle = options.seed + 2};
  const auto samples = sample(works(stage, climb, rows, times), timer, limits,
                              [&](double fraction) { tell(0.7 + 0.3 * fraction, "timing, sustained"); });
  if (!samples) return samples.error();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    RungResult& rung = climb.ladder.rungs[rows[k]];
    const double calls = static_cast<double>(stage.copies()) * times(rung);
    rung.sustained_us = summarize(per_call((*samples)[k], calls)).median_us;
  }
  return {};
}

/// Prepares what can be; fills a row for each.
Result<void> prepare_all(const GpuStage& stage, const Problem& problem, const std::vector<Entrant>& entrants,
                         Climb& climb, const Tell& tell) {
  for (const Entrant& entrant : entrants) {
    tell(0, fmt::format("preparing {}", to_string(entrant.rung)));
    auto prepared = stage.prepare(entrant.prepare);
    if (!prepared) {
      const Error& error = prepared.error();
      if (!is_library_rung(entrant.rung) || error.code != ErrorCode::unsupported) return error;
      climb.ladder.skipped.push_back({entrant.rung, error.message});
      continue;
    }
    auto plan = prepared->prepared.front().plan(problem.tokens());
    if (!plan) return plan.error();
    RungResult row;
    row.candidate = plan->chosen;
    row.kernels = plan->kernels;
    climb.ladder.rungs.push_back(std::move(row));
    climb.contenders.push_back(std::move(prepared).value());
  }
  return {};
}

}  // namespace

Result<Ladder> run_gpu_ladder(const std::shared_ptr<const gpu::Device>& device, const Problem& problem,
                              const std::vector<Entrant>& entrants, const BenchOptions& options) {
  const Tell tell = [&](double fraction, const std::string& what) {
    if (options.progress) options.progress(fraction, what);
  };
  const gpu::CurrentContext current(*device);
  if (auto ok = current.ready(); !ok) return ok.error();
  tell(0, "copying weights and inputs");
  auto made = GpuStage::make(device, problem, options.copies);
  if (!made) return made.error();
  GpuStage& stage = **made;
  Climb climb;
  climb.ladder = {.device = device->description(),
                  .mlp = problem.mlp(),
                  .tokens = problem.tokens(),
                  .numerics = options.numerics,
                  .layout = problem.layout(),
                  .seed = options.seed,
                  .floor = floor_of(problem.mlp(), problem.tokens(), device->description()),
                  .rungs = {},
                  .copies = stage.copies()};
  if (auto ok = prepare_all(stage, problem, entrants, climb, tell); !ok) return ok.error();
  if (auto ok = stage.reserve(climb.contenders); !ok) return ok.error();
  tell(0, "float64 reference");
  const auto reference =
      reference_of(problem, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  if (!reference) return reference.error();
  for (std::size_t row = 0; row < climb.contenders.size(); ++row) {
    RungResult& result = climb.ladder.rungs[row];
    tell(0, fmt::format("checking {}", to_string(result.candidate.rung)));
    Contender& contender = climb.contenders[row];
    if (auto ok = stage.check(contender, *reference, result.candidate.rung, result); !ok) return ok.error();
    if (auto ok = stage.capture(contender); !ok) return ok.error();
  }
  auto timer = StageTimer::make(stage);
  if (!timer) return timer.error();
  if (auto ok = time_bursts(stage, climb, options, **timer, tell); !ok) return ok.error();
  if (auto ok = time_sustained(stage, climb, options, **timer, tell); !ok) return ok.error();
  for (const std::size_t row : right_rows(climb.ladder)) {
    const auto same = stage.same_bits(climb.contenders[row]);
    if (!same) return same.error();
    if (*same) continue;
    climb.ladder.rungs[row].ok = false;
    climb.ladder.rungs[row].reason = "two runs on the same input gave different bits";
  }
  set_speedups(climb.ladder);
  return std::move(climb.ladder);
}

Result<Ladder> bench_gpu(const std::shared_ptr<const gpu::Gpu>& gpu, const Problem& problem,
                         const BenchOptions& options) {
  const bool packed = problem.layout() != GateLayout::separate;
  DeviceDescription with_library = gpu->description;
  with_library.gpu.library = true;
  const PlanOptions planning{.numerics = options.numerics, .rung = {}, .packed = packed};
  const auto legal = plan(problem.mlp(), problem.tokens(), with_library, planning, &gpu->tuned);
  if (!legal) return legal.error();
  std::vector<Entrant> entrants;
  std::vector<SkippedRung> skipped;
  for (const Candidate& candidate : legal->candidates) {
    const Rung rung = candidate.rung;
    const auto& asked = options.rungs;
    if (!asked.empty() && std::ranges::find(asked, rung) == asked.end()) continue;
    if (asked.empty() && candidate.rejected == Rejection::not_on_device) continue;
    if (candidate.rejected == Rejection::no_library_epilogue ||
        candidate.rejected == Rejection::no_mlp_kernel) {
      skipped.push_back({rung, rejection_text(candidate)});
      continue;
    }
    entrants.push_back(
        {rung, [&gpu, &problem, &options, rung](const Weights& weights) -> Result<PreparedMlp> {
           auto executor =
               gpu::prepare(gpu, problem.mlp(), weights, {.numerics = options.numerics, .rung = rung});
           if (!executor) return executor.error();
           return PreparedMlp(std::move(executor).value());
         }});
  }
  auto ladder = run_gpu_ladder(gpu->device, problem, entrants, options);
  if (!ladder) return ladder;
  ladder->device = gpu->description;
  ladder->floor = floor_of(problem.mlp(), problem.tokens(), gpu->description);
  ladder->skipped.insert(ladder->skipped.end(), skipped.begin(), skipped.end());
  std::ranges::stable_sort(ladder->skipped, {}, &SkippedRung::rung);
  const auto of_library = [](const RungResult& rung) { return is_library_rung(rung.candidate.rung); };
  if (gpu->library != nullptr && std::ranges::any_of(ladder->rungs, of_library)) {
    const gpu::CurrentContext current(*gpu->device);
    if (const auto library = gpu->library->get(gpu->device)) ladder->library = (*library)->blas()->name();
  }
  // What the engine takes by itself: of its own kernels.
  const auto own = plan(problem.mlp(), problem.tokens(), gpu->description, planning, &gpu->tuned);
  for (RungResult& rung : ladder->rungs) rung.chosen = own && rung.candidate.rung == own->chosen.rung;
  return ladder;
}

}  // namespace ingot::profile
