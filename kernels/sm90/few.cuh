// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) for few tokens, where reading W is the work: output features are the rows
// of the instruction and tokens its columns, so that a tile is as narrow as the tokens are few. One tile a block, one
// warp loads, one or more warpgroups multiply. A cluster either shares the loads of x between blocks of different
// features, or holds parts of K whose float32 sums go to the block that owns a slice of the features and are added there
// in order: the same bits every time. Gated: a tile's rows are gate and up in groups of eight.
#pragma once
#include "sm90/following.cuh"
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"
#include "sm90/steps.cuh"
#include "sm90/wgmma.cuh"

namespace ingot::sm90 {

struct FewMaps {
  TensorMap w;  // {kK, kN}, box {64, rows}; gated: {kK, 8, 2, kN / 8}, box {64, 8, 2, rows / 16}
  TensorMap x;  // {kK, tokens}, box {64, tokens of the tile / share}
};

struct FewArgs {
  const void* bias;         // [kN] 16-bit values; gated: of the matrix that comes first in the interleaving
  const void* bias_second;  // gated: of the other
  void* y;                  // [tokens, kN], rows y_stride elements apart; 16-byte aligned, the stride a multiple of 8
  long long y_stride;
  int tokens;
  int prefetch;  // bring the block's weights into L2 ahead of the ring
  Following following;
};

template <class Element_, class Steps_, int kN_, int kK_, bool kGated_, bool kGate_first_, bool kBias_,
          int kFeature_warpgroups, int kK_warpgroups_, int kTokens_, int kStages_, int kShare_, int kSplits_>
struct Few {
  using Element = Element_;
  using Steps = Steps_;
  static constexpr FewTile tile{kFeature_warpgroups, kK_warpgroups_, kTokens_, kStages_, kShare_, kSplits_};
  static constexpr FewLayout shared = layout(tile, kGated_);
  static constexpr int kN = kN_, kK = kK_, kTokens = kTokens_, kStages = kStages_, kShare = kShare_, kSplits = kSplits_;
  static constexpr bool kGated = kGated_, kGate_first = kGate_first_, kBias = kBias_;
  static constexpr int kRows = rows(tile), kThreads = threads(tile), kMultiplying = multiplying_threads(tile);
  static constexpr int kOut_rows = kGated ? kRows / 2 : kRows;  // output features of a tile
  static constexpr int kK_blocks = (kK + block_k - 1) / block_k;
  static constexpr int kFeature_tiles = (kN + kOut_rows - 1) / kOut_rows;

