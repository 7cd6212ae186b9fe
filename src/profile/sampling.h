// SPDX-License-Identifier: Apache-2.0
//
// Timing several pieces of work against each other so that what disturbs one disturbs all: warm-up, then
// rounds in which each is timed once, every round starting with another or in random order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ingot/bench.h"
#include "profile/timer.h"

namespace ingot::profile {

struct SamplingLimits {
  int samples = 30;          ///< of each, at least
  double least_seconds = 0;  ///< of measured time of each, at least
  double most_seconds = 2;   ///< no further sample after this much measured time, whatever the number
  double warm_up_seconds = 0.1;
  int warm_up_runs = 3;       ///< at most: slow work is warm after one
  std::uint64_t shuffle = 0;  ///< not 0: every round in a random order that follows from this
};

/// Seconds of every sample, for each piece of work in its place. The first error of any work ends it.
Result<std::vector<std::vector<double>>> sample(std::span<const Work> contenders, Timer& timer,
                                                const SamplingLimits& limits,
                                                const std::function<void(double fraction)>& progress = {});

/// Median (mean of the middle two for an even number), least and greatest. Zeros for no samples.
TimeStats summarize(std::vector<double> seconds);

}  // namespace ingot::profile
