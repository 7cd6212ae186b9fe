// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

namespace ingot {

namespace {

// Forecasts of the library are off by up to this (docs/cost-model.md); what it gains within that is no reason
// to leave Ingot's kernels.
constexpr double library_error = 1.1;

bool library_call(const DeviceDescription& device, Rung rung) {
  return device.kind == DeviceKind::cuda && is_library_rung(rung);
}

double weighed(const DeviceDescription& device, const Candidate& candidate) {
  return candidate.forecast_us * (library_call(device, candidate.rung) ? library_error : 1);
}

}  // namespace

Choice choose(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
              const PlanOptions& options, const TuningTable* tuned) {
  Choice choice;
  for (std::size_t i = 0; i < rung_count; ++i) {
    Candidate& candidate = choice.candidates[i];
    candidate.rung = static_cast<Rung>(i);
    candidate.rejected = Rejection::not_on_device;
    const Traffic moved = traffic(mlp, tokens, candidate.rung, options.packed);
    candidate.launches = moved.launches;
    candidate.bytes = moved.bytes;
  }
  if (device.kind == DeviceKind::cpu) {
    cpu_candidates(mlp, tokens, device.cpu, options, choice.candidates);
  } else {
    gpu_candidates(mlp, tokens, device.gpu, options, tuned, choice.candidates);
  }

  for (Candidate& candidate : choice.candidates) {
    if (candidate.rejected != Rejection::none) continue;
    if (options.rung && *options.rung != candidate.rung) {
      candidate.rejected = Rejection::not_asked_for;
      continue;
    }
    // On a tie the later rung, with fewer launches.
    if (!choice.found || weighed(device, candidate) <= weighed(device, choice.chosen())) {
      choice.rung = candidate.rung;
    }
    choice.found = true;
  }
  for (Candidate& candidate : choice.candidates) {
    if (choice.found && candidate.rejected == Rejection::none && candidate.rung != choice.rung) {
      const bool faster = candidate.forecast_us < choice.chosen().forecast_us;
      candidate.rejected = faster ? Rejection::within_model_error : Rejection::slower;
    }
  }
  return choice;
}

}  // namespace ingot
