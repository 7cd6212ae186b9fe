// SPDX-License-Identifier: Apache-2.0
//
// What the ladders of all devices share: the float64 reference, the verdict on a rung, the floor.
#pragma once

#include "cpu/reference.h"
#include "profile/ladder.h"

namespace ingot::profile {

Floor floor_of(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device);

/// Of as many rows as take about a second.
Result<cpu::Reference> reference_of(const Problem& problem, int threads);

/// Judges the output of a rung, rows adjoining.
void judge(const Problem& problem, const cpu::Reference& reference, Rung rung, const void* y,
           RungResult& result);

/// Against the rung `unfused`, for rungs that are right.
void set_speedups(Ladder& ladder);

}  // namespace ingot::profile
