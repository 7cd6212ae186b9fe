// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, dim] = f(x W1^T + b1) W2^T + b2 in one launch for narrow models: a warpgroup holds 64 tokens and
// all of y in registers, and walks hidden in chunks. A chunk's sums are activated where they are, in
// registers, and are there the first operand of the second product (as attention kernels do with P V), so
// hidden never leaves the multiprocessor. Persistent blocks; weights go round in shared memory, and the
// warpgroup that is last to read a part asks for the next. A finished tile is stored under the first product
// of the next. Tokens, hidden and dim beyond the tensors are loaded as zeros, which add nothing.
#pragma once
#include "epilogue.cuh"
#include "mlp_args.cuh"
#include "sm90/layout.cuh"
#include "sm90/narrow_layout.cuh"
#include "sm90/ptx.cuh"
#include "sm90/wgmma.cuh"

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

  static_assert(kDim % 8 == 0 && kHidden % 8 == 0 && kDim >= 32 && kDim <= 320, "widths");
  static_assert(kChunk % block_k == 0 && kSums <= 256 && kWarpgroups >= 1 && kWarpgroups <= 4, "tile");
  static_assert(kLag >= 0 && kLag <= kK_blocks, "lag");
  static_assert(shared.total <= shared_limit, "shared memory");
};

