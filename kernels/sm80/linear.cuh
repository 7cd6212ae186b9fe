// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) in bf16 or f16 on the tensor cores of any chip from sm_80 on:
// mma.sync fed by ldmatrix from a ring that cp.async fills. One block a tile. Gated: W is gate and up in one
// pass, interleaved in groups of eight columns, so that a thread ends with both sums of the same output.
#pragma once

#include "sm80/ring.cuh"

namespace ingot {
namespace sm80 {

template <class S>
struct Linear {
  using Args = LinearArgs;
  static constexpr int threads = S::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const LinearArgs& args) {
    unsigned char* shared = device::shared_memory();
    const Corner corner = corner_of_block<S>(args.tokens);
    device::let_next_kernel_start();
    float sums[kRow_tiles][kCol_tiles][4] = {};
    const Lane at;
    run_through_ring<S>(args, corner, shared,
                        [&](const unsigned char* x, const unsigned char* w) { multiply(sums, x, w, at); });
    stage_outputs(sums, args, corner, shared, at);
    device::block_barrier();
    store_outputs(args.epilogue, args.tokens, corner, shared);
  }

 private:
  // Tiles of one instruction, 16 rows by 8 columns, that a warp holds.
  static constexpr int kRow_tiles = S::kWarp_tile_rows / 16, kCol_tiles = S::kWarp_tile_cols / 8;
  static constexpr int kSteps = S::kBlock_k / 16;
  static_assert(S::kElement_bytes == 2, "16-bit types");
  static_assert(S::kWarp_tile_rows % 16 == 0 && S::kWarp_tile_cols % 16 == 0, "whole instructions");
  using Sums = float[kRow_tiles][kCol_tiles][4];

  struct Lane {
    int lane, row, column;  // first row and column of its warp in the tile
    INGOT_DEVICE Lane() {
      const int thread = static_cast<int>(device::thread_index()), warp = thread / 32;
      lane = thread % 32;
      row = warp / S::kWarp_cols * S::kWarp_tile_rows;
      column = warp % S::kWarp_cols * S::kWarp_tile_cols;
    }
  };

  struct Fragments {
    u32 x[kRow_tiles][4];      // 16 rows by 16 of K
    u32 w[kCol_tiles / 2][4];  // 16 columns by 16 of K: two of the first eight columns, two of the others
  };

  static INGOT_DEVICE void load(Fragments& to, const unsigned char* x, const unsigned char* w, int step,
                                const Lane& at) {
    const int eighth = at.lane % 8, second = at.lane / 8 % 2, third = at.lane / 16;
    INGOT_UNROLL
    for (int m = 0; m < kRow_tiles; ++m) {
      const int row = at.row + m * 16 + second * 8 + eighth;
      device::load_matrices(to.x[m], x + swizzled<S>(row, step * 2 + third));
    }
    INGOT_UNROLL
    for (int n = 0; n < kCol_tiles / 2; ++n) {
      const int row = at.column + n * 16 + third * 8 + eighth;
      device::load_matrices(to.w[n], w + swizzled<S>(row, step * 2 + second));
    }
  }

  /// A block of K. Fragments of the next step are loaded under the products of this one.
  static INGOT_DEVICE void multiply(Sums& sums, const unsigned char* x, const unsigned char* w,
                                    const Lane& at) {
    Fragments fragments[2];
    load(fragments[0], x, w, 0, at);
    INGOT_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) load(fragments[(step + 1) % 2], x, w, step + 1, at);
      const Fragments& f = fragments[step % 2];
      INGOT_UNROLL
      for (int m = 0; m < kRow_tiles; ++m) {
        INGOT_UNROLL
        for (int n = 0; n < kCol_tiles; ++n) {
          S::Element::multiply_add(sums[m][n], f.x[m], f.w[n / 2][n % 2 * 2], f.w[n / 2][n % 2 * 2 + 1]);
        }
      }
    }
  }

  /// Finishes a warp's sums and lays them, in 16 bits, over the ring.
  static INGOT_DEVICE void stage_outputs(Sums& sums, const LinearArgs& args, const Corner& corner,
                                         unsigned char* shared, const Lane& at) {
    constexpr int kPer_output = S::kGated ? 2 : 1;
    const int first_row = at.row + at.lane / 4;
    const int first_column = at.column / kPer_output + at.lane % 4 * 2;
    INGOT_UNROLL
    for (int n = 0; n < kCol_tiles / kPer_output; ++n) {
      const int column = first_column + n * 8, y_column = corner.column + column;
      float up_bias[2], gate_bias[2] = {};
      load_bias<S>(args.epilogue.up_bias, y_column, up_bias);
      if constexpr (S::kGated) load_bias<S>(args.epilogue.gate_bias, y_column, gate_bias);
      INGOT_UNROLL
      for (int i = 0; i < 2 * kRow_tiles; ++i) {
        const int row = first_row + i * 8;
        const device::Place place{corner.row + row, y_column, S::kN - y_column < 2 ? S::kN - y_column : 2};
        if (place.row >= args.tokens || place.count <= 0) continue;
        const float(&first)[4] = sums[i / 2][n * kPer_output];
        device::Outputs<2, S::kGated> values;
        INGOT_UNROLL
        for (int j = 0; j < 2; ++j) {
          if constexpr (S::kGated) {
            values.gate[j] = first[i % 2 * 2 + j];
            values.up[j] = sums[i / 2][n * 2 + 1][i % 2 * 2 + j];
          } else {
            values.up[j] = first[i % 2 * 2 + j];
          }
        }
        finish<S>(args, place, up_bias, gate_bias, values);
        *reinterpret_cast<u32*>(shared + row * kPitch + column * 2) =
            S::Element::pair_bits(values.up[0], values.up[1]);
      }
    }
  }

  /// The tile's outputs to y, neighbouring threads to neighbouring columns.
  static INGOT_DEVICE void store_outputs(const EpilogueArgs& args, i64 tokens, const Corner& corner,
                                         const unsigned char* shared) {
    constexpr int kRun = S::kAligned ? 8 : 1, kRuns = S::kOut_cols / kRun;
    for (int item = static_cast<int>(device::thread_index()); item < S::kRows * kRuns; item += S::kThreads) {
      const int row = item / kRuns, column = item % kRuns * kRun, y_column = corner.column + column;
      const i64 y_row = corner.row + row;
      if (y_row >= tokens || y_column >= S::kN) continue;
      u16* y = static_cast<u16*>(args.y) + y_row * args.y_stride + y_column;
      const unsigned char* from = shared + row * kPitch + column * 2;
      if constexpr (S::kAligned) {
        if (y_column + kRun <= S::kN) {
          device::store_16_bytes(y, device::load_16_bytes(from));
          continue;
        }
      }
      for (int i = 0; i < kRun && y_column + i < S::kN; ++i) {
        device::store(y + i, reinterpret_cast<const u16*>(from)[i]);
      }
    }
  }
  static constexpr int kPitch = staging_pitch(S::tile, S::kGated);
};

}  // namespace sm80
}  // namespace ingot
