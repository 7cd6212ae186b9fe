// SPDX-License-Identifier: Apache-2.0
//
// What the portable kernels share: the constants of a linear and its tile, which tile a block has, and the
// ring of blocks of x and W in shared memory.
//
//   #include "sm80/linear.cuh"      // 16-bit types; f32: "f32/linear.cuh" and the names of ingot::f32
//   using Shape = ingot::sm80::Shape<ingot::device::bf16, Chain<...>, N, K, gated, bias, rounds,
//                                    rows, cols, block_k, stages, warp_rows, warp_cols, aligned>;
//   using Kernel = ingot::sm80::Linear<Shape>;
//   static_assert(Kernel::threads == T && Shape::shared_bytes == S, "launch");
//   INGOT_KERNEL(ingot_kernel, Kernel)
#pragma once

#include "device/intrinsics.cuh"
#include "epilogue.cuh"
#include "linear_args.cuh"
#include "sm80/layout.cuh"

namespace ingot {
namespace sm80 {

using device::i64;
using device::u16;
using device::u32;

/// Epilogue: a Chain of what follows the linear, without bias, rounding of the linear and store, which the
/// kernel does itself. kRounds: the linear's result is rounded to the element before the chain. kAligned: x,
/// y, weights and their row strides are multiples of 16 bytes, and so is a row of K; else elements are copied
/// one by one.
template <class Element_, class Epilogue_, int kN_, int kK_, bool kGated_, bool kBias_, bool kRounds_,
          int kRows_, int kCols_, int kBlock_k_, int kStages_, int kWarp_rows_, int kWarp_cols_,
          bool kAligned_>
struct Shape {
  using Element = Element_;
  using Bits = typename Element::Bits;
  using Epilogue = Epilogue_;
  static constexpr Tile tile{kRows_, kCols_, kBlock_k_, kStages_, kWarp_rows_, kWarp_cols_};
  static constexpr int kN = kN_, kK = kK_, kRows = kRows_, kCols = kCols_, kBlock_k = kBlock_k_,
                       kStages = kStages_, kWarp_cols = kWarp_cols_;
  static constexpr bool kGated = kGated_, kBias = kBias_, kRounds = kRounds_, kAligned = kAligned_;
  static constexpr int kThreads = sm80::threads(tile);
  static constexpr int kElement_bytes = sizeof(Bits);
  static constexpr int shared_bytes = sm80::shared_bytes(tile, kElement_bytes, kGated);
  static constexpr int kOut_cols = out_columns(tile, kGated);
  static constexpr int kCol_tiles = (kN + kOut_cols - 1) / kOut_cols;
  static constexpr int kK_blocks = (kK + kBlock_k - 1) / kBlock_k;
  static constexpr int kWarp_tile_rows = kRows / kWarp_rows_, kWarp_tile_cols = kCols / kWarp_cols_;

  static constexpr int kPiece = 16 / kElement_bytes;  // elements of 16 bytes
  static constexpr int kPieces = kBlock_k / kPiece;   // of a row of a block
  static constexpr int kRow_bytes = kBlock_k * kElement_bytes;
  static constexpr int kX_bytes = kRows * kRow_bytes, kStage_bytes = (kRows + kCols) * kRow_bytes;
  static constexpr int kPass_rows = kThreads / kPieces;  // rows that all threads copy at once
  static constexpr int kX_passes = kRows / kPass_rows, kW_passes = kCols / kPass_rows;

