// SPDX-License-Identifier: Apache-2.0
//
// The multiplying half of gemm.cuh: what a kernel is compiled for, the walk over the tiles, the ring of
// stages, and the roles of producer and consumer up to the accumulators.
#pragma once
#include "linear_args.cuh"
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"
#include "sm90/wgmma.cuh"

namespace ingot {
namespace sm90 {

struct GemmMaps {
  TensorMap x;  // {kK, tokens}, box {64, rows / cluster_cols}
  TensorMap w;  // {kK, kN}, box {64, cols / cluster_rows}; gated: {kK, 8, 2, kN / 8}, box {64, 8, 2, ...}
  TensorMap y;  // {kN, tokens}, box {64, 16}, 128-byte swizzle
  TensorMap y_tail;  // the same with box {tail columns, 16}, where the tile's width is no multiple of 64
};

struct GemmArgs {
  GemmMaps maps;
  EpilogueArgs epilogue;
  int tokens;
  int group_rows;     // row tiles walked together before the next column tile, so that x and W stay in L2
  int early_weights;  // stages that get their weights before the kernel before has finished
};

/// What a kernel is compiled for. Epilogue: the steps after the linear, on its rounded result where Rounds,
/// else on the float32 sums. kGate_first: the gate's rows come before up's in the interleaving.
template <class Element_, class Epilogue_, bool kRounds_, int kN_, int kK_, bool kGated_, bool kGate_first_,
          bool kBias_, int kConsumers, int kSubtiles, int kCols_, int kStages_, int kCluster_rows,
          int kCluster_cols, int kSplits_, bool kEpilogue_warps, int kLag_>
struct GemmShape {
  using Element = Element_;
  using Epilogue = Epilogue_;
  static constexpr GemmTile tile{kConsumers,    kSubtiles, kCols_,          kStages_, kCluster_rows,
                                 kCluster_cols, kSplits_,  kEpilogue_warps, kLag_};
  static constexpr GemmLayout shared = layout(tile, kGated_);
  static constexpr int kN = kN_, kK = kK_, kCols = kCols_, kRows = rows(tile), kStages = kStages_,
                       kSplits = kSplits_;
  static constexpr bool kRounds = kRounds_, kGated = kGated_, kGate_first = kGate_first_, kBias = kBias_;
  static constexpr int kThreads = sm90::threads(tile);
  static constexpr int kOut_cols = kGated ? kCols / 2 : kCols;
  static constexpr int kK_blocks = (kK + block_k - 1) / block_k;
  static constexpr int kCol_tiles = (kN + kOut_cols * kCluster_cols - 1) / (kOut_cols * kCluster_cols);
  static constexpr int kBlocks = blocks_in_cluster(tile);
  static constexpr int kSharers = kCluster_rows * kCluster_cols;  // blocks of one part of K
  // Blocks that take part of what a block loads, itself among them: those hand a stage back before it is
  // refilled.
  static constexpr int kReaders = kCluster_rows + kCluster_cols - 1;
  // A 512-thread kernel cannot hold the operands of one wide instruction: two of half the width.
  static constexpr int kHalves = kConsumers > 2 && kCols > 128 ? 2 : 1;
  static constexpr int kInstruction_cols = kCols / kHalves;
  static constexpr int kAccumulators = kInstruction_cols / 2;
  // Registers a thread, by role; the sum over the warpgroups is what the launch bounds give out.
  static constexpr bool kWide = kSubtiles * kCols > 320;
  static constexpr int kConsumer_registers = kConsumers > 2 ? (kCols > 240 ? 160 : 152)
                                                            : (kEpilogue_warps ? 192 : (kWide ? 232 : 216));
  static constexpr int kProducer_registers = kConsumers > 2 ? (kCols > 240 ? 32 : 56)
                                                            : (kEpilogue_warps ? 120 : (kWide ? 40 : 72));
  // Little room beside the accumulators: the C library's activations are long.
  static constexpr bool kTight = kConsumers > 2 || kWide || !Element::approximate_activation;
  static constexpr int kUnits = (kOut_cols + 63) / 64, kTail_cols = kOut_cols % 64;

