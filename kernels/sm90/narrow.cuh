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
#include "sm90/narrow_loads.cuh"
#include "sm90/wgmma.cuh"

namespace ingot {
namespace sm90 {

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

/// Whether the epilogue ends in the product of two rounded values, and what is before: the product of a pair
/// of 16-bit numbers is then one instruction, and the same number, since that of two 16-bit numbers is exact
/// in float32.
template <class Epilogue>
struct RoundedProduct {
  static constexpr bool value = false;
};
template <class Activation, class T>
struct RoundedProduct<
    device::Chain<device::Activate<Activation, T>, device::RoundActivated<T>, device::Multiply>> {
  static constexpr bool value = true;
  using Before = device::Chain<device::Activate<Activation, T>>;
};

/// What lies between the linears, of k16 step `step` of a chunk: two column groups of sums become a piece of
/// the second product's first operand. biases: of the chunk, this thread's of group 0.
template <class N>
INGOT_DEVICE void activate(u32 (&piece)[4], const float (&sums)[N::kSums / 2], u32 biases, int step) {
  using Element = typename N::Element;
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
    if constexpr (N::kRounds && RoundedProduct<typename N::Epilogue>::value) {
      device::round_all<Element>(values.gate);
      RoundedProduct<typename N::Epilogue>::Before::apply({}, {}, values);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        piece[2 * g + i] =
            product_of_pairs<is_bf16<Element>>(Element::pair_bits(values.gate[2 * i], values.gate[2 * i + 1]),
                                               Element::pair_bits(values.up[2 * i], values.up[2 * i + 1]));
    } else {
      if constexpr (N::kRounds) {
        device::round_all<Element>(values.up);
        if constexpr (N::kGated) device::round_all<Element>(values.gate);
      }
      N::Epilogue::apply({}, {}, values);
      piece[2 * g] = Element::pair_bits(values.up[0], values.up[1]);
      piece[2 * g + 1] = Element::pair_bits(values.up[2], values.up[3]);
    }
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

/// A part of the weights in its slot: which, and the parity of its barriers.
struct NarrowSlot {
  int at = 0;
  u32 phase = 0;
};
template <class N>
INGOT_DEVICE void advance(NarrowSlot& slot) {
  if (N::kSlots == 1 || ++slot.at == N::kSlots) {
    slot.at = 0;
    if constexpr (!N::kResident) slot.phase ^= 1;  // resident weights stay what they were filled with
  }
}

/// A warpgroup, and the steps of its walk: 64 tokens of every tile of the block, chunk by chunk of hidden.
template <class N>
struct NarrowWalk {
  using Sums = float[N::kSums / 2];
  const NarrowArgs& args;
  const u32 shared;
  const int warpgroup, warp;  // warp: of the warpgroup

  /// A warp has read what the barrier guards.
  INGOT_DEVICE void release(u32 barrier) const {
    if ((thread_anew() & 31) == 0) barrier_arrive(barrier);
  }
  /// The chunk that comes into a chunk's slot when that is read, and whether there is one.
  static INGOT_DEVICE int next_in_slot(int chunk) {
    return chunk + N::kSlots < N::kChunks ? chunk + N::kSlots : chunk + N::kSlots - N::kChunks;
  }
  /// The last warpgroup, which is behind the others, asks for the weights, each of its warps for a part.
  INGOT_DEVICE bool refills(int chunk, bool more_tiles) const {
    return !N::kResident && warpgroup == N::kWarpgroups - 1 && (chunk + N::kSlots < N::kChunks || more_tiles);
  }
  INGOT_DEVICE void release_up(const NarrowSlot& slot, int part, int chunk, bool more_tiles) const {
    if constexpr (!N::kResident) release(up_empty<N>(shared, slot.at, part));
    if (refills(chunk, more_tiles) && warp == part) {
      if (elect_one()) {
        barrier_wait(up_empty<N>(shared, slot.at, part), slot.phase);
        load_up_part<N>(args, shared, slot.at, part, next_in_slot(chunk));
      }
      __syncwarp();
    }
  }
  INGOT_DEVICE void release_down(const NarrowSlot& slot, int part, int chunk, bool more_tiles) const {
    if constexpr (!N::kResident) release(down_empty<N>(shared, slot.at, part));
    if (refills(chunk, more_tiles) && warp == 2 + part) {
      if (elect_one()) {
        barrier_wait(down_empty<N>(shared, slot.at, part), slot.phase);
        load_down_part<N>(args, shared, slot.at, part, next_in_slot(chunk));
      }
      __syncwarp();
    }
  }
  /// The warpgroup's tokens of `tile` come where those of the one before were read.
  INGOT_DEVICE void release_tokens(u32 phase, bool more, int tile) const {
    release(x_empty<N>(shared, warpgroup));
    if (warp == 3 && more) {
      if (elect_one()) {
        barrier_wait(x_empty<N>(shared, warpgroup), phase);
        load_tokens<N>(args, shared, warpgroup, tile);
      }
      __syncwarp();
    }
  }

  /// Starts the first product of a chunk. keeps_lag: at the distance of `lag` from the warpgroup before;
  /// first_part_read: called when the first of two parts of the weights has been read.
  template <class Read>
  INGOT_DEVICE void start_up(Sums& sums, const NarrowSlot& slot, bool keeps_lag, Read first_part_read) const {
    const u64 x0 = matrix_descriptor(shared + warpgroup * N::shared.x_bytes);
    const u64 up = matrix_descriptor(shared + N::shared.up) +
                   u64(slot.at * (N::kK_blocks * N::shared.up_block_bytes / 16));
    if (keeps_lag && warpgroup > 0) named_barrier_sync(warpgroup, 256);
#pragma unroll
    for (int k = 0; k < N::kK_blocks; ++k) {
      const bool second = N::kUp_parts == 2 && k == N::shared.first_k_blocks;
      if (k == 0) barrier_wait(up_full<N>(shared, slot.at, 0), slot.phase);
      if (second) barrier_wait(up_full<N>(shared, slot.at, 1), slot.phase);
      wgmma_fence();
#pragma unroll
      for (int k16 = 0; k16 < 4; ++k16) {
        if (k * block_k + k16 * 16 < N::kDim)
          Wgmma<N::kSums>::template multiply<typename N::Element>(
              sums, x0 + k * 512 + k16 * 2, up + k * (N::shared.up_block_bytes / 16) + k16 * 2,
              (k | k16) != 0);
      }
      wgmma_commit();
      if (keeps_lag && k == N::kLag - 1 && warpgroup < N::kWarpgroups - 1)
        named_barrier_arrive(warpgroup + 1, 256);
      if (second) {
        wgmma_wait<1>();
        first_part_read();
      }
    }
  }
  /// Under the first product of a tile's first chunk: stores the tile before, and y begins anew.
  INGOT_DEVICE void turn_tile(NarrowSums<N>& y, bool stores, int tile_before) const {
    wgmma_wait<N::kK_blocks>();  // waits for nothing: shows the compiler that y is not being written
    if (stores) store_tile<N>(y, args, tile_before * N::kRows);
    if constexpr (N::kDown_bias) {
      const u32 biases = shared + N::shared.down_bias, column = thread_anew() & 3;
      start_from_bias<N>(y, biases + column * 32, biases + column * 8);
    }
  }
  /// Activates a chunk's sums and starts the second product, half by half.
  INGOT_DEVICE void start_down(NarrowSums<N>& y, const Sums& sums, const NarrowSlot& slot, int chunk) const {
    constexpr int kSteps = N::kChunk / 32;  // of a half
    const u64 down = matrix_descriptor(shared + N::shared.down) +
                     u64(slot.at * (N::kDown_parts * N::shared.down_part_bytes / 16));
    const u32 biases = shared + N::shared.up_bias + chunk * (N::kChunk * (N::kGated ? 8 : 4)) +
                       (thread_anew() & 3) * (N::kGated ? 16 : 8);
    u32 pieces[2][kSteps][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kSteps; ++i) activate<N>(pieces[half][i], sums, biases, half * kSteps + i);
      if (half < N::kDown_parts) barrier_wait(down_full<N>(shared, slot.at, half), slot.phase);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        const int step = half * kSteps + i;
        y.multiply(pieces[half][i], down + (step / 4) * (N::shared.down_part_bytes / 16) + (step % 4) * 2,
                   N::kDown_bias | (chunk != 0) | (step != 0));
      }
      wgmma_commit();
    }
  }
};

/// A warpgroup: its tokens of the block's tiles, the first of which are on their way.
template <class N>
INGOT_DEVICE void run_warpgroup(const NarrowWalk<N>& walk, int tokens) {
  const u32 shared = walk.shared;
  const int warpgroup = walk.warpgroup, stride = gridDim.x;
  NarrowSums<N> y;
  NarrowSlot slot;
  u32 x_phase = 0;
  int tile = blockIdx.x;
  for (; tile * N::kRows < tokens; tile += stride, x_phase ^= 1) {
    const bool more_tiles = (tile + stride) * N::kRows < tokens;
    barrier_wait(x_full<N>(shared, warpgroup), x_phase);
#pragma unroll 1
    for (int chunk = 0; chunk < N::kChunks; ++chunk) {
      // With one slot no warpgroup can be a chunk ahead of another; else they keep the distance they start
      // with.
      const bool keeps_lag = N::kLag > 0 && (N::kSlots == 1 || (tile == int(blockIdx.x) && chunk == 0));
      float sums[N::kSums / 2];
      walk.start_up(sums, slot, keeps_lag, [&] { walk.release_up(slot, 0, chunk, more_tiles); });
      if (chunk == 0) walk.turn_tile(y, tile >= stride, tile - stride);
      wgmma_wait<0>();
      wgmma_pin(sums);
      walk.release_up(slot, N::kUp_parts - 1, chunk, more_tiles);
      if (chunk == N::kChunks - 1) walk.release_tokens(x_phase, more_tiles, tile + stride);
      walk.start_down(y, sums, slot, chunk);
      if constexpr (N::kDown_parts == 2) {
        wgmma_wait<1>();
        walk.release_down(slot, 0, chunk, more_tiles);
      }
      wgmma_wait<0>();
      walk.release_down(slot, N::kDown_parts - 1, chunk, more_tiles);
      y.pin();
      advance<N>(slot);
    }
  }
  if (tile >= stride) store_tile<N>(y, walk.args, (tile - stride) * N::kRows);
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
    const auto load_first_tokens = [&] {
      for (int w = 0; w < N::kWarpgroups; ++w) load_tokens<N>(args, shared, w, blockIdx.x);
    };
    if (!args.early_weights) device::wait_for_previous_kernel();
    if (warp == 0 && elect_one()) {
      init_narrow_barriers<N>(shared);
      if (!args.early_weights) load_first_tokens();
      for (int s = 0; s < N::kSlots; ++s) {
        for (int p = 0; p < N::kUp_parts; ++p) load_up_part<N>(args, shared, s, p, s);
        for (int p = 0; p < N::kDown_parts; ++p) load_down_part<N>(args, shared, s, p, s);
      }
    }
    __syncwarp();
    fill_biases<N>(args, shared);
    __syncthreads();
    if (args.early_weights) {
      device::wait_for_previous_kernel();
      if (warp == 0 && elect_one()) load_first_tokens();
      __syncwarp();
    }
    run_warpgroup<N>({args, shared, warpgroup, warp & 3}, args.tokens);
  }
};

}  // namespace sm90
}  // namespace ingot