/// y of a warpgroup's 64 tokens. A group is eight columns: four values of a thread, as wgmma leaves them.
template <class N, bool kTwo = (N::kY_second > 0)>
struct NarrowSums {
  float first[N::kY_first / 2];
  template <int kGroup>
  INGOT_DEVICE float& value(int i) {
    return first[4 * kGroup + i];
  }
  INGOT_DEVICE void multiply(const u32 (&a)[4], u64 b, int accumulate) {
    Wgmma<N::kY_first>::template multiply<typename N::Element>(first, a, b, accumulate);
  }
  INGOT_DEVICE void pin() { wgmma_pin(first); }
};
template <class N>
struct NarrowSums<N, true> {
  float first[N::kY_first / 2], second[N::kY_second / 2];
  template <int kGroup>
  INGOT_DEVICE float& value(int i) {
    if constexpr (kGroup < N::kY_first / 8)
      return first[4 * kGroup + i];
    else
      return second[4 * kGroup - N::kY_first / 2 + i];
  }
  INGOT_DEVICE void multiply(const u32 (&a)[4], u64 b, int accumulate) {
    Wgmma<N::kY_first>::template multiply<typename N::Element>(first, a, b, accumulate);
    Wgmma<N::kY_second>::template multiply<typename N::Element>(second, a, b + N::kY_first * 8, accumulate);
  }
  INGOT_DEVICE void pin() {
    wgmma_pin(first);
    wgmma_pin(second);
  }
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
/// x of a warpgroup's tokens from `row`, and the next tile's into L2.
template <class N>
INGOT_DEVICE void load_tokens(const NarrowArgs& args, u32 shared, int warpgroup, int row, int next_row) {
  const u32 to = shared + warpgroup * N::shared.x_bytes, barrier = x_full<N>(shared, warpgroup);
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

/// What lies between the linears, of k16 step `step` of a chunk: two column groups of sums become a piece of
/// the second product's first operand. biases: of the chunk, this thread's of group 0.
template <class N>
INGOT_DEVICE void activate(u32 (&piece)[4], const float (&sums)[N::kSums / 2], u32 biases, int step) {
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    const int group = 2 * step + g;
    device::Outputs<4, N::kGated> values;
    float bias[4] = {};
    if constexpr (N::kUp_bias && N::kGated) load_shared(biases + group * 64, bias);
    if constexpr (N::kUp_bias && !N::kGated) load_shared(biases + group * 32, bias[0], bias[1]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float first = sums[4 * group + i] + bias[i % 2];
      if constexpr (N::kGated) {
        const float second = sums[N::kChunk / 2 + 4 * group + i] + bias[2 + i % 2];
        values.gate[i] = N::kGate_first ? first : second;
        values.up[i] = N::kGate_first ? second : first;
      } else {
        values.up[i] = first;
      }
    }
    if constexpr (N::kRounds) {
      device::round_all<typename N::Element>(values.up);
      if constexpr (N::kGated) device::round_all<typename N::Element>(values.gate);
    }
    N::Epilogue::apply({}, {}, values);
    piece[2 * g] = N::Element::pair_bits(values.up[0], values.up[1]);
    piece[2 * g + 1] = N::Element::pair_bits(values.up[2], values.up[3]);
  }
}

/// Two neighbouring columns of group kGroup: of a row (half 0) or of the one eight below.
template <class N, int kGroup>
INGOT_DEVICE u32 pair_of(NarrowSums<N>& y, int half) {
  return N::Element::pair_bits(y.template value<kGroup>(2 * half), y.template value<kGroup>(2 * half + 1));
}
/// Columns 32 kBlock + 8 (lane % 4) and the seven behind them.
template <class N, int kBlock>
INGOT_DEVICE device::Bytes16 piece_of(NarrowSums<N>& y, int half) {
  return {{pair_of<N, 4 * kBlock>(y, half), pair_of<N, 4 * kBlock + 1>(y, half),
           pair_of<N, 4 * kBlock + 2>(y, half), pair_of<N, 4 * kBlock + 3>(y, half)}};
}

/// Where a tile's y begins: the second linear's bias. biases: this thread's in the whole blocks of 32
/// columns, and in the tail behind them, where a thread holds two neighbours of each group.
template <class N, int kGroup = 0>
INGOT_DEVICE void start_from_bias(NarrowSums<N>& y, u32 biases, u32 tail_biases) {
  if constexpr (kGroup < N::kDim / 8) {
    float bias[2];
    if constexpr (kGroup < N::kBox_cols / 8)
      load_shared(biases + kGroup / 4 * 128 + kGroup % 4 * 8, bias[0], bias[1]);
    else
      load_shared(tail_biases + kGroup * 32, bias[0], bias[1]);
#pragma unroll
    for (int i = 0; i < 4; ++i) y.template value<kGroup>(i) = bias[i % 2];
    start_from_bias<N, kGroup + 1>(y, biases, tail_biases);
  }
}

/// A thread's part of a finished tile. Lanes of neighbouring rows exchange halves of two column blocks, so
/// that eight lanes write 128 bytes of one row. to: y of this thread's column in block 0, of the even row;
/// rows: of the tensor from that row on.
template <class N, int kBlock = 0>
INGOT_DEVICE void store_blocks(NarrowSums<N>& y, u16* to, i64 stride, int rows, bool odd) {
  constexpr int kBlocks = N::kBox_cols / 32;
  if constexpr (kBlock < kBlocks) {
    constexpr int kPair = kBlock + 1 < kBlocks ? 2 : 1;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const device::Bytes16 one = piece_of<N, kBlock>(y, half);
      u16* const at = to + 8 * half * stride + 32 * kBlock;
      if constexpr (kPair == 2) {
        const device::Bytes16 two = piece_of<N, kBlock + 1>(y, half);
        device::Bytes16 even_row, odd_row;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const u32 other = __shfl_xor_sync(0xffffffffu, odd ? one.word[i] : two.word[i], 4);
          even_row.word[i] = odd ? other : one.word[i];
          odd_row.word[i] = odd ? two.word[i] : other;
        }
        if (8 * half < rows) device::store_16_bytes(at + (odd ? 32 : 0), even_row);
        if (8 * half + 1 < rows) device::store_16_bytes(at + (odd ? 32 : 0) + stride, odd_row);
      } else {
        if (8 * half + odd < rows) device::store_16_bytes(at + odd * stride, one);
      }
    }
    store_blocks<N, kBlock + kPair>(y, to, stride, rows, odd);
  }
}
/// The columns behind the last whole block of 32. to, rows: of this thread's first row and of its columns.
template <class N, int kGroup = N::kBox_cols / 8>
INGOT_DEVICE void store_tail(NarrowSums<N>& y, u16* to, i64 stride, int rows) {
  if constexpr (kGroup < N::kDim / 8) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (8 * half < rows)
        *reinterpret_cast<u32*>(to + 8 * half * stride + 8 * kGroup) = pair_of<N, kGroup>(y, half);
    store_tail<N, kGroup + 1>(y, to, stride, rows);
  }
}
/// A thread: its part of a finished tile whose tokens begin at `row`.
template <class N>
INGOT_DEVICE void store_tile(NarrowSums<N>& y, const NarrowArgs& args, int row) {
  const int thread = int(thread_anew()), lane = thread & 31, mine = row + thread / 32 * 16 + lane / 4;
  const i64 stride = args.epilogue.y_stride;
  u16* const to = static_cast<u16*>(args.epilogue.y) + mine * stride;
  const bool odd = (mine & 1) != 0;
  store_blocks<N>(y, to - odd * stride + 8 * (lane & 3), stride, args.tokens - mine + odd, odd);
  store_tail<N>(y, to + 2 * (lane & 3), stride, args.tokens - mine);
}

