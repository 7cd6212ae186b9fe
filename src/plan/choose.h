// SPDX-License-Identifier: Apache-2.0
//
// The planner's inside: the choice as plain numbers, without text and without allocating, so that run() can
// make it for every call.
#pragma once

#include <array>

#include "ingot/plan.h"
#include "plan/linear.h"

namespace ingot {

struct Choice {
  std::array<Candidate, rung_count> candidates;  ///< in the order of Rung
  Rung rung = Rung::unfused;                     ///< the chosen one; meaningful when `found`
  bool found = false;

  const Candidate& chosen() const { return candidates[static_cast<std::size_t>(rung)]; }
};

/// On a GPU: run by the vendor's library.
constexpr bool is_library_rung(Rung rung) {
  return rung == Rung::matmul_add || rung == Rung::unfused || rung == Rung::epilogue;
}

/// Of kernels compiled for a GPU's shape: no CPU has it.
constexpr bool is_compiled_rung(Rung rung) {
  return rung == Rung::two_kernel || rung == Rung::one_kernel;
}

/// The MLP must be valid, tokens >= 0.
Choice choose(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
              const PlanOptions& options, const TuningTable* tuned = nullptr);

/// As the public one, with measured tiles.
Result<Plan> plan(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
                  const PlanOptions& options, const TuningTable* tuned);

/// Kernels or primitives a rung launches, and the bytes they move: each launch reads its inputs once and
/// writes its outputs once. The same on every device.
struct Traffic {
  int launches = 0;
  double bytes = 0;
};
Traffic traffic(const Mlp& mlp, std::int64_t tokens, Rung rung, bool packed);

/// Candidates of a CPU: tiles, legality and forecasts filled in, none chosen yet.
void cpu_candidates(const Mlp& mlp, std::int64_t tokens, const CpuDescription& cpu,
                    const PlanOptions& options, std::array<Candidate, rung_count>& candidates);

/// Candidates of a GPU, the same way. The library's rungs are priced even where they are out, for comparison.
void gpu_candidates(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                    const PlanOptions& options, const TuningTable* tuned,
                    std::array<Candidate, rung_count>& candidates);

}  // namespace ingot