  static_assert(kN % 8 == 0 && kK % 8 == 0, "dim and hidden are multiples of 8");
  static_assert(kShare == 1 || kSplits == 1, "a cluster shares x or splits K");
  static_assert(kTokens % 8 == 0 && kTokens <= 256 && kTokens / kShare % 8 == 0, "columns of a tile");
  static_assert(kK_blocks >= kSplits * kK_warpgroups_ && kStages >= kK_warpgroups_, "every warpgroup has a block of K");
  static_assert(shared.sum_rows % (kGated ? 16 : 8) == 0, "rows of a slice");
  static_assert(shared.total <= shared_limit, "shared memory");
};

/// A block's place: which features, tokens and part of K.
struct FewPlace {
  u32 shared, rank;
  int feature_tile, token_tile, k_begin, k_end;
};

template <class F>
INGOT_DEVICE u32 few_full(const FewPlace& p, int stage) {
  return p.shared + F::shared.barriers + 8 * stage;
}
template <class F>
INGOT_DEVICE u32 few_empty(const FewPlace& p, int stage) {
  return p.shared + F::shared.barriers + 8 * (F::kStages + stage);
}
template <class F>
INGOT_DEVICE u32 few_summed(const FewPlace& p) {
  return p.shared + F::shared.barriers + 8 * (2 * F::kStages);
}

/// One thread: weights of the first stages at once, x when the kernel before has finished, then stage by stage.
template <class F>
INGOT_DEVICE void few_produce(const FewMaps& maps, const FewArgs& args, const FewPlace& p) {
  const auto load_w = [&](int stage, int k_block) {
    const u32 to = p.shared + stage * F::shared.stage_bytes;
    if constexpr (F::kGated)
      load_interleaved_box<false>(to, maps.w, few_full<F>(p, stage), k_block * block_k,
                                  p.feature_tile * (F::kRows / 16), 0);
    else
      load_box<false>(to, maps.w, few_full<F>(p, stage), k_block * block_k, p.feature_tile * F::kRows, 0);
  };
  const auto load_x = [&](int stage, int k_block) {
    constexpr int kPart = F::kTokens / F::kShare;
    const int part = F::kShare > 1 ? int(p.rank) * kPart : 0;
    load_box<(F::kShare > 1)>(p.shared + stage * F::shared.stage_bytes + F::shared.weight_bytes + part * (block_k * 2),
                              maps.x, few_full<F>(p, stage), k_block * block_k, p.token_tile * F::kTokens + part,
                              u16((1 << F::kShare) - 1));
  };
  const int count = p.k_end - p.k_begin, ahead = min(F::kStages, count);
  for (int i = 0; i < ahead; ++i) {
    barrier_expect(few_full<F>(p, i), F::shared.stage_bytes);
    load_w(i, p.k_begin + i);
  }
  if (args.prefetch) {
    for (int k = p.k_begin + ahead; k < p.k_end; ++k) {
      if constexpr (F::kGated)
        prefetch_interleaved_box(maps.w, k * block_k, p.feature_tile * (F::kRows / 16));
      else
        prefetch_box(maps.w, k * block_k, p.feature_tile * F::kRows);
    }
  }
  wait_for_previous_kernel();
  for (int i = 0; i < ahead; ++i) load_x(i, p.k_begin + i);
  if (args.following.bytes > 0)
    for (int i = 0; i < count; ++i) prefetch_following(args.following, i, int(blockIdx.x), int(gridDim.x));
  int stage = 0;
  u32 phase = 0;
  for (int i = ahead; i < count; ++i) {
    barrier_wait(few_empty<F>(p, stage), phase);
    barrier_expect(few_full<F>(p, stage), F::shared.stage_bytes);
    load_w(stage, p.k_begin + i);
    load_x(stage, p.k_begin + i);
    if (++stage == F::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
}

/// A warpgroup: its 64 weight rows times all tokens, over every kK_warpgroups-th block of K.
template <class F>
INGOT_DEVICE void few_multiply(float (&acc)[F::kTokens / 2], const FewPlace& p, int feature_warpgroup, int k_warpgroup) {
  constexpr int kStride = F::tile.k_warpgroups;
  const int thread = threadIdx.x & 127, count = p.k_end - p.k_begin;
  const u64 w0 = matrix_descriptor(p.shared + feature_warpgroup * (64 * 128));
  const u64 x0 = matrix_descriptor(p.shared + F::shared.weight_bytes);
  u32 release_barrier = few_empty<F>(p, 0);
  if constexpr (F::kShare > 1) release_barrier = remote_address(release_barrier, thread < F::kShare ? thread : p.rank);
  // Stages that are not filled again need not be handed back.
  const auto release = [&](int stage, int i) {
    if (thread >= F::kShare || i + F::kStages >= count) return;
    if constexpr (F::kShare > 1)
      barrier_arrive_remote(release_barrier + 8 * stage);
    else
      barrier_arrive(release_barrier + 8 * stage);
  };
  int stage = k_warpgroup % F::kStages, previous = 0;
  u32 phase = (k_warpgroup / F::kStages) & 1;
#pragma unroll 1
  for (int i = k_warpgroup; i < count; i += kStride) {
    barrier_wait(few_full<F>(p, stage), phase);
    wgmma_fence();
    const u64 offset = u64(stage * (F::shared.stage_bytes >> 4));
#pragma unroll
    for (int k16 = 0; k16 < 4; ++k16)
      Wgmma<F::kTokens>::template multiply<typename F::Element>(acc, w0 + offset + k16 * 2, x0 + offset + k16 * 2,
                                                                (i != k_warpgroup) | (k16 != 0));
    wgmma_commit();
    wgmma_wait<1>();
    if (i != k_warpgroup) release(previous, i - kStride);
    previous = stage;
    stage += kStride;
    if (stage >= F::kStages) {
      stage -= F::kStages;
      phase ^= 1;
    }
  }
  wgmma_wait<0>();
  wgmma_pin(acc);
}

/// Byte offset in the exchange of the sum of row `row` of a slice and column `token`, from source `slot`.
template <class F>
INGOT_DEVICE u32 sum_offset(int slot, int row, int token) {
  constexpr int kGroup_rows = F::kGated ? 16 : 8;
  return u32(slot * F::shared.sum_slot_floats + row * F::shared.sum_pitch + row / kGroup_rows * F::shared.sum_skew + token) *
         4;
}

/// A warpgroup: sends its sums to the blocks that own the rows.
template <class F>
INGOT_DEVICE void few_send(const float (&acc)[F::kTokens / 2], const FewPlace& p, int feature_warpgroup, int k_warpgroup) {
  const int thread = threadIdx.x & 127, lane = thread & 31;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = feature_warpgroup * 64 + (thread >> 5) * 16 + half * 8 + (lane >> 2);
    const int owner = row / F::shared.sum_rows, slot = int(p.rank) * F::tile.k_warpgroups + k_warpgroup;
    u32 to = p.shared + F::shared.sums +
             sum_offset<F>(F::kSplits > 1 ? slot : k_warpgroup, row - owner * F::shared.sum_rows, 2 * (lane & 3));
    u32 barrier = few_summed<F>(p);
    if constexpr (F::kSplits > 1) {
      to = remote_address(to, owner);
      barrier = remote_address(barrier, owner);
    }
#pragma unroll
    for (int j = 0; j < F::kTokens / 8; ++j) {
      if constexpr (F::kSplits > 1)
        store_remote(to + 32 * j, acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1], barrier);
      else
        store_shared(to + 32 * j, acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1]);
    }
  }
}

