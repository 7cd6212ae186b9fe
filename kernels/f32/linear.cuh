// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) in f32 by plain multiply-adds on any chip from sm_80 on: every
// product is fused into its sum, one sum an output, K in order. The error is that of such sums, at most kK
// roundings; tf32 is never used. The activation is evaluated by its definition. Tiles, ring and gate as in
// sm80/linear.cuh.
#pragma once

#include "sm80/ring.cuh"

namespace ingot {
namespace f32 {

using sm80::Shape;

template <class S>
struct Linear {
  using Args = LinearArgs;
  static constexpr int threads = S::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const LinearArgs& args) {
    unsigned char* shared = device::shared_memory();
    const sm80::Corner corner = sm80::corner_of_block<S>(args.tokens);
    device::let_next_kernel_start();
    float sums[kRows][kCols] = {};
    const Lane at;
    sm80::run_through_ring<S>(args, corner, shared, [&](const unsigned char* x, const unsigned char* w) {
      multiply(sums, x, w, at);
    });
    store_outputs(sums, args, corner, at);
  }

 private:
  // A thread has every fourth row and every eighth column of its warp's part of the tile.
  static constexpr int kRows = S::kWarp_tile_rows / 4, kCols = S::kWarp_tile_cols / 8;
  static_assert(S::kElement_bytes == 4, "f32");
  static_assert(S::kWarp_tile_rows % 4 == 0 && S::kWarp_tile_cols % (S::kGated ? 16 : 8) == 0, "whole lanes");
  using Sums = float[kRows][kCols];

  struct Lane {
    int row, column;  // first of the thread in the tile
    INGOT_DEVICE Lane() {
      const int thread = static_cast<int>(device::thread_index()), warp = thread / 32, lane = thread % 32;
      row = warp / S::kWarp_cols * S::kWarp_tile_rows + lane / 8;
      column = warp % S::kWarp_cols * S::kWarp_tile_cols + lane % 8;
    }
  };

  static INGOT_DEVICE void multiply(Sums& sums, const unsigned char* x, const unsigned char* w,
                                    const Lane& at) {
    INGOT_UNROLL
    for (int piece = 0; piece < S::kPieces; ++piece) {
      device::Floats4 column[kCols];
      INGOT_UNROLL
      for (int n = 0; n < kCols; ++n) {
        column[n] = device::load_4_floats(w + sm80::swizzled<S>(at.column + n * 8, piece));
      }
      INGOT_UNROLL
      for (int m = 0; m < kRows; ++m) {
        const device::Floats4 row = device::load_4_floats(x + sm80::swizzled<S>(at.row + m * 4, piece));
        INGOT_UNROLL
        for (int n = 0; n < kCols; ++n) {
          INGOT_UNROLL
          for (int k = 0; k < 4; ++k) {
            sums[m][n] = device::fused_multiply_add(row.value[k], column[n].value[k], sums[m][n]);
          }
        }
      }
    }
  }

  /// Finishes a thread's sums and stores them: a warp writes eight neighbouring columns of four rows at once.
  static INGOT_DEVICE void store_outputs(const Sums& sums, const LinearArgs& args, const sm80::Corner& corner,
                                         const Lane& at) {
    constexpr int kPer_output = S::kGated ? 2 : 1;
    const int first = corner.column + (at.column - at.column % 8) / kPer_output + at.column % 8;
    INGOT_UNROLL
    for (int n = 0; n < kCols / kPer_output; ++n) {
      const int y_column = first + n * 8;
      float up_bias[1], gate_bias[1] = {};
      sm80::load_bias<S>(args.epilogue.up_bias, y_column, up_bias);
      if constexpr (S::kGated) sm80::load_bias<S>(args.epilogue.gate_bias, y_column, gate_bias);
      INGOT_UNROLL
      for (int m = 0; m < kRows; ++m) {
        const device::Place place{corner.row + at.row + m * 4, y_column, 1};
        if (place.row >= args.tokens || y_column >= S::kN) continue;
        device::Outputs<1, S::kGated> values;
        if constexpr (S::kGated) {
          values.gate[0] = sums[m][n * 2];
          values.up[0] = sums[m][n * 2 + 1];
        } else {
          values.up[0] = sums[m][n];
        }
        sm80::finish<S>(args, place, up_bias, gate_bias, values);
        device::store(static_cast<float*>(args.epilogue.y) + place.row * args.epilogue.y_stride + y_column,
                      values.up[0]);
      }
    }
  }
};

}  // namespace f32
}  // namespace ingot
