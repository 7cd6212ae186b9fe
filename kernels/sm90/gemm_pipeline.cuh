// SPDX-License-Identifier: Apache-2.0
//
// The multiplying half of gemm.cuh: what a kernel is compiled for, the walk over the tiles, the ring of stages, and the
// roles of producer and consumer up to the accumulators.
#pragma once
#include "sm90/following.cuh"
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"
#include "sm90/wgmma.cuh"

namespace ingot::sm90 {

struct GemmMaps {
  TensorMap x;       // {kK, tokens}, box {64, rows / cluster_cols}
  TensorMap w;       // {kK, kN}, box {64, cols / cluster_rows}; gated: {kK, 8, 2, kN / 8}, box {64, 8, 2, ...}
  TensorMap y;       // {kN, tokens}, box {64, 16}, 128-byte swizzle
  TensorMap y_tail;  // the same with box {tail columns, 16}, where the tile's width is no multiple of 64
};

struct GemmArgs {
  const void* bias;         // [kN] 16-bit values; gated: of the matrix that comes first in the interleaving
  const void* bias_second;  // gated: of the other
  float* partials;          // splits > 1: partial_bytes(tile)
  u32* counters;            // splits > 1: counter_count(tile), zero before the first launch; left zero
  int tokens;
  int group_rows;           // row tiles walked together before the next column tile, so that x and W stay in L2
  int prefetch;             // bring a block's first tile into L2 ahead of the ring: where nothing is read twice
  Following following;
};

/// What a kernel is compiled for. kGate_first: the gate's rows come before up's in the interleaving.
template <class Element_, class Steps_, int kN_, int kK_, bool kGated_, bool kGate_first_, bool kBias_, int kConsumers,
          int kSubtiles, int kCols_, int kStages_, int kCluster_rows, int kCluster_cols, int kSplits_,
          bool kEpilogue_warps, int kLag_ = 0>
struct Gemm {
  using Element = Element_;
  using Steps = Steps_;
  static constexpr GemmTile tile{kConsumers,    kSubtiles,     kCols_,   kStages_,
                                 kCluster_rows, kCluster_cols, kSplits_, kEpilogue_warps, kLag_};
  static constexpr GemmLayout shared = layout(tile);
  static constexpr int kN = kN_, kK = kK_, kCols = kCols_, kRows = rows(tile), kStages = kStages_, kSplits = kSplits_;
  static constexpr bool kGated = kGated_, kGate_first = kGate_first_, kBias = kBias_;
  static constexpr int kThreads = threads(tile);
  static constexpr int kOut_cols = kGated ? kCols / 2 : kCols;
  static constexpr int kK_blocks = (kK + block_k - 1) / block_k;
  static constexpr int kCol_tiles = (kN + kOut_cols * kCluster_cols - 1) / (kOut_cols * kCluster_cols);
  static constexpr int kBlocks = blocks_in_cluster(tile);
  // Blocks that take part of what a block loads, itself among them: those hand a stage back before it is refilled.
  static constexpr int kReaders = kCluster_rows + kCluster_cols - 1;
  // A 512-thread kernel cannot hold the operands of one wide instruction: two of half the width.
  static constexpr int kHalves = kConsumers > 2 && kCols > 128 ? 2 : 1;
  static constexpr int kInstruction_cols = kCols / kHalves;
  static constexpr int kAccumulators = kInstruction_cols / 2;
  // Registers a thread, by role; the sum over the warpgroups is what the launch bounds give out.
  static constexpr bool kWide = kSubtiles * kCols > 320;
  static constexpr int kConsumer_registers = kConsumers > 2 ? 160 : (kEpilogue_warps ? 192 : (kWide ? 232 : 216));
  static constexpr int kProducer_registers = kConsumers > 2 ? 32 : (kEpilogue_warps ? 120 : (kWide ? 40 : 72));
  static constexpr int kTail_cols = kOut_cols % 64;