/// All multiplying threads: add the slots in order, finish, store. An item is eight output features of one token.
template <class F>
INGOT_DEVICE void few_finish(const FewArgs& args, const FewPlace& p, int thread) {
  using Steps = typename F::Steps;
  constexpr int kGroup_rows = F::kGated ? 16 : 8, kGroups = F::shared.sum_rows / kGroup_rows;
  const u32 sums = p.shared + F::shared.sums;
  const int slice_row = F::kSplits > 1 ? int(p.rank) * F::shared.sum_rows : 0;
  for (int item = thread; item < kGroups * F::kTokens; item += F::kMultiplying) {
    const int token = item / kGroups, group = item - token * kGroups;
    const int y_row = p.token_tile * F::kTokens + token;
    const int y_col = p.feature_tile * F::kOut_rows + (slice_row / kGroup_rows + group) * 8;
    if (y_row >= args.tokens || y_col >= F::kN) continue;
    float v[kGroup_rows];
#pragma unroll
    for (int r = 0; r < kGroup_rows; ++r) {
      const int row = group * kGroup_rows + r;
      v[r] = load_shared(sums + sum_offset<F>(0, row, token));
#pragma unroll
      for (int slot = 1; slot < F::shared.sum_slots; ++slot) v[r] += load_shared(sums + sum_offset<F>(slot, row, token));
      if constexpr (F::kBias) v[r] += load_shared(p.shared + F::shared.bias + (slice_row + row) * 4);
    }
    u32 packed[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Pair a{v[2 * i], v[2 * i + 1]};
      if constexpr (F::kGated) {
        const Pair b{v[8 + 2 * i], v[8 + 2 * i + 1]};
        packed[i] = Steps::gated(Steps::rounded(F::kGate_first ? a : b), Steps::rounded(F::kGate_first ? b : a));
      } else {
        packed[i] = Steps::plain_from_sum(a);
      }
    }
    *reinterpret_cast<uint4*>(static_cast<u16*>(args.y) + y_row * args.y_stride + y_col) =
        make_uint4(packed[0], packed[1], packed[2], packed[3]);
  }
}

