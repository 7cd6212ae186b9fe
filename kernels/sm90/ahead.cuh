// SPDX-License-Identifier: Apache-2.0
//
// Weights into L2 ahead of their use, by warps that have nothing else to do: the ring of stages asks for 128 bytes of
// each row at a time and not many stages ahead, which leaves the memory idle when every weight is read but once.
#pragma once
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"

namespace ingot {
namespace sm90 {

/// Warp `warp` of `warps`: lines of `rows` rows from `first_row` on, `bytes` of each from byte `begin` on, a kilobyte of
/// four rows at a time. Of the blocks that need the same rows, number `share` of `shares` asks for every shares-th.
INGOT_DEVICE void fetch_rows(const void* matrix, i64 stride, int first_row, int rows, int begin, int bytes, int share,
                             int shares, int warp, int warps, int lane) {
  const char* base = static_cast<const char*>(matrix) + first_row * stride * 2 + begin;
  for (int chunk = 0; chunk < bytes; chunk += 1024) {
    for (int group = warp; group * 4 * shares < rows; group += warps) {
      const int row = (group * 4 + lane / 8) * shares + share, at = chunk + lane % 8 * 128;
      if (row < rows && at < bytes) prefetch_line(base + row * stride * 2 + at);
    }
  }
}

/// Warp `warp` of the grid's `warps`: its share of the next linear's weights, 4 KB at a time.
INGOT_DEVICE void fetch_next(const Ahead& ahead, int warp, int warps, int lane) {
  for (i64 at = i64(warp) * 4096 + lane * 128; at < ahead.next_bytes; at += i64(warps) * 4096)
    prefetch_line(static_cast<const char*>(ahead.next) + at);
}

}  // namespace sm90
}  // namespace ingot
