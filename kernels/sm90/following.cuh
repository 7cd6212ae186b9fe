// SPDX-License-Identifier: Apache-2.0
//
// The next linear's weights into L2 while this one multiplies.
#pragma once
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"

namespace ingot::sm90 {

/// One thread's part of `following`: the piece of step `step` of block `block` of `blocks`.
INGOT_DEVICE void prefetch_following(const Following& following, int step, int block, int blocks) {
  const long long at = ((long long)step * blocks + block) * following.chunk_bytes;
  if (at < following.bytes)
    prefetch_bytes(static_cast<const char*>(following.weights) + at,
                   u32(min((long long)following.chunk_bytes, following.bytes - at)));
}

}  // namespace ingot::sm90
