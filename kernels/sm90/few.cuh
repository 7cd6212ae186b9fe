// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) for few tokens, where reading W is the work: output features
// are the rows of the instruction and tokens its columns, so that a tile is as narrow as the tokens are few.
// One tile a block, one warp loads, one or more warpgroups multiply. A cluster either shares the loads of x
// between blocks of different features, or holds parts of K whose float32 sums go to the block that owns a
// slice of the features and are added there in order: the same bits every time. Gated: a tile's rows are gate
// and up in groups of eight.
#pragma once
#include "epilogue.cuh"
#include "linear_args.cuh"
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"
#include "sm90/wgmma.cuh"

namespace ingot {
namespace sm90 {

/// depth() 1. With depth 2, K is split into {64, ..., kK / 64} and the boxes have {64, ..., 2} of it.
struct FewMaps {
  TensorMap w;  // {kK, kN}, box {64, rows}; gated: {kK, 8, 2, kN / 8}, box {64, 8, 2, rows / 16}
  TensorMap x;  // {kK, tokens}, box {64, tokens of the tile / share}
};

struct FewArgs {
  FewMaps maps;
  EpilogueArgs epilogue;  // y and its rows are 16-byte aligned
  int tokens;
  int early_weights;  // stages that get their weights before the kernel before has finished
};

/// What a kernel is compiled for; Epilogue, kRounds and kGate_first as in gemm_pipeline.cuh.
template <class Element_, class Epilogue_, bool kRounds_, int kN_, int kK_, bool kGated_, bool kGate_first_,
          bool kBias_, int kFeature_warpgroups, int kK_warpgroups_, int kTokens_, int kStages_, int kShare_,
          int kSplits_>
struct FewShape {
  using Element = Element_;
  using Epilogue = Epilogue_;
  static constexpr FewTile tile{kFeature_warpgroups, kK_warpgroups_, kTokens_, kStages_, kShare_, kSplits_};
  static constexpr FewLayout shared = layout(tile, kGated_);
  static constexpr int kN = kN_, kK = kK_, kTokens = kTokens_, kShare = kShare_, kSplits = kSplits_;
  static constexpr int kDepth = depth(tile, kK_), kStages = kStages_ / kDepth;  // kDepth blocks of K each
  static constexpr int kStage_bytes = kDepth * shared.stage_bytes,
                       kX = kDepth * shared.weight_bytes;  // of x in a stage
  static constexpr bool kRounds = kRounds_, kGated = kGated_, kGate_first = kGate_first_, kBias = kBias_;
  static constexpr int kRows = rows(tile), kThreads = sm90::threads(tile),
                       kMultiplying = multiplying_threads(tile);
  static constexpr int kOut_rows = kGated ? kRows / 2 : kRows;  // output features of a tile
  static constexpr int kK_blocks = (kK + kDepth * block_k - 1) / (kDepth * block_k);  // stages' worth of K
  static constexpr int kFeature_tiles = (kN + kOut_rows - 1) / kOut_rows;
  static constexpr bool kWhole_k = whole_k(tile);