/// A warpgroup: its 64 tokens of every tile of the block.
template <class N>
INGOT_DEVICE void run_warpgroup(const NarrowArgs& args, u32 shared, int warpgroup) {
  using Element = typename N::Element;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0) & 3;
  const bool loads_weights = warpgroup == N::kWarpgroups - 1;
  const int stride = gridDim.x;
  const auto row_of = [&](int tile) { return tile * N::kRows + warpgroup * 64; };
  const auto release = [&](u32 barrier) {
    if ((thread_anew() & 31) == 0) barrier_arrive(barrier);
  };
  const u64 x0 = matrix_descriptor(shared + warpgroup * N::shared.x_bytes);
  const u64 up0 = matrix_descriptor(shared + N::shared.up),
            down0 = matrix_descriptor(shared + N::shared.down);

  int tile = blockIdx.x;
  if (warp == 3 && elect_one()) load_tokens<N>(args, shared, warpgroup, row_of(tile), row_of(tile + stride));
  __syncwarp();

  NarrowSums<N> y;
  int slot = 0;
  u32 phase = 0, x_phase = 0;
  for (; tile * N::kRows < args.tokens; tile += stride, x_phase ^= 1) {
    const bool more_tiles = (tile + stride) * N::kRows < args.tokens;
    barrier_wait(x_full<N>(shared, warpgroup), x_phase);
#pragma unroll 1
    for (int chunk = 0; chunk < N::kChunks; ++chunk) {
      // The chunk that comes into this slot next.
      const int next = chunk + N::kSlots < N::kChunks ? chunk + N::kSlots : chunk + N::kSlots - N::kChunks;
      const bool refill = !N::kResident && loads_weights && (chunk + N::kSlots < N::kChunks || more_tiles);
      const u64 up = up0 + u64(slot * (N::kK_blocks * N::shared.up_block_bytes / 16));
      const u64 down = down0 + u64(slot * (N::kDown_parts * N::shared.down_part_bytes / 16));
      const auto refill_up = [&](int part) {
        if (refill && warp == part) {
          if (elect_one()) {
            barrier_wait(up_empty<N>(shared, slot, part), phase);
            load_up_part<N>(args, shared, slot, part, next);
          }
          __syncwarp();
        }
      };
      const auto refill_down = [&](int part) {
        if (refill && warp == 2 + part) {
          if (elect_one()) {
            barrier_wait(down_empty<N>(shared, slot, part), phase);
            load_down_part<N>(args, shared, slot, part, next);
          }
          __syncwarp();
        }
      };

      // With one slot no warpgroup can be a chunk ahead of another; else they keep the distance they start
      // with.
      const bool keeps_lag = N::kLag > 0 && (N::kSlots == 1 || (tile == int(blockIdx.x) && chunk == 0));
      if (keeps_lag && warpgroup > 0) named_barrier_sync(warpgroup, 256);
      float sums[N::kSums / 2];
#pragma unroll
      for (int k = 0; k < N::kK_blocks; ++k) {
        if (k == 0) barrier_wait(up_full<N>(shared, slot, 0), phase);
        if (N::kUp_parts == 2 && k == N::shared.first_k_blocks)
          barrier_wait(up_full<N>(shared, slot, 1), phase);
        wgmma_fence();
#pragma unroll
        for (int k16 = 0; k16 < 4; ++k16) {
          if (k * block_k + k16 * 16 < N::kDim)
            Wgmma<N::kSums>::template multiply<Element>(sums, x0 + k * 512 + k16 * 2,
                                                        up + k * (N::shared.up_block_bytes / 16) + k16 * 2,
                                                        (k | k16) != 0);
        }
        wgmma_commit();
        if (keeps_lag && k == N::kLag - 1 && warpgroup < N::kWarpgroups - 1)
          named_barrier_arrive(warpgroup + 1, 256);
        if (N::kUp_parts == 2 && k == N::shared.first_k_blocks) {
          wgmma_wait<1>();
          if constexpr (!N::kResident) release(up_empty<N>(shared, slot, 0));
          refill_up(0);
        }
      }
      if (chunk == 0) {
        wgmma_wait<N::kK_blocks>();  // waits for nothing: shows the compiler that y is not being written
        if (tile >= stride) store_tile<N>(y, args, (tile - stride) * N::kRows);
        if constexpr (N::kDown_bias) {
          const u32 biases = shared + N::shared.down_bias, column = thread_anew() & 3;
          start_from_bias<N>(y, biases + column * 32, biases + column * 8);
        }
      }
      wgmma_wait<0>();
      wgmma_pin(sums);
      if constexpr (!N::kResident) release(up_empty<N>(shared, slot, N::kUp_parts - 1));
      refill_up(N::kUp_parts - 1);
      if (chunk == N::kChunks - 1) {
        release(x_empty<N>(shared, warpgroup));
        if (warp == 3 && more_tiles) {
          if (elect_one()) {
            barrier_wait(x_empty<N>(shared, warpgroup), x_phase);
            load_tokens<N>(args, shared, warpgroup, row_of(tile + stride), row_of(tile + 2 * stride));
          }
          __syncwarp();
        }
      }

      // Half of the chunk is activated while the other half multiplies.
      constexpr int kSteps = N::kChunk / 32;  // of a half
      const u32 biases = shared + N::shared.up_bias + chunk * (N::kChunk * (N::kGated ? 8 : 4)) +
                         (thread_anew() & 3) * (N::kGated ? 16 : 8);
      u32 pieces[2][kSteps][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) activate<N>(pieces[half][i], sums, biases, half * kSteps + i);
        if (half < N::kDown_parts) barrier_wait(down_full<N>(shared, slot, half), phase);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
          const int step = half * kSteps + i;
          y.multiply(pieces[half][i], down + (step / 4) * (N::shared.down_part_bytes / 16) + (step % 4) * 2,
                     N::kDown_bias | (chunk != 0) | (step != 0));
        }
        wgmma_commit();
      }
      if constexpr (N::kDown_parts == 2) {
        wgmma_wait<1>();
        if constexpr (!N::kResident) release(down_empty<N>(shared, slot, 0));
        refill_down(0);
      }
      wgmma_wait<0>();
      if constexpr (!N::kResident) release(down_empty<N>(shared, slot, N::kDown_parts - 1));
      refill_down(N::kDown_parts - 1);
      y.pin();
      if (N::kSlots == 1 || ++slot == N::kSlots) {
        slot = 0;
        if constexpr (!N::kResident) phase ^= 1;
      }
    }
  }
  if (tile >= stride) store_tile<N>(y, args, (tile - stride) * N::kRows);
}