  static_assert(kN % 8 == 0 && kK % 8 == 0, "dim and hidden are multiples of 8");
  static_assert(shared.total <= shared_limit && (kEpilogue_warps || kSplits > 1 || shared.buffers > 0),
                "shared memory");
  static_assert(kRows / kCluster_cols % 8 == 0 && kCols / kCluster_rows % (kGated ? 16 : 8) == 0,
                "shares of a load");
  static_assert(kK_blocks / kSplits > kLag_, "every split has a block of K, and more than the lag");
  static_assert(kOut_cols % 16 == 0, "stores are 16 columns wide");
  static_assert(!kEpilogue_warps ||
                    (kConsumers == 2 && kSubtiles == 1 && kSplits == 1 && kOut_cols % 64 == 0 && kRounds),
                "epilogue warps take a tile of 128 rows in 16 bits");
};

/// A block's place in the grid and its shared memory.
struct Position {
  u32 shared;  // base address
  int cluster, clusters;
  int rank_row, rank_col, split;
};

template <class G>
INGOT_DEVICE Position position_of_block(const void* shared) {
  Position p;
  p.shared = device::shared_address(shared);
  const int rank = G::kBlocks > 1 ? int(cluster_rank()) : 0, in_split = rank % G::kSharers;
  p.split = rank / G::kSharers;
  p.rank_row = in_split % G::tile.cluster_rows;
  p.rank_col = in_split / G::tile.cluster_rows;
  p.cluster = int(blockIdx.x) / G::kBlocks;
  p.clusters = int(gridDim.x) / G::kBlocks;
  return p;
}
template <class G>
INGOT_DEVICE u32 rank_of(int rank_row, int rank_col, int split) {
  return u32(rank_row + G::tile.cluster_rows * (rank_col + G::tile.cluster_cols * split));
}

template <class G>
INGOT_DEVICE int row_tile_count(const GemmArgs& args) {
  return (args.tokens + G::kRows * G::tile.cluster_rows - 1) / (G::kRows * G::tile.cluster_rows);
}
template <class G>
INGOT_DEVICE int work_count(const GemmArgs& args) {
  return row_tile_count<G>(args) * G::kCol_tiles;
}

/// A block's tile: first token and first output column.
struct Work {
  int row, out_col;
};
/// Item `index` of the clusters' walk: groups of row tiles, in a group column by column.
template <class G>
INGOT_DEVICE Work work_at(const GemmArgs& args, const Position& p, int index) {
  const int row_tiles = row_tile_count<G>(args);
  // Few tokens are one group: no division for it, since this is on the way to a block's first load.
  const int first_row =
      row_tiles > args.group_rows ? index / (args.group_rows * G::kCol_tiles) * args.group_rows : 0;
  const int group_rows = min(args.group_rows, row_tiles - first_row);
  const int in_group = index - first_row * G::kCol_tiles;
  const int col_tile = in_group / group_rows, row_tile = first_row + in_group - col_tile * group_rows;
  return {(row_tile * G::tile.cluster_rows + p.rank_row) * G::kRows,
          (col_tile * G::tile.cluster_cols + p.rank_col) * G::kOut_cols};
}
template <class G>
INGOT_DEVICE int first_k_block(const Position& p) {
  return p.split * G::kK_blocks / G::kSplits;
}
template <class G>
INGOT_DEVICE int k_block_count(const Position& p) {
  return (p.split + 1) * G::kK_blocks / G::kSplits - first_k_block<G>(p);
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
};

// Barriers: a stage filled, a stage read; the tile in 16 bits written by a consumer, and read by the epilogue
// warps; a bias buffer written, and read.
template <class G>
INGOT_DEVICE u32 full_barrier(const Position& p, int stage) {
  return p.shared + G::shared.barriers + 8 * stage;
}
template <class G>
INGOT_DEVICE u32 empty_barrier(const Position& p, int stage) {
  return full_barrier<G>(p, G::kStages + stage);
}
template <class G>
INGOT_DEVICE u32 dumped_barrier(const Position& p, int consumer) {
  return full_barrier<G>(p, 2 * G::kStages + consumer);
}
template <class G>
INGOT_DEVICE u32 drained_barrier(const Position& p, int consumer) {
  return full_barrier<G>(p, 2 * G::kStages + G::tile.consumers + consumer);
}
template <class G>
INGOT_DEVICE u32 bias_ready_barrier(const Position& p, u32 turn) {
  return full_barrier<G>(p, 2 * G::kStages + 2 * G::tile.consumers) + 8 * turn;
}
template <class G>
INGOT_DEVICE u32 bias_read_barrier(const Position& p, u32 turn) {
  return bias_ready_barrier<G>(p, 2 + turn);
}

/// Of a split tile: the other splits' sums have arrived.
template <class G>
INGOT_DEVICE u32 sums_barrier(const Position& p) {
  return bias_ready_barrier<G>(p, 4);
}

/// One thread, before anyone waits.
template <class G>
INGOT_DEVICE void init_barriers(const Position& p) {
  for (int s = 0; s < G::kStages; ++s) {
    barrier_init(full_barrier<G>(p, s), 1);
    barrier_init(empty_barrier<G>(p, s), G::tile.consumers * G::kReaders);
  }
  for (int c = 0; c < G::tile.consumers; ++c) {
    barrier_init(dumped_barrier<G>(p, c), 4);
    barrier_init(drained_barrier<G>(p, c), 3);
  }
  for (u32 t = 0; t < 2; ++t) {
    // Every lane arrives for itself, once a tile: race checkers do not see what one lane says for its warp.
    barrier_init(bias_ready_barrier<G>(p, t), 32);
    barrier_init(bias_read_barrier<G>(p, t), 128 * G::tile.consumers);
  }
  barrier_init(sums_barrier<G>(p), 1);
  barrier_init_fence();
}

/// This block's share of a stage's rows of x, to every block of its row of the cluster.
template <class G>
INGOT_DEVICE void load_x(const GemmArgs& args, const Position& p, int stage, int row, int k_block) {
  constexpr int kSides = G::tile.cluster_cols;
  u16 mask = 0;
#pragma unroll
  for (int j = 0; j < kSides; ++j) mask |= u16(1u << rank_of<G>(p.rank_row, j, p.split));
  load_box<(kSides > 1)>(p.shared + stage * G::shared.stage_bytes + p.rank_col * (G::shared.x_bytes / kSides),
                         args.maps.x, full_barrier<G>(p, stage), k_block * block_k,
                         row + p.rank_col * (G::kRows / kSides), mask);
}
/// This block's share of a stage's rows of W, to every block of its column of the cluster.
template <class G>
INGOT_DEVICE void load_w(const GemmArgs& args, const Position& p, int stage, int out_col, int k_block) {
  constexpr int kSides = G::tile.cluster_rows, kPart = G::kCols / kSides;
  u16 mask = 0;
#pragma unroll
  for (int i = 0; i < kSides; ++i) mask |= u16(1u << rank_of<G>(i, p.rank_col, p.split));
  const u32 to =
      p.shared + stage * G::shared.stage_bytes + G::shared.x_bytes + p.rank_row * (kPart * block_k * 2);
  if constexpr (G::kGated)
    load_interleaved_box<(kSides > 1)>(to, args.maps.w, full_barrier<G>(p, stage), k_block * block_k,
                                       out_col / 8 + p.rank_row * (kPart / 16), mask);
  else
    load_box<(kSides > 1)>(to, args.maps.w, full_barrier<G>(p, stage), k_block * block_k,
                           out_col + p.rank_row * kPart, mask);
}

/// A warp: keeps the ring full. The weights of the first stages wait for no other kernel. All lanes run the
/// loop, so that it stays in uniform registers: the time from a stage's release to its loads is on the
/// critical path.
template <class G>
INGOT_DEVICE void produce(const GemmArgs& args, const Position& p) {
  Cursor<G::kStages> cursor;
  const int begin = first_k_block<G>(p), end = begin + k_block_count<G>(p), count = work_count<G>(args);
  int early_end = begin + min(min(args.early_weights, G::kStages), end - begin);
#pragma unroll 1
  for (int index = p.cluster; index < count; index += p.clusters) {
    const Work work = work_at<G>(args, p, index);
    if (index == p.cluster) {
#pragma unroll 1
      for (int k_block = begin; k_block < early_end; ++k_block) {
        if (elect_one()) {
          barrier_expect(full_barrier<G>(p, k_block - begin), G::shared.stage_bytes);
          load_w<G>(args, p, k_block - begin, work.out_col, k_block);
        }
      }
      device::wait_for_previous_kernel();
    }
#pragma unroll 1
    for (int k_block = begin; k_block < end; ++k_block) {
      barrier_wait(empty_barrier<G>(p, cursor.stage), cursor.phase ^ 1);
      if (elect_one()) {
        if (k_block >= early_end) {
          barrier_expect(full_barrier<G>(p, cursor.stage), G::shared.stage_bytes);
          load_w<G>(args, p, cursor.stage, work.out_col, k_block);
        }
        load_x<G>(args, p, cursor.stage, work.row, k_block);
      }
      cursor.next();
    }
    early_end = begin;
  }
  __syncwarp();
}

template <class G>
using Accumulators = float[G::tile.subtiles][G::kHalves][G::kAccumulators];

/// Which block each of a consumer's first threads tells that a stage was read: the blocks of this block's
/// column of the cluster, then those of its row.
struct Releases {
  bool any;
  u32 barrier;  // of stage 0, local or remote
};
template <class G>
INGOT_DEVICE Releases releases_of(const Position& p, int thread) {
  Releases r{thread < G::kReaders, empty_barrier<G>(p, 0)};
  if constexpr (G::kBlocks > 1) {
    u32 rank = rank_of<G>(p.rank_row, p.rank_col, p.split);
    const int col = thread - G::tile.cluster_rows;
    if (thread < G::tile.cluster_rows)
      rank = rank_of<G>(thread, p.rank_col, p.split);
    else if (r.any)
      rank = rank_of<G>(p.rank_row, col >= p.rank_col ? col + 1 : col, p.split);
    r.barrier = remote_address(r.barrier, rank);
  }
  return r;
}

/// A warpgroup: acc = x W^T over a tile's K blocks; hands every stage back to the blocks that fill it.
template <class G>
INGOT_DEVICE void multiply(Accumulators<G>& acc, Cursor<G::kStages>& cursor, int k_blocks, const Position& p,
                           int consumer, bool first, const Releases& releases) {
  const u64 x0 = matrix_descriptor(p.shared + consumer * (G::tile.subtiles * 64 * 128));
  const u64 w0 = matrix_descriptor(p.shared + G::shared.x_bytes);
  const auto release = [&](int stage) {
    if (!releases.any) return;
    if constexpr (G::kBlocks > 1)
      barrier_arrive_remote(releases.barrier + 8 * stage);
    else
      barrier_arrive(releases.barrier + 8 * stage);
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
              acc[m][h], x0 + offset + k16 * 2 + m * 512,
              w0 + offset + k16 * 2 + h * (G::kInstruction_cols * 8), (k_block | k16) != 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_block > 0) release(previous);
    if constexpr (kLag > 0)
      if (first && k_block == kLag - 1 && consumer < G::tile.consumers - 1)
        named_barrier_arrive(consumer + 1, 256);
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

}  // namespace sm90
}  // namespace ingot
