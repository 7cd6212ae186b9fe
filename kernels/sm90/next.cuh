// SPDX-License-Identifier: Apache-2.0
//
// The next linear's weights into L2, by warps that have nothing else to do, while this one multiplies.
#pragma once
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"

namespace ingot {
namespace sm90 {

/// Warp `warp` of the grid's `warps`: its share of the next linear's weights, 4 KB at a time.
INGOT_DEVICE void fetch_next(const Next& next, int warp, int warps, int lane) {
  if (next.weights == nullptr) return;
  for (i64 at = i64(warp) * 4096 + lane * 128; at < next.bytes; at += i64(warps) * 4096)
    prefetch_line(static_cast<const char*>(next.weights) + at);
}

}  // namespace sm90
}  // namespace ingot
