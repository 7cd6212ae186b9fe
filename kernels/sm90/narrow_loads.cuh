// SPDX-License-Identifier: Apache-2.0
//
// The loading half of narrow.cuh: what the kernel is launched with and compiled for, its barriers, and its
// loads of weights, tokens and biases.
#pragma once
#include "device/intrinsics.cuh"
#include "mlp_args.cuh"
#include "sm90/layout.cuh"
#include "sm90/narrow_layout.cuh"
#include "sm90/ptx.cuh"

namespace ingot {
namespace sm90 {

/// dim a multiple of 64: boxes span blocks of dim, else they are one block, whose tail is filled with zeros.
struct NarrowMaps {
  TensorMap x;  // {64, tokens, dim / 64}, box {64, 64, k_blocks}; else {dim, tokens, 1}, box {64, 64, 1}
  TensorMap up_first;  // {64, hidden, matrices, dim / 64}, box {64, chunk, matrices, first_k_blocks}; else
                       // {dim, hidden, matrices, 1}, box {64, chunk, matrices, 1}; gated: 2 matrices
  TensorMap up_rest;   // the same with the other k_blocks
  TensorMap down;  // {hidden, 2, 4, 4, dim / 32}, strides of 1, 8, 2 and 32 rows, box {64, 2, 4, 4, dim / 32}
  TensorMap down_tail;  // {hidden, dim}, box {64, dim % 32}
};

struct NarrowArgs {
  NarrowMaps maps;
  MlpEpilogueArgs epilogue;
  int tokens;
  int early_weights;  // not 0: weights and biases are read before the kernel before has finished
};

/// What a kernel is compiled for. Epilogue: the steps between the linears, on the first one's rounded result
/// where Rounds, else on the float32 sums. kGate_first: the gate is the first of the two matrices.
template <class Element_, class Epilogue_, bool kRounds_, int kDim_, int kHidden_, bool kGated_,
          bool kGate_first_, bool kUp_bias_, bool kDown_bias_, int kWarpgroups_, int kChunk_, int kSlots_,
          int kLag_>
struct NarrowShape {
  using Element = Element_;
  using Epilogue = Epilogue_;
  static constexpr NarrowTile tile{kWarpgroups_, kChunk_, kSlots_, kLag_};
  static constexpr NarrowLayout shared = layout(tile, kDim_, kHidden_, kGated_, kUp_bias_);
  static constexpr int kDim = kDim_, kHidden = kHidden_, kWarpgroups = kWarpgroups_, kChunk = kChunk_,
                       kLag = kLag_;
  static constexpr bool kRounds = kRounds_, kGated = kGated_, kGate_first = kGate_first_,
                        kUp_bias = kUp_bias_, kDown_bias = kDown_bias_;
  static constexpr int kRows = tokens_of_block(tile);
  static constexpr int kK_blocks = shared.k_blocks, kChunks = shared.chunks, kSlots = shared.slots,
                       kUp_parts = shared.up_parts, kDown_parts = shared.down_parts;
  static constexpr bool kResident = kSlots == kChunks;  // every chunk has its slot: loaded once
  static constexpr bool kWhole_blocks = kDim % block_k == 0;
  static constexpr int kSums = kChunk * (kGated ? 2 : 1);  // columns of the first product
  static constexpr int kBox_cols = kDim / 32 * 32;  // of y, whose order in a thread the map of W2 permutes
  // One instruction has at most 256 columns: y in two pieces.
  static constexpr int kY_first = kDim > 256 ? (kDim / 2 + 31) / 32 * 32 : kDim, kY_second = kDim - kY_first;