/// The kernel. Grid: at most one block for each multiprocessor, no more than tiles of tokens.
template <class Shape>
struct Narrow {
  using Args = NarrowArgs;
  static constexpr int threads = sm90::threads(Shape::tile), blocks_per_sm = 1;

  static INGOT_DEVICE void run(const NarrowArgs& args) {
    using N = Shape;
    extern __shared__ __align__(1024) unsigned char ingot_narrow_shared[];
    const u32 shared = device::shared_address(ingot_narrow_shared);
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0),
              warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    device::let_next_kernel_start();
    if (!args.early_weights) device::wait_for_previous_kernel();
    if (warp == 0 && elect_one()) init_narrow_barriers<N>(shared);
    __syncwarp();
    if (warp == 0 && elect_one()) {
      for (int s = 0; s < N::kSlots; ++s) {
        for (int p = 0; p < N::kUp_parts; ++p) load_up_part<N>(args, shared, s, p, s);
        for (int p = 0; p < N::kDown_parts; ++p) load_down_part<N>(args, shared, s, p, s);
      }
    }
    fill_biases<N>(args, shared);
    __syncthreads();
    if (args.early_weights) device::wait_for_previous_kernel();
    run_warpgroup<N>(args, shared, warpgroup);
  }
};

}  // namespace sm90
}  // namespace ingot