/// The kernel. Grid: kFeature_tiles rounded up to the share, times token tiles, times splits; ranks of a cluster adjacent.
template <class F>
INGOT_DEVICE void few(const FewMaps& maps, const FewArgs& args) {
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  constexpr int kFeature_blocks = (F::kFeature_tiles + F::kShare - 1) / F::kShare * F::kShare;
  const int thread = threadIdx.x, warp = __shfl_sync(0xffffffffu, thread >> 5, 0);
  FewPlace p;
  p.shared = shared_address(dynamic_shared);
  p.rank = F::kShare * F::kSplits > 1 ? cluster_rank() : 0;
  const int tile = int(blockIdx.x) / F::kSplits;
  p.token_tile = tile / kFeature_blocks;
  p.feature_tile = tile - p.token_tile * kFeature_blocks;
  const int split = F::kSplits > 1 ? int(p.rank) : 0;
  p.k_begin = split * F::kK_blocks / F::kSplits;
  p.k_end = (split + 1) * F::kK_blocks / F::kSplits;

  const bool loader = warp == F::kMultiplying / 32;
  if (loader && elect_one()) {
    prefetch_map(maps.w);
    prefetch_map(maps.x);
    for (int s = 0; s < F::kStages; ++s) {
      barrier_init(few_full<F>(p, s), 1);
      barrier_init(few_empty<F>(p, s), F::tile.feature_warpgroups * F::kShare);
    }
    barrier_init(few_summed<F>(p), 1);
    barrier_init_fence();
    if constexpr (F::kSplits > 1)
      barrier_expect(few_summed<F>(p), F::shared.sum_slots * F::shared.sum_rows * F::kTokens * 4);
  }
  __syncwarp();
  if constexpr (F::kShare * F::kSplits > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
  launch_dependents();

  if (loader) {
    if (elect_one()) few_produce<F>(maps, args, p);
    __syncwarp();
  } else {
    const int warpgroup = warp / 4;
    const int feature_warpgroup = warpgroup % F::tile.feature_warpgroups;
    const int k_warpgroup = warpgroup / F::tile.feature_warpgroups;
    if constexpr (F::kBias) {
      for (int r = thread; r < F::kRows; r += F::kMultiplying) {
        const int feature = p.feature_tile * F::kOut_rows + (F::kGated ? r / 16 * 8 + r % 8 : r);
        const void* base = F::kGated && (r / 8) % 2 != 0 ? args.bias_second : args.bias;
        store_shared(p.shared + F::shared.bias + r * 4,
                     feature < F::kN ? load_element<typename F::Element>(base, feature) : 0.f);
      }
    }
    float acc[F::kTokens / 2];
    few_multiply<F>(acc, p, feature_warpgroup, k_warpgroup);
    // The sums may lie over the ring, and the biases were written by other threads.
    named_barrier_sync(1, F::kMultiplying);
    few_send<F>(acc, p, feature_warpgroup, k_warpgroup);
    if constexpr (F::kSplits > 1)
      barrier_wait(few_summed<F>(p), 0);
    else
      named_barrier_sync(1, F::kMultiplying);
    few_finish<F>(args, p, thread);
  }
  // Neighbours may still write into, or arrive at, this block's shared memory.
  if constexpr (F::kShare > 1) {
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace ingot::sm90
