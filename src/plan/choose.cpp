// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

namespace ingot {

Choice choose(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
              const PlanOptions& options) {
  Choice choice;
  for (std::size_t i = 0; i < rung_count; ++i) {
    Candidate& candidate = choice.candidates[i];
    candidate.rung = static_cast<Rung>(i);
    candidate.rejected = Rejection::not_on_device;
    const Traffic moved = traffic(mlp, tokens, candidate.rung, options.packed);
    candidate.launches = moved.launches;
    candidate.bytes = moved.bytes;
  }
  if (device.kind == DeviceKind::cpu) cpu_candidates(mlp, tokens, device.cpu, options, choice.candidates);

  for (Candidate& candidate : choice.candidates) {
    if (candidate.rejected != Rejection::none) continue;
    if (options.rung && *options.rung != candidate.rung) {
      candidate.rejected = Rejection::not_asked_for;
      continue;
    }
    // On a tie the later rung, with fewer launches.
    if (!choice.found || candidate.forecast_us <= choice.chosen().forecast_us) choice.rung = candidate.rung;
    choice.found = true;
  }
  for (Candidate& candidate : choice.candidates) {
    if (choice.found && candidate.rejected == Rejection::none && candidate.rung != choice.rung) {
      candidate.rejected = Rejection::slower;
    }
  }
  return choice;
}

}  // namespace ingot