  static_assert(kPieces == 4 || kPieces == 8, "a row of a block is 64 or 128 bytes");
  static_assert(kPass_rows % 16 == 0, "a thread copies either of the gate or of up");
  static_assert(kRows % kPass_rows == 0 && kCols % kPass_rows == 0, "whole passes");
  static_assert(kStages >= 2, "copies run ahead");
  static_assert(!kAligned || kK % kPiece == 0, "a row of K is whole pieces");
};

/// Byte offset of 16-byte piece `piece` of row `row` in a block. Pieces of neighbouring rows are exchanged so
/// that one piece of any eight neighbours lies in eight different groups of banks.
template <class S>
INGOT_DEVICE int swizzled(int row, int piece) {
  const int turn = S::kPieces == 8 ? row & 7 : row >> 1 & 3;
  return row * S::kRow_bytes + (piece ^ turn) * 16;
}

/// A block's tile: first token and first output column.
struct Corner {
  i64 row;
  int column;
};
/// Row tiles in groups of eight, a group column by column: blocks that run at the same time share rows of x
/// and columns of W in L2.
template <class S>
INGOT_DEVICE Corner corner_of_block(i64 tokens) {
  constexpr u32 kGroup = 8;
  const u32 row_tiles = static_cast<u32>((tokens + S::kRows - 1) / S::kRows);
  const u32 block = device::block_index(), group = block / (kGroup * S::kCol_tiles);
  const u32 first = group * kGroup, in_group = block - first * S::kCol_tiles;
  const u32 group_rows = row_tiles - first < kGroup ? row_tiles - first : kGroup;
  const u32 column = in_group / group_rows, row = first + in_group - column * group_rows;
  return {static_cast<i64>(row) * S::kRows, static_cast<int>(column) * S::kOut_cols};
}

/// Which of the passes p = 0, 1, … over rows `first` + p · `step` lie before `end`.
INGOT_DEVICE int passes_before(i64 end, i64 first, int step, int passes) {
  const i64 count = end <= first ? 0 : (end - first + step - 1) / step;
  return count < passes ? static_cast<int>(count) : passes;
}

/// What one thread copies of every block: the same piece of every kPass_rows-th row. What lies outside x and
/// W arrives as zeros.
template <class S>
struct Copier {
  using Bits = typename S::Bits;

  INGOT_DEVICE Copier(const LinearArgs& args, const Corner& corner, unsigned char* shared) {
    const int thread = static_cast<int>(device::thread_index());
    const int row = thread / S::kPieces, piece = thread % S::kPieces;
    first_k_ = piece * S::kPiece;
    to_ = shared + swizzled<S>(row, piece);
    x_base_ = static_cast<const Bits*>(args.x);
    x_stride_ = args.x_stride;
    x_row_ = corner.row + row;
    x_passes_ = passes_before(args.tokens, x_row_, S::kPass_rows, S::kX_passes);
    // Gated: groups of eight rows of a block of W are in turn of the gate and of up.
    const bool gate = S::kGated && row / 8 % 2 == 0;
    w_base_ = static_cast<const Bits*>(gate ? args.gate : args.up);
    w_stride_ = gate ? args.gate_stride : args.up_stride;
    w_row_ = corner.column + (S::kGated ? row / 16 * 8 + row % 8 : row);
    w_passes_ = passes_before(S::kN, w_row_, kW_step, S::kW_passes);
  }

  INGOT_DEVICE void copy_x(int k_block, int stage) const {
    copy<S::kX_passes, S::kPass_rows, false>(x_base_, x_row_, x_stride_, x_passes_, k_block,
                                             to_ + stage * S::kStage_bytes);
  }
  INGOT_DEVICE void copy_w(int k_block, int stage) const {
    copy<S::kW_passes, kW_step, true>(w_base_, w_row_, w_stride_, w_passes_, k_block,
                                      to_ + stage * S::kStage_bytes + S::kX_bytes);
  }

 private:
  static constexpr int kW_step = S::kGated ? S::kPass_rows / 2 : S::kPass_rows;

