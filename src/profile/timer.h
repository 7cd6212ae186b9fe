// SPDX-License-Identifier: Apache-2.0
//
// How the profiler learns how long something took: a clock for the CPU, events for GPUs, a fake for tests.
#pragma once

#include <functional>

#include "ingot/status.h"

namespace ingot::profile {

using Work = std::function<Result<void>()>;

class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer() = default;

  /// Does the work once; seconds it took, or its error.
  virtual Result<double> seconds(const Work& work) = 0;
};

/// The monotonic clock around work that is done when it returns.
class SteadyTimer final : public Timer {
 public:
  Result<double> seconds(const Work& work) override;
};

}  // namespace ingot::profile
