// SPDX-License-Identifier: Apache-2.0
#include "profile/ladder_parts.h"

#include <algorithm>

namespace ingot {

namespace profile {

namespace {

// Multiply-adds in float64 the check may take, and how few rows still make one.
constexpr double check_budget = 3e9;
constexpr std::int64_t least_rows = 4, most_rows = 32;

std::int64_t rows_to_check(const Mlp& mlp) {
  const double per_row = 3 * flops(mlp, 1) / 2;  // the definition and two yardsticks
  return std::clamp(static_cast<std::int64_t>(check_budget / per_row), least_rows, most_rows);
}

}  // namespace

Floor floor_of(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device) {
  Floor floor{.flops = flops(mlp, tokens), .bytes = least_bytes(mlp, tokens)};
  double rate = device.cpu.gemm_flops_per_s, memory = device.cpu.memory_bytes_per_s;
  if (device.kind == DeviceKind::cuda) {
    rate = mlp.dtype == DType::f32 ? device.gpu.f32_flops_per_s : device.gpu.tensor_flops_per_s;
    memory = device.gpu.memory_bytes_per_s;
  }
  floor.compute_us = 1e6 * floor.flops / rate;
  floor.memory_us = 1e6 * floor.bytes / memory;
  return floor;
}

Result<cpu::Reference> reference_of(const Problem& problem, int threads) {
  const Mlp& mlp = problem.mlp();
  auto pool = cpu::ThreadPool::create(threads);
  if (!pool) return pool.error();
  return cpu::reference(mlp, problem.weights(), problem.x(), mlp.dim,
                        cpu::spread_rows(problem.tokens(), rows_to_check(mlp)), **pool);
}

void judge(const Problem& problem, const cpu::Reference& reference, Rung rung, const void* y,
           RungResult& result) {
  const cpu::Verdict verdict = cpu::judge(problem.mlp(), reference, rung, y, problem.mlp().dim);
  result.error = verdict.error;
  result.framework_error = verdict.framework_error;
  result.bound = verdict.bound;
  result.ok = verdict.ok;
  if (!verdict.ok) result.reason = verdict.reason;
}

void set_speedups(Ladder& ladder) {
  const auto unfused = std::ranges::find_if(ladder.rungs, [](const RungResult& result) {
    return result.candidate.rung == Rung::unfused && result.ok && result.time.samples > 0;
  });
  if (unfused == ladder.rungs.end()) return;
  const double unfused_us = unfused->time.median_us;
  for (RungResult& result : ladder.rungs) {
    if (result.ok && result.time.median_us > 0) result.speedup = unfused_us / result.time.median_us;
  }
}

}  // namespace profile

bool Ladder::ok() const {
  return std::all_of(rungs.begin(), rungs.end(), [](const RungResult& result) { return result.ok; });
}

}  // namespace ingot