  template <int kPasses, int kStep, bool kConstant>
  INGOT_DEVICE void copy(const Bits* base, i64 row, i64 stride, int passes, int k_block,
                         unsigned char* to) const {
    const int k = k_block * S::kBlock_k + first_k_;
    const int valid = S::kK % S::kBlock_k == 0 ? S::kPiece : S::kK - k;
    INGOT_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      const bool exists = pass < passes && valid > 0;
      const Bits* from = exists ? base + (row + pass * kStep) * stride + k : base;
      unsigned char* at = to + pass * S::kPass_rows * S::kRow_bytes;
      if constexpr (S::kAligned) {
        device::copy_16_bytes_async(at, from, exists ? 16 : 0);
      } else {
        copy_elements<kConstant>(at, from, exists ? valid : 0);
      }
    }
  }
  template <bool kConstant>
  INGOT_DEVICE static void copy_elements(unsigned char* to, const Bits* from, int count) {
    device::Bytes16 piece{};
    INGOT_UNROLL
    for (int i = 0; i < S::kPiece; ++i) {
      if (i >= count) continue;
      const Bits value = kConstant ? device::load_constant(from + i) : device::load(from + i);
      if constexpr (S::kElement_bytes == 2) {
        piece.word[i / 2] |= static_cast<u32>(value) << (i % 2 * 16);
      } else {
        piece.word[i] = device::float_bits(value);
      }
    }
    device::store_16_bytes(to, piece);
  }

  unsigned char* to_;
  const Bits *x_base_, *w_base_;
  i64 x_stride_, w_stride_, x_row_, w_row_;
  int first_k_, x_passes_, w_passes_;
};

/// Brings all of K through the ring: multiply(x block, W block) for each block, in order. On return no thread
/// reads the ring any more.
template <class S, class Multiply>
INGOT_DEVICE void run_through_ring(const LinearArgs& args, const Corner& corner, unsigned char* shared,
                                   const Multiply& multiply) {
  constexpr int kAhead = S::kStages - 1;
  const Copier<S> copier(args, corner, shared);
  // Weights do not come from the kernel before: they are asked for while it still runs.
  INGOT_UNROLL
  for (int block = 0; block < kAhead; ++block) {
    if (block < S::kK_blocks) copier.copy_w(block, block);
  }
  device::wait_for_previous_kernel();
  INGOT_UNROLL
  for (int block = 0; block < kAhead; ++block) {
    if (block < S::kK_blocks) copier.copy_x(block, block);
    device::close_copy_group();
  }
  int stage = 0, refilled = kAhead;
  INGOT_ROLLED
  for (int block = 0; block < S::kK_blocks; ++block) {
    device::wait_for_copy_groups<kAhead - 1>();
    device::block_barrier();  // everyone's copies of this block are there, and the block before is read
    if (block + kAhead < S::kK_blocks) {
      copier.copy_w(block + kAhead, refilled);
      copier.copy_x(block + kAhead, refilled);
    }
    device::close_copy_group();
    const unsigned char* x_block = shared + stage * S::kStage_bytes;
    multiply(x_block, x_block + S::kX_bytes);
    stage = stage + 1 == S::kStages ? 0 : stage + 1;
    refilled = refilled + 1 == S::kStages ? 0 : refilled + 1;
  }
  device::wait_for_copy_groups<0>();
  device::block_barrier();
}

/// The sums of one output and its neighbours, `first` of the gate where there is one: bias, rounding, chain.
/// In `values.up` on return.
template <class S, int N>
INGOT_DEVICE void finish(const LinearArgs& args, const device::Place& at, const float (&up_bias)[N],
                         const float (&gate_bias)[N], device::Outputs<N, S::kGated>& values) {
  if constexpr (S::kBias) {
    INGOT_UNROLL
    for (int i = 0; i < N; ++i) {
      values.up[i] += up_bias[i];
      if constexpr (S::kGated) values.gate[i] += gate_bias[i];
    }
  }
  if constexpr (S::kRounds) {
    device::round_all<typename S::Element>(values.up);
    if constexpr (S::kGated) device::round_all<typename S::Element>(values.gate);
  }
  S::Epilogue::apply(args.epilogue, at, values);
}

/// Biases of N neighbouring outputs, zero outside the linear.
template <class S, int N>
INGOT_DEVICE void load_bias(const void* bias, int column, float (&values)[N]) {
  INGOT_UNROLL
  for (int i = 0; i < N; ++i) {
    values[i] = 0.0f;
    if constexpr (S::kBias) {
      if (column + i < S::kN) {
        values[i] =
            S::Element::value(device::load_constant(static_cast<const typename S::Bits*>(bias) + column + i));
      }
    }
  }
}

}  // namespace sm80
}  // namespace ingot
