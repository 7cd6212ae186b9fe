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
  int block_k;               ///< elements of K in a stage
  int stages;                ///< of the ring of x and weight blocks
  int warp_rows, warp_cols;  ///< warps of a block along rows and columns
};

}  // namespace sm80
}  // namespace ingot