  static_assert(kN % 8 == 0 && kK % 8 == 0, "dim and hidden are multiples of 8");
  static_assert(shared.total <= shared_limit, "shared memory");
  static_assert(kRows / kCluster_cols % 8 == 0 && kCols / kCluster_rows % (kGated ? 16 : 8) == 0, "shares of a load");
  static_assert(kK_blocks / kSplits > kLag_, "every split has a block of K, and more than the lag");
  static_assert(kOut_cols % 16 == 0, "stores are 16 columns wide");
  static_assert(!kEpilogue_warps || (kConsumers == 2 && kSubtiles == 1 && kSplits == 1 && kOut_cols % 64 == 0), "tile");
};

/// A block's place in the grid and its shared memory.
struct Place {
  u32 shared;  // base address
  int cluster, clusters;
  u32 rank, rank_row, rank_col;
};

struct Work {
  int row_tile, col_tile, split, k_begin, k_end;
};

template <class G>
INGOT_DEVICE int row_tile_count(const GemmArgs& args) {
  return (args.tokens + G::kRows * G::tile.cluster_rows - 1) / (G::kRows * G::tile.cluster_rows);
}
template <class G>
INGOT_DEVICE int work_count(const GemmArgs& args) {
  return row_tile_count<G>(args) * G::kCol_tiles * G::kSplits;
}

/// Item `index` of the walk: groups of row tiles, in a group column by column, in a tile split by split.
template <class G>
INGOT_DEVICE Work work_at(const GemmArgs& args, int index) {
  Work w;
  const int tile = index / G::kSplits;
  w.split = index - tile * G::kSplits;
  const int row_tiles = row_tile_count<G>(args);
  const int group = tile / (args.group_rows * G::kCol_tiles), first_row = group * args.group_rows;
  const int group_rows = min(args.group_rows, row_tiles - first_row);
  const int in_group = tile - first_row * G::kCol_tiles;
  w.col_tile = in_group / group_rows;
  w.row_tile = first_row + in_group - w.col_tile * group_rows;
  w.k_begin = w.split * G::kK_blocks / G::kSplits;
  w.k_end = (w.split + 1) * G::kK_blocks / G::kSplits;
  return w;
}
template <class G>
INGOT_DEVICE int first_row(const Work& w, const Place& p) {
  return (w.row_tile * G::tile.cluster_rows + int(p.rank_row)) * G::kRows;
}
template <class G>
INGOT_DEVICE int first_out_col(const Work& w, const Place& p) {
  return (w.col_tile * G::tile.cluster_cols + int(p.rank_col)) * G::kOut_cols;
}

/// Position in the ring of stages.
template <int kStages>
struct Cursor {
  int stage = 0;
  u32 phase = 0;
  INGOT_DEVICE void next() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  INGOT_DEVICE void skip(int count) {  // count <= kStages
    stage += count;
    if (stage >= kStages) {
      stage -= kStages;
      phase ^= 1;
    }
  }
};

template <class G>
INGOT_DEVICE u32 full_barrier(const Place& p, int stage) {
  return p.shared + G::shared.barriers + 8 * stage;
}
template <class G>
INGOT_DEVICE u32 empty_barrier(const Place& p, int stage) {
  return p.shared + G::shared.barriers + 8 * (G::kStages + stage);
}
/// Of the tile in 16 bits between a consumer and the epilogue warps.
template <class G>
INGOT_DEVICE u32 dumped_barrier(const Place& p, int consumer) {
  return p.shared + G::shared.barriers + 8 * (2 * G::kStages + consumer);
}
template <class G>
INGOT_DEVICE u32 drained_barrier(const Place& p, int consumer) {
  return p.shared + G::shared.barriers + 8 * (2 * G::kStages + G::tile.consumers + consumer);
}

/// Of the two bias buffers.
template <class G>
INGOT_DEVICE u32 bias_ready_barrier(const Place& p, u32 turn) {
  return p.shared + G::shared.barriers + 8 * (2 * G::kStages + 2 * G::tile.consumers + turn);
}
template <class G>
INGOT_DEVICE u32 bias_read_barrier(const Place& p, u32 turn) {
  return p.shared + G::shared.barriers + 8 * (2 * G::kStages + 2 * G::tile.consumers + 2 + turn);
}

/// One thread: keeps the ring full. Weights of the first stages are asked for before the kernel before has finished.
template <class G>
INGOT_DEVICE void produce(const GemmMaps& maps, const GemmArgs& args, const Place& p) {
  constexpr int kSide_rows = G::tile.cluster_rows, kSide_cols = G::tile.cluster_cols;
  u16 x_mask = 0, w_mask = 0;
  for (int j = 0; j < kSide_cols; ++j) x_mask |= u16(1u << (p.rank_row + kSide_rows * j));
  for (int i = 0; i < kSide_rows; ++i) w_mask |= u16(1u << (i + kSide_rows * p.rank_col));
  const auto load_x = [&](int stage, int row, int k_block) {
    load_box<(kSide_cols > 1)>(p.shared + stage * G::shared.stage_bytes + p.rank_col * (G::shared.x_bytes / kSide_cols),
                               maps.x, full_barrier<G>(p, stage), k_block * block_k,
                               row + int(p.rank_col) * (G::kRows / kSide_cols), x_mask);
  };
  const auto load_w = [&](int stage, int out_col, int k_block) {
    constexpr int kPart = G::kCols / kSide_rows;  // weight rows this block fetches for its column of the cluster
    const u32 to = p.shared + stage * G::shared.stage_bytes + G::shared.x_bytes + p.rank_row * (kPart * block_k * 2);
    if constexpr (G::kGated)
      load_interleaved_box<(kSide_rows > 1)>(to, maps.w, full_barrier<G>(p, stage), k_block * block_k,
                                             out_col / 8 + int(p.rank_row) * (kPart / 16), w_mask);
    else
      load_box<(kSide_rows > 1)>(to, maps.w, full_barrier<G>(p, stage), k_block * block_k,
                                 out_col + int(p.rank_row) * kPart, w_mask);
  };

  // The first tile beyond the ring, into L2: blocks that share a part ask for every n-th K block of it each.
  const auto prefetch_w = [&](const Work& work, int out_col) {
    const int sharers = min(8, row_tile_count<G>(args));
    constexpr int kPart = G::kCols / kSide_rows;
    for (int k = work.k_begin + G::kStages; k < work.k_end; ++k) {
      if ((k + work.row_tile) % sharers != 0) continue;
      if constexpr (G::kGated)
        prefetch_interleaved_box(maps.w, k * block_k, out_col / 8 + int(p.rank_row) * (kPart / 16));
      else
        prefetch_box(maps.w, k * block_k, out_col + int(p.rank_row) * kPart);
    }
  };
  const auto prefetch_x = [&](const Work& work, int row) {
    const int sharers = min(8, G::kCol_tiles);
    for (int k = work.k_begin + G::kStages; k < work.k_end; ++k)
      if ((k + work.col_tile) % sharers == 0)
        prefetch_box(maps.x, k * block_k, row + int(p.rank_col) * (G::kRows / kSide_cols));
  };

  Cursor<G::kStages> cursor;
  bool first = true;
  int step = 0;
  for (int index = p.cluster, count = work_count<G>(args); index < count; index += p.clusters) {
    const Work work = work_at<G>(args, index);
    const int row = first_row<G>(work, p), out_col = first_out_col<G>(work, p);
    int k_block = work.k_begin;
    if (first) {
      first = false;
      const int ahead = min(G::kStages, work.k_end - work.k_begin);
      for (int i = 0; i < ahead; ++i) {
        barrier_expect(full_barrier<G>(p, i), G::shared.stage_bytes);
        load_w(i, out_col, k_block + i);
      }
      if (args.prefetch) prefetch_w(work, out_col);
      wait_for_previous_kernel();
      for (int i = 0; i < ahead; ++i) load_x(i, row, k_block + i);
      if (args.prefetch) prefetch_x(work, row);
      k_block += ahead;
      cursor.skip(ahead);
    }
    for (; k_block < work.k_end; ++k_block) {
      barrier_wait(empty_barrier<G>(p, cursor.stage), cursor.phase ^ 1);
      barrier_expect(full_barrier<G>(p, cursor.stage), G::shared.stage_bytes);
      load_x(cursor.stage, row, k_block);
      load_w(cursor.stage, out_col, k_block);
      if (args.following.bytes > 0) prefetch_following(args.following, step++, int(blockIdx.x), int(gridDim.x));
      cursor.next();
    }
  }
}

template <class G>
using Accumulators = float[G::tile.subtiles][G::kHalves][G::kAccumulators];

/// A warpgroup: acc = x W^T over the work's K blocks; hands every stage back to the blocks that fill it.
template <class G>
INGOT_DEVICE void multiply(Accumulators<G>& acc, Cursor<G::kStages>& cursor, int k_blocks, const Place& p, int consumer,
                           bool first, bool releases, u32 release_barrier) {
  const u64 x0 = matrix_descriptor(p.shared + consumer * (G::tile.subtiles * 64 * 128));
  const u64 w0 = matrix_descriptor(p.shared + G::shared.x_bytes);
  const auto release = [&](int stage) {
    if (!releases) return;
    if constexpr (G::kBlocks > 1)
      barrier_arrive_remote(release_barrier + 8 * stage);
    else
      barrier_arrive(release_barrier + 8 * stage);
  };
  constexpr int kLag = G::tile.lag;
  if constexpr (kLag > 0)
    if (first && consumer > 0) named_barrier_sync(consumer, 256);
  int previous = 0;
#pragma unroll 1
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    barrier_wait(full_barrier<G>(p, cursor.stage), cursor.phase);
    wgmma_fence();
    const u64 offset = u64(cursor.stage * (G::shared.stage_bytes >> 4));
#pragma unroll
    for (int k16 = 0; k16 < 4; ++k16)
#pragma unroll
      for (int m = 0; m < G::tile.subtiles; ++m)
#pragma unroll
        for (int h = 0; h < G::kHalves; ++h)
          Wgmma<G::kInstruction_cols>::template multiply<typename G::Element>(
              acc[m][h], x0 + offset + k16 * 2 + m * 512, w0 + offset + k16 * 2 + h * (G::kInstruction_cols * 8),
              (k_block | k16) != 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_block > 0) release(previous);
    if constexpr (kLag > 0)
      if (first && k_block == kLag - 1 && consumer < G::tile.consumers - 1) named_barrier_arrive(consumer + 1, 256);
    previous = cursor.stage;
    cursor.next();
  }
  wgmma_wait<0>();
  release(previous);
#pragma unroll
  for (int m = 0; m < G::tile.subtiles; ++m)
#pragma unroll
    for (int h = 0; h < G::kHalves; ++h) wgmma_pin(acc[m][h]);
}

}  // namespace ingot::sm90
