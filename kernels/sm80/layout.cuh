// SPDX-License-Identifier: Apache-2.0
//
// Shapes and shared-memory sizes of the portable kernels (sm_80 and newer) as plain constants, for kernels
// and host. No device code.
#pragma once

namespace ingot {
namespace sm80 {

/// One tile: tokens are rows, outputs are columns. A gated tile holds gate and up, so half as many output
/// columns.
struct Tile {
  int rows;                  ///< tokens of a block
  int cols;                  ///< accumulator columns of a block
  int block_k;               ///< elements of K in a stage: 64 or 128 bytes
  int stages;                ///< of the ring of x and weight blocks
  int warp_rows, warp_cols;  ///< warps of a block along rows and columns
};

constexpr int threads(const Tile& t) {
  return 32 * t.warp_rows * t.warp_cols;
}
constexpr int out_columns(const Tile& t, bool gated) {
  return gated ? t.cols / 2 : t.cols;
}
/// Finished outputs of 16 bits are turned over in shared memory: rows 16 bytes apart in the banks. f32 goes
/// to y straight from registers.
constexpr int staging_pitch(const Tile& t, bool gated) {
  return 2 * out_columns(t, gated) + 16;  // bytes
}
/// Dynamic shared memory of a block. The staged outputs lie over the ring, which is free by then.
constexpr int shared_bytes(const Tile& t, int element_bytes, bool gated) {
  const int ring = t.stages * (t.rows + t.cols) * t.block_k * element_bytes;
  const int staging = element_bytes == 2 ? t.rows * staging_pitch(t, gated) : 0;
  return ring > staging ? ring : staging;
}
/// Blocks of a launch, a 1-D grid.
constexpr long long blocks(const Tile& t, long long out, bool gated, long long tokens) {
  return (tokens + t.rows - 1) / t.rows * ((out + out_columns(t, gated) - 1) / out_columns(t, gated));
}

}  // namespace sm80
}  // namespace ingot