  static_assert(kN % 8 == 0 && kK % 8 == 0, "dim and hidden are multiples of 8");
  static_assert(kShare == 1 || kSplits == 1, "a cluster shares x or splits K");
  static_assert(kTokens % 8 == 0 && kTokens <= 256 && kTokens / kShare % 8 == 0, "columns of a tile");
  static_assert(kK_blocks >= kSplits * kK_warpgroups_ && kStages >= kK_warpgroups_,
                "every warpgroup has a block of K");
  static_assert(shared.sum_rows % (kGated ? 16 : 8) == 0, "rows of a slice");
  static_assert(shared.total <= shared_limit, "shared memory");
};

/// A block's place: which features, tokens and part of K.
struct FewPosition {
  u32 shared;
  int rank, feature_tile, token_tile, k_begin, k_count;
};
template <class F>
INGOT_DEVICE FewPosition few_position(const void* shared) {
  constexpr int kFeature_blocks = (F::kFeature_tiles + F::kShare - 1) / F::kShare * F::kShare;
  FewPosition p;
  p.shared = device::shared_address(shared);
  p.rank = F::kShare * F::kSplits > 1 ? int(cluster_rank()) : 0;
  const int tile = int(blockIdx.x) / F::kSplits, split = F::kSplits > 1 ? p.rank : 0;
  p.token_tile = tile / kFeature_blocks;
  p.feature_tile = tile - p.token_tile * kFeature_blocks;
  p.k_begin = split * F::kK_blocks / F::kSplits;
  p.k_count = (split + 1) * F::kK_blocks / F::kSplits - p.k_begin;
  return p;
}

// Barriers: a stage filled, a stage read, all sums arrived.
template <class F>
INGOT_DEVICE u32 few_full(const FewPosition& p, int stage) {
  return p.shared + F::shared.barriers + 8 * stage;
}
template <class F>
INGOT_DEVICE u32 few_empty(const FewPosition& p, int stage) {
  return few_full<F>(p, F::kStages + stage);
}
template <class F>
INGOT_DEVICE u32 few_summed(const FewPosition& p) {
  return few_full<F>(p, 2 * F::kStages);
}

template <class F>
INGOT_DEVICE void few_load_w(const FewArgs& args, const FewPosition& p, int stage, int k_block) {
  const u32 to = p.shared + stage * F::kStage_bytes;
  if constexpr (F::kDepth > 1 && F::kGated)
    load_box(to, args.maps.w, few_full<F>(p, stage), 0, 0, 0, p.feature_tile * (F::kRows / 16),
             k_block * F::kDepth);
  else if constexpr (F::kDepth > 1)
    load_box(to, args.maps.w, few_full<F>(p, stage), 0, p.feature_tile * F::kRows, k_block * F::kDepth);
  else if constexpr (F::kGated)
    load_interleaved_box<false>(to, args.maps.w, few_full<F>(p, stage), k_block * block_k,
                                p.feature_tile * (F::kRows / 16), 0);
  else
    load_box<false>(to, args.maps.w, few_full<F>(p, stage), k_block * block_k, p.feature_tile * F::kRows, 0);
}
/// This block's share of the tokens, to every block of a cluster that shares them.
template <class F>
INGOT_DEVICE void few_load_x(const FewArgs& args, const FewPosition& p, int stage, int k_block) {
  constexpr int kPart = F::kTokens / F::kShare;
  const int part = F::kShare > 1 ? p.rank * kPart : 0;
  const u32 to = p.shared + stage * F::kStage_bytes + F::kX + part * (block_k * 2);
  if constexpr (F::kDepth > 1)
    load_box(to, args.maps.x, few_full<F>(p, stage), 0, p.token_tile * F::kTokens, k_block * F::kDepth);
  else
    load_box<(F::kShare > 1)>(to, args.maps.x, few_full<F>(p, stage), k_block * block_k,
                              p.token_tile * F::kTokens + part, u16((1 << F::kShare) - 1));
}

/// One thread, before anyone waits.
template <class F>
INGOT_DEVICE void few_init_barriers(const FewPosition& p) {
  for (int s = 0; s < F::kStages; ++s) {
    barrier_init(few_full<F>(p, s), 1);
    barrier_init(few_empty<F>(p, s), F::tile.feature_warpgroups * F::kShare);
  }
  barrier_init(few_summed<F>(p), 1);
  barrier_init_fence();
  if constexpr (F::kSplits > 1)
    barrier_expect(few_summed<F>(p), F::shared.sum_slots * F::shared.sum_rows * F::kTokens * 4);
}
/// A warp: weights of the first stages, which go to this block alone and wait for no other kernel; how many
/// stages.
template <class F>
INGOT_DEVICE int few_early_weights(const FewArgs& args, const FewPosition& p) {
  const int early = min(min(args.early_weights / F::kDepth, F::kStages), p.k_count);
#pragma unroll 1
  for (int i = 0; i < early; ++i) {
    if (elect_one()) {
      barrier_expect(few_full<F>(p, i), F::kStage_bytes);
      few_load_w<F>(args, p, i, p.k_begin + i);
    }
  }
  return early;
}

/// A warp: keeps the ring full once the kernel before has finished; `early` stages have their weights. All
/// lanes run the loop, so that it stays in uniform registers.
template <class F>
INGOT_DEVICE void few_produce(const FewArgs& args, const FewPosition& p, int early) {
  device::wait_for_previous_kernel();
  int stage = 0;
  u32 phase = 1;
#pragma unroll 1
  for (int i = 0; i < p.k_count; ++i) {
    if (i >= F::kStages) barrier_wait(few_empty<F>(p, stage), phase);
    if (elect_one()) {
      if (i >= early) {
        barrier_expect(few_full<F>(p, stage), F::kStage_bytes);
        few_load_w<F>(args, p, stage, p.k_begin + i);
      }
      few_load_x<F>(args, p, stage, p.k_begin + i);
    }
    if (++stage == F::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __syncwarp();
}

/// A warpgroup: its 64 weight rows times all tokens, over every kK_warpgroups-th block of K.
template <class F>
INGOT_DEVICE void few_multiply(float (&acc)[F::kTokens / 2], const FewPosition& p, int feature_warpgroup,
                               int k_warpgroup) {
  constexpr int kStride = F::tile.k_warpgroups;
  const int thread = threadIdx.x & 127;
  const u64 w0 = matrix_descriptor(p.shared + feature_warpgroup * (64 * 128));
  const u64 x0 = matrix_descriptor(p.shared + F::kX);
  u32 release_barrier = few_empty<F>(p, 0);
  if constexpr (F::kShare > 1)
    release_barrier = remote_address(release_barrier, u32(thread < F::kShare ? thread : p.rank));
  // Stages that are not filled again need not be handed back.
  const auto release = [&](int stage, int i) {
    if (thread >= F::kShare || i + F::kStages >= p.k_count) return;
    if constexpr (F::kShare > 1)
      barrier_arrive_remote(release_barrier + 8 * stage);
    else
      barrier_arrive(release_barrier + 8 * stage);
  };
  int stage = k_warpgroup % F::kStages, previous = 0;
  u32 phase = 0;
#pragma unroll 1
  for (int i = k_warpgroup; i < p.k_count; i += kStride) {
    barrier_wait(few_full<F>(p, stage), phase);
    wgmma_fence();
    const u64 offset = u64(stage * (F::kStage_bytes >> 4));
#pragma unroll
    for (int d = 0; d < F::kDepth; ++d)
#pragma unroll
      for (int k16 = 0; k16 < 4; ++k16)
        Wgmma<F::kTokens>::template multiply<typename F::Element>(
            acc, w0 + offset + d * (F::shared.weight_bytes >> 4) + k16 * 2,
            x0 + offset + d * (F::kTokens * 8) + k16 * 2, (i != k_warpgroup) | (d != 0) | (k16 != 0));
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

/// The bias of row `row` of the tile, as its bits: used long after it is asked for. Zero beyond the last
/// feature.
template <class F>
INGOT_DEVICE u16 few_bias(const FewArgs& args, const FewPosition& p, int row) {
  const int feature = p.feature_tile * F::kOut_rows + (F::kGated ? row / 16 * 8 + row % 8 : row);
  const bool gate = F::kGated && (row / 8 % 2 == 0) == F::kGate_first;
  const u16* base = static_cast<const u16*>(gate ? args.epilogue.gate_bias : args.epilogue.up_bias);
  return feature < F::kN ? device::load_constant(base + feature) : u16(0);
}

/// What follows the linear, on N outputs that share a matrix row's order: `first`, `second` as in the
/// interleaving.
template <class F, int N>
INGOT_DEVICE void few_epilogue(const FewArgs& args, i64 row, int column, float (&first)[N],
                               float (&second)[N], device::Outputs<N, F::kGated>& values) {
  if constexpr (F::kRounds) {
    device::round_all<typename F::Element>(first);
    if constexpr (F::kGated) device::round_all<typename F::Element>(second);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (F::kGated) {
      values.gate[i] = F::kGate_first ? first[i] : second[i];
      values.up[i] = F::kGate_first ? second[i] : first[i];
    } else {
      values.up[i] = first[i];
    }
  }
  F::Epilogue::apply(args.epilogue, {row, column, N}, values);
}

/// All of K in a warp: finishes its rows in registers, turns them over in shared memory, and all threads
/// store whole rows of tokens. top_bits, bottom_bits: biases of rows r and r + 8.
template <class F>
INGOT_DEVICE void few_finish_whole(const float (&acc)[F::kTokens / 2], const FewArgs& args,
                                   const FewPosition& p, int thread, u16 top_bits, u16 bottom_bits) {
  using Element = typename F::Element;
  constexpr int kPitch = F::shared.out_pitch, kPieces = F::kOut_rows / 8;
  const float bias_top = F::kBias ? Element::value(top_bits) : 0.f,
              bias_bottom = F::kBias ? Element::value(bottom_bits) : 0.f;
  const int warp = thread / 32, lane = thread & 31;
  const int first_token = p.token_tile * F::kTokens;
  const u32 staging = p.shared + F::shared.output;
  // Lane i gives the address of token i % 8's features: of the warp's first eight rows, or of its second.
  const u32 to =
      staging + (lane & 7) * kPitch + warp * (F::kGated ? 16 : 32) + (lane >> 3 & 1) * (F::kGated ? 0 : 16);
  const int column = p.feature_tile * F::kOut_rows + warp * (F::kGated ? 8 : 16) + lane / 4;
#pragma unroll
  for (int j = 0; j < F::kTokens / 8; ++j) {
    float top[2] = {acc[4 * j] + bias_top, acc[4 * j + 1] + bias_top};
    float bottom[2] = {acc[4 * j + 2] + bias_bottom, acc[4 * j + 3] + bias_bottom};
    const i64 token = first_token + 8 * j + 2 * (lane & 3);
    device::Outputs<2, F::kGated> values;
    few_epilogue<F>(args, token, column, top, bottom, values);
    const u32 packed = Element::pair_bits(values.up[0], values.up[1]);
    if constexpr (F::kGated) {
      store_matrix_transposed(to + 8 * j * kPitch, packed);
    } else {
      few_epilogue<F>(args, token, column + 8, bottom, top, values);
      store_matrices_transposed(to + 8 * j * kPitch, packed, Element::pair_bits(values.up[0], values.up[1]));
    }
  }
  named_barrier_sync(1, F::kMultiplying);
  // A thread keeps its piece of the features and walks over tokens.
  constexpr int kStep = F::kMultiplying / kPieces, kSteps = (F::kTokens + kStep - 1) / kStep;
  static_assert(F::kMultiplying % kPieces == 0, "a thread's piece");
  const int first = thread / kPieces, piece = thread % kPieces;
  const int y_row = first_token + first, y_col = p.feature_tile * F::kOut_rows + piece * 8;
  if (F::kN % F::kOut_rows != 0 && y_col >= F::kN) return;
  const int tokens = min(args.tokens - y_row, F::kTokens - first);  // from this thread's first
  u16* to_y = static_cast<u16*>(args.epilogue.y) + y_row * args.epilogue.y_stride + y_col;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    if (i * kStep >= tokens) break;
    u32 v[4];
    load_shared(staging + (first + i * kStep) * kPitch + piece * 16, v);
    device::store_16_bytes(to_y, {{v[0], v[1], v[2], v[3]}});
    to_y += kStep * args.epilogue.y_stride;
  }
}

/// Byte offset in the exchange of the sum of row `row` of a slice and column `token`, from source `slot`.
template <class F>
INGOT_DEVICE u32 sum_offset(int slot, int row, int token) {
  constexpr int kGroup_rows = F::kGated ? 16 : 8;
  return u32(slot * F::shared.sum_slot_floats + row * F::shared.sum_pitch +
             row / kGroup_rows * F::shared.sum_skew + token) *
         4;
}

/// Parts of K: a warpgroup sends its sums to the blocks that own the rows.
template <class F>
INGOT_DEVICE void few_send(const float (&acc)[F::kTokens / 2], const FewPosition& p, int feature_warpgroup,
                           int k_warpgroup) {
  const int thread = threadIdx.x & 127, lane = thread & 31;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = feature_warpgroup * 64 + (thread >> 5) * 16 + half * 8 + (lane >> 2);
    const int owner = row / F::shared.sum_rows,
              slot = (F::kSplits > 1 ? p.rank : 0) * F::tile.k_warpgroups + k_warpgroup;
    u32 to =
        p.shared + F::shared.output + sum_offset<F>(slot, row - owner * F::shared.sum_rows, 2 * (lane & 3));
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

/// Parts of K, all multiplying threads: add the slots in order, finish, store. An item is eight features of
/// one token.
template <class F>
INGOT_DEVICE void few_finish_sums(const FewArgs& args, const FewPosition& p, int thread) {
  constexpr int kGroup_rows = F::kGated ? 16 : 8, kGroups = F::shared.sum_rows / kGroup_rows;
  const u32 sums = p.shared + F::shared.output;
  const int slice_row = F::kSplits > 1 ? p.rank * F::shared.sum_rows : 0;
#pragma unroll 1
  for (int item = thread; item < kGroups * F::kTokens; item += F::kMultiplying) {
    const int token = item / kGroups, group = item - token * kGroups;
    const i64 y_row = p.token_tile * F::kTokens + token;
    const int y_col = p.feature_tile * F::kOut_rows + (slice_row / kGroup_rows + group) * 8;
    if (y_row >= args.tokens || y_col >= F::kN) continue;
    float v[2][8];
#pragma unroll
    for (int r = 0; r < kGroup_rows; ++r) {
      const int row = group * kGroup_rows + r;
      float sum = load_shared(sums + sum_offset<F>(0, row, token));
#pragma unroll
      for (int slot = 1; slot < F::shared.sum_slots; ++slot)
        sum += load_shared(sums + sum_offset<F>(slot, row, token));
      if constexpr (F::kBias) sum += load_shared(p.shared + F::shared.bias + (slice_row + row) * 4);
      v[r / 8][r % 8] = sum;
    }
    device::Outputs<8, F::kGated> values;
    few_epilogue<F>(args, y_row, y_col, v[0], v[1], values);
    device::Store<typename F::Element, true>::apply(args.epilogue, {y_row, y_col, 8}, values);
  }
}

/// The kernel. Grid: kFeature_tiles rounded up to the share, times token tiles, times splits; ranks of a
/// cluster adjacent.
template <class Shape>
struct Few {
  using Args = FewArgs;
  static constexpr int threads = Shape::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const FewArgs& args) {
    using F = Shape;
    extern __shared__ __align__(1024) unsigned char ingot_few_shared[];
    const int thread = threadIdx.x, warp = __shfl_sync(0xffffffffu, thread >> 5, 0), lane = thread & 31;
    const FewPosition p = few_position<F>(ingot_few_shared);
    const bool loads = warp == F::kMultiplying / 32;
    int early = 0;
    if (loads) {
      if (elect_one()) {
        prefetch_map(args.maps.w);
        prefetch_map(args.maps.x);
        few_init_barriers<F>(p);
      }
      __syncwarp();
      early = few_early_weights<F>(args, p);
    }
    __syncwarp();
    // The loading warp waits for nobody but the cluster that it loads for.
    if constexpr (F::kShare * F::kSplits > 1) {
      cluster_arrive_relaxed();
      cluster_wait();
    } else if (loads) {
      named_barrier_arrive(2, F::kThreads);
    } else {
      named_barrier_sync(2, F::kThreads);
    }
    if (!loads) {
      // A kernel that reads nothing early lets the next one start only now: what that one reads early is
      // older.
      if (args.early_weights == 0) device::wait_for_previous_kernel();
      device::let_next_kernel_start();
    }

    if (loads) {
      few_produce<F>(args, p, early);
    } else {
      const int feature_warpgroup = warp / 4 % F::tile.feature_warpgroups;
      const int k_warpgroup = warp / 4 / F::tile.feature_warpgroups;
      u16 bias_top = 0, bias_bottom = 0;
      if constexpr (F::kBias && F::kWhole_k) {
        bias_top = few_bias<F>(args, p, warp * 16 + lane / 4);
        bias_bottom = few_bias<F>(args, p, warp * 16 + lane / 4 + 8);
      } else if constexpr (F::kBias) {
        for (int r = thread; r < F::kRows; r += F::kMultiplying)
          store_shared(p.shared + F::shared.bias + r * 4, F::Element::value(few_bias<F>(args, p, r)));
      }
      float acc[F::kTokens / 2];
      few_multiply<F>(acc, p, feature_warpgroup, k_warpgroup);
      // The output may lie over the ring, and the biases were written by other threads.
      named_barrier_sync(1, F::kMultiplying);
      if constexpr (F::kWhole_k) {
        few_finish_whole<F>(acc, args, p, thread, bias_top, bias_bottom);
      } else {
        few_send<F>(acc, p, feature_warpgroup, k_warpgroup);
        if constexpr (F::kSplits > 1)
          barrier_wait(few_summed<F>(p), 0);
        else
          named_barrier_sync(1, F::kMultiplying);
        few_finish_sums<F>(args, p, thread);
      }
    }
    // Neighbours may still write into, or arrive at, this block's shared memory.
    if constexpr (F::kShare > 1) {
      __syncwarp();
      cluster_arrive();
      cluster_wait();
    }
  }
};

}  // namespace sm90
}  // namespace ingot
