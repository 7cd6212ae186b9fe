// SPDX-License-Identifier: Apache-2.0
//
// Measures the rates of a CPU that the cost model needs.
#pragma once

#include "ingot/plan.h"
#include "profile/timer.h"

namespace ingot::profile {

/// `start` says what is known without measuring (threads, caches); the result has its rates replaced. Takes
/// about a second. Errors out_of_memory.
Result<DeviceDescription> measure_cpu(const DeviceDescription& start, Timer& timer);

}  // namespace ingot::profile