  static_assert(kDim % 8 == 0 && kHidden % 8 == 0 && kDim >= 64 && kDim <= 320, "widths");
  static_assert(kChunk % block_k == 0 && kSums <= 256 && kWarpgroups >= 1 && kWarpgroups <= 4, "tile");
  static_assert(kLag >= 0 && kLag <= kK_blocks, "lag");
  static_assert(shared.total <= shared_limit, "shared memory");
};

// Barriers: a part of a slot filled, and read by every warp; a warpgroup's x filled, and read by its warps.
template <class N>
INGOT_DEVICE u32 up_full(u32 shared, int slot, int part) {
  return shared + N::shared.barriers + 8 * (slot * (N::kUp_parts + N::kDown_parts) + part);
}
template <class N>
INGOT_DEVICE u32 down_full(u32 shared, int slot, int part) {
  return up_full<N>(shared, slot, N::kUp_parts + part);
}
template <class N>
INGOT_DEVICE u32 up_empty(u32 shared, int slot, int part) {
  return up_full<N>(shared, N::kSlots + slot, part);
}
template <class N>
INGOT_DEVICE u32 down_empty(u32 shared, int slot, int part) {
  return down_full<N>(shared, N::kSlots + slot, part);
}
template <class N>
INGOT_DEVICE u32 x_full(u32 shared, int warpgroup) {
  return up_full<N>(shared, 2 * N::kSlots, warpgroup);
}
template <class N>
INGOT_DEVICE u32 x_empty(u32 shared, int warpgroup) {
  return x_full<N>(shared, N::kWarpgroups + warpgroup);
}
/// One thread, before anyone waits.
template <class N>
INGOT_DEVICE void init_narrow_barriers(u32 shared) {
  for (int s = 0; s < N::kSlots; ++s) {
    for (int p = 0; p < N::kUp_parts + N::kDown_parts; ++p) {
      barrier_init(up_full<N>(shared, s, p), 1);
      barrier_init(up_empty<N>(shared, s, p), 4 * N::kWarpgroups);
    }
  }
  for (int w = 0; w < N::kWarpgroups; ++w) {
    barrier_init(x_full<N>(shared, w), 1);
    barrier_init(x_empty<N>(shared, w), 4);
  }
  barrier_init_fence();
}

// Loads, each by one thread.
template <class N>
INGOT_DEVICE void load_up_part(const NarrowArgs& args, u32 shared, int slot, int part, int chunk) {
  const int begin = part == 0 ? 0 : N::shared.first_k_blocks;
  const int end = part == 0 ? N::shared.first_k_blocks : N::kK_blocks;
  const u32 to = shared + N::shared.up + (slot * N::kK_blocks + begin) * N::shared.up_block_bytes;
  const u32 barrier = up_full<N>(shared, slot, part);
  barrier_expect(barrier, (end - begin) * N::shared.up_block_bytes);
  if constexpr (N::kWhole_blocks) {
    load_box(to, part == 0 ? args.maps.up_first : args.maps.up_rest, barrier, 0, chunk * N::kChunk, 0, begin);
  } else {
    for (int k = begin; k < end; ++k)
      load_box(to + (k - begin) * N::shared.up_block_bytes, args.maps.up_first, barrier, k * block_k,
               chunk * N::kChunk, 0, 0);
  }
}
template <class N>
INGOT_DEVICE void load_down_part(const NarrowArgs& args, u32 shared, int slot, int part, int chunk) {
  const u32 to = shared + N::shared.down + (slot * N::kDown_parts + part) * N::shared.down_part_bytes;
  const u32 barrier = down_full<N>(shared, slot, part);
  const int column = chunk * N::kChunk + part * block_k;
  barrier_expect(barrier, N::shared.down_part_bytes);
  load_box(to, args.maps.down, barrier, column, 0, 0, 0, 0);
  if constexpr (N::kBox_cols < N::kDim)
    load_box<false>(to + N::kBox_cols * 128, args.maps.down_tail, barrier, column, N::kBox_cols, 0);
}
template <class N>
INGOT_DEVICE int row_of(int tile, int warpgroup) {
  return tile * N::kRows + warpgroup * 64;
}
/// x of a warpgroup's tokens of `tile`; those of the block's next one into L2.
template <class N>
INGOT_DEVICE void load_tokens(const NarrowArgs& args, u32 shared, int warpgroup, int tile) {
  const u32 to = shared + warpgroup * N::shared.x_bytes, barrier = x_full<N>(shared, warpgroup);
  const int row = row_of<N>(tile, warpgroup), next_row = row_of<N>(tile + int(gridDim.x), warpgroup);
  barrier_expect(barrier, N::shared.x_bytes);
  if constexpr (N::kWhole_blocks) {
    load_box(to, args.maps.x, barrier, 0, row, 0);
    if (next_row < args.tokens) prefetch_box(args.maps.x, 0, next_row, 0);
  } else {
    for (int k = 0; k < N::kK_blocks; ++k) load_box(to + k * 8192, args.maps.x, barrier, k * block_k, row, 0);
    if (next_row < args.tokens)
      for (int k = 0; k < N::kK_blocks; ++k) prefetch_box(args.maps.x, k * block_k, next_row, 0);
  }
}

/// All threads: biases in float32, zeros beyond the tensors. Gated: of two columns the two of the first
/// matrix, then those of the second.
template <class N>
INGOT_DEVICE void fill_biases(const NarrowArgs& args, u32 shared) {
  const auto value = [](const void* bias, int i) {
    return N::Element::value(device::load_constant(static_cast<const u16*>(bias) + i));
  };
  if constexpr (N::kUp_bias) {
    const void* const first = N::kGated && N::kGate_first ? args.epilogue.gate_bias : args.epilogue.up_bias;
    const void* const second = N::kGate_first ? args.epilogue.up_bias : args.epilogue.gate_bias;
    for (int i = threadIdx.x; i < N::kChunks * N::kChunk; i += 128 * N::kWarpgroups) {
      const u32 at = shared + N::shared.up_bias + (N::kGated ? (i / 2 * 4 + i % 2) : i) * 4;
      store_shared(at, i < N::kHidden ? value(first, i) : 0.f);
      if constexpr (N::kGated) store_shared(at + 8, i < N::kHidden ? value(second, i) : 0.f);
    }
  }
  if constexpr (N::kDown_bias) {
    for (int i = threadIdx.x; i < N::kDim; i += 128 * N::kWarpgroups)
      store_shared(shared + N::shared.down_bias + i * 4, value(args.epilogue.down_bias, i));
  }
}

}  // namespace sm90
}  // namespace ingot
