// SPDX-License-Identifier: Apache-2.0
//
// Whether a GPU driver and its run-time compiler are there, found by opening their libraries.
#pragma once

#include "base/env.h"
#include "ingot/doctor.h"

namespace ingot::profile {

/// Fills in driver, gpus, device_compiler and what of them is missing.
void probe_gpu(const base::Environment& environment, Machine& machine);

}  // namespace ingot::profile
