// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) for many tokens: persistent blocks, one warp loads (producer), one to
// three warpgroups multiply (consumers), and the epilogue runs either in the consumers' registers or, for short K, on
// three warps of its own while the consumers are at the next tile. Gated: W holds two matrices, gate and up, whose
// rows the tensor map interleaves in groups of eight, so one instruction computes both and a thread ends with gate and
// up of the same output. Rows, columns and K beyond the tensors are loaded as zeros and not stored.
#pragma once
#include "sm90/gemm_pipeline.cuh"
#include "sm90/steps.cuh"

namespace ingot::sm90 {

/// The tile's biases in float32, for the consumers to add: two buffers in turn, filled by a warp that is ahead of them.
/// Column c lies in vector (c / 2) % 4 at 2 (c / 8) + c % 2, so that a thread reads four of its columns at once.
template <class G>
INGOT_DEVICE u32 bias_vectors(const Place& p, u32 turn) {
  return p.shared + G::shared.bias + turn * G::shared.bias_bytes;
}
template <class G>
struct BiasAhead {
  static constexpr int kCount = (G::kCols + 31) / 32;
  float values[kCount];
  INGOT_DEVICE void load(const GemmArgs& args, int out_col, int lane) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int c = lane + 32 * i;
      const int col = out_col + (G::kGated ? (c / 16) * 8 + c % 8 : c);
      const void* base = G::kGated && (c / 8) % 2 != 0 ? args.bias_second : args.bias;
      values[i] = c < G::kCols && col < G::kN ? load_element<typename G::Element>(base, col) : 0.f;
    }
  }
  INGOT_DEVICE void store(u32 vectors, int lane) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int c = lane + 32 * i;
      if (c < G::kCols) store_shared(vectors + ((c / 2) % 4) * (G::kCols + 16) + (2 * (c / 8) + c % 2) * 4, values[i]);
    }
  }
};

/// A warp: brings each tile's biases while the one before is multiplied.
template <class G>
INGOT_DEVICE void bring_biases(const GemmArgs& args, const Place& p, int lane) {
  u32 turn = 0, phase = 0;
  for (int index = p.cluster, count = work_count<G>(args); index < count; index += p.clusters) {
    BiasAhead<G> bias;
    bias.load(args, first_out_col<G>(work_at<G>(args, index), p), lane);
    barrier_wait(bias_read_barrier<G>(p, turn), phase ^ 1);
    bias.store(bias_vectors<G>(p, turn), lane);
    __syncwarp();
    if (elect_one()) barrier_arrive(bias_ready_barrier<G>(p, turn));
    phase ^= turn;
    turn ^= 1;
  }
}

/// A thread's four sums of one group of eight columns: columns 2q and 2q + 1 (q = lane % 4) of rows r and r + 8.
struct Quad {
  Pair top, bottom;
};
template <class G>
INGOT_DEVICE Quad biased(const Quad& v, float low, float high) {
  if constexpr (!G::kBias) return v;
  return {G::Steps::biased(v.top, {low, high}), G::Steps::biased(v.bottom, {low, high})};
}

/// Column group j of the accumulators of subtile m.
template <class G>
INGOT_DEVICE Quad group_of(const Accumulators<G>& acc, int m, int j) {
  constexpr int kGroups = G::kInstruction_cols / 8;
  const float* v = &acc[m][j / kGroups][(j % kGroups) * 4];
  return {{v[0], v[1]}, {v[2], v[3]}};
}

/// Byte offset of 16-byte piece `piece` of row `row` in a box of `pitch` bytes a row, in the swizzle of that width
/// (pitch 96 has none).
INGOT_DEVICE u32 swizzled(int row, int piece, int pitch) {
  const int turn = pitch == 128 ? row & 7 : (pitch == 64 ? (row >> 1) & 3 : (pitch == 32 ? (row >> 2) & 1 : 0));
  return u32(row * pitch + ((piece ^ turn) << 4));
}

/// A warp: bias, activation and store of its 16 * subtiles rows in units of 16 rows and 64 columns, through two staging
/// buffers. `sums(m, j)` gives column group j of subtile m. kUnroll: 1 where sums come from memory, else all units.
template <class G, int kUnroll, class Sums>
INGOT_DEVICE void finish_tile(const Sums& sums, const GemmMaps& maps, u32 biases, u32 staging, int row, int out_col,
                              int lane) {
  using Steps = typename G::Steps;
  constexpr int kUnits = (G::kOut_cols + 63) / 64, kTail = G::kTail_cols;
  const int matrix_row = (lane & 7) + ((lane >> 3) & 1) * 8, matrix_piece = lane >> 4;
  const u32 bias_vector = biases + (lane & 3) * (G::kCols + 16);
#pragma unroll kUnroll
  for (int at = 0; at < G::tile.subtiles * kUnits; ++at) {
    const int m = at / kUnits, unit = at - m * kUnits;
    const bool tail = kTail != 0 && unit == kUnits - 1;
    const int groups = tail ? kTail / 8 : 8, pitch = tail ? kTail * 2 : 128;
    const u32 buffer = staging + (at & 1) * staging_bytes;
    if (elect_one()) {
      // Two buffers in turn; an odd number of units begins a tile with the buffer that ended the last.
      if (at == 0 && G::tile.subtiles * kUnits % 2 != 0)
        stores_wait_read<0>();
      else
        stores_wait_read<1>();
    }
    __syncwarp();
#pragma unroll(kUnroll > 4 ? 4 : kUnroll)
    for (int q = 0; q < 4; ++q) {  // 16 columns
      if (2 * q >= groups) break;
      u32 packed[4];
      float bias[4] = {0.f, 0.f, 0.f, 0.f};  // of two plain output groups, or of one gated one's gate and up
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int i = unit * 8 + 2 * q + g;
        if constexpr (G::kGated) {
          if constexpr (G::kBias) load_shared(bias_vector + i * 16, bias);
          const Quad a = biased<G>(sums(m, 2 * i), bias[0], bias[1]), b = biased<G>(sums(m, 2 * i + 1), bias[2], bias[3]);
          const Quad& gate = G::kGate_first ? a : b;
          const Quad& up = G::kGate_first ? b : a;
          packed[2 * g] = Steps::gated(Steps::rounded(gate.top), Steps::rounded(up.top));
          packed[2 * g + 1] = Steps::gated(Steps::rounded(gate.bottom), Steps::rounded(up.bottom));
        } else {
          if constexpr (G::kBias)
            if (g == 0) load_shared(bias_vector + (i / 2) * 16, bias);
          const Quad a = biased<G>(sums(m, i), bias[2 * g], bias[2 * g + 1]);
          packed[2 * g] = Steps::plain_from_sum(a.top);
          packed[2 * g + 1] = Steps::plain_from_sum(a.bottom);
        }
      }
      store_matrices(buffer + swizzled(matrix_row, 2 * q + matrix_piece, pitch), packed[0], packed[1], packed[2], packed[3]);
    }
    fence_shared_to_async();
    __syncwarp();
    if (elect_one()) {
      store_box(tail ? maps.y_tail : maps.y, buffer, out_col + unit * 64, row + m * 64);
      stores_commit();
    }
  }
}

/// A warp's partial sums of a split tile in scratch: for each split, group by group, 16 bytes a lane.
template <class G>
struct Partials {
  static constexpr int kWarps = G::tile.consumers * 4, kGroups = G::kCols / 8;
  float4* first;  // split 0's, this lane's
  u32* counter;   // how many splits have left theirs

  INGOT_DEVICE Partials(const GemmArgs& args, const Work& work, const Place& p, int warp, int lane) {
    const long long tile = ((long long)work.row_tile * G::kCol_tiles + work.col_tile) * G::kBlocks + p.rank;
    first = reinterpret_cast<float4*>(args.partials) + (tile * G::kSplits * kWarps + warp) * kGroup_floats4 + lane;
    counter = args.counters + tile * kWarps + warp;
  }
  /// Leaves the sums of `split`; true in the warp that came last and may read all.
  INGOT_DEVICE bool leave(const Accumulators<G>& acc, int split, int lane) const {
    float4* to = first + split * kSplit_floats4;
#pragma unroll
    for (int m = 0; m < G::tile.subtiles; ++m)
#pragma unroll
      for (int j = 0; j < kGroups; ++j) {
        const Quad v = group_of<G>(acc, m, j);
        __stcg(to + (m * kGroups + j) * 32, make_float4(v.top.low, v.top.high, v.bottom.low, v.bottom.high));
      }
    __threadfence();
    __syncwarp();
    u32 before = 0;
    if (lane == 0) before = atomicAdd(counter, 1u);
    if (__shfl_sync(0xffffffffu, before, 0) != G::kSplits - 1) return false;
    __threadfence();
    if (lane == 0) *counter = 0;
    return true;
  }
  /// All splits' sums of a group, added in order.
  INGOT_DEVICE Quad operator()(int m, int j) const {
    const float4* from = first + (m * kGroups + j) * 32;
    float4 sum = __ldcg(from);
#pragma unroll
    for (int s = 1; s < G::kSplits; ++s) {
      const float4 v = __ldcg(from + s * kSplit_floats4);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    return {{sum.x, sum.y}, {sum.z, sum.w}};
  }

 private:
  static constexpr int kGroup_floats4 = G::tile.subtiles * kGroups * 32, kSplit_floats4 = kWarps * kGroup_floats4;
};

/// A warp of a consumer: rounds its part of the linear layer's result and leaves it to the epilogue warps, 64 columns
/// (8 KB a warpgroup) behind one another, rows of 128 bytes in the 128-byte swizzle. Gated: every other block of columns
/// has gate and up exchanged, so that the readers of a gate meet no bank twice.
template <class G>
INGOT_DEVICE void dump_tile(const Accumulators<G>& acc, u32 biases, u32 dump, int warp, int lane) {
  const int row = warp * 16 + (lane & 7) + ((lane >> 3) & 1) * 8, piece = lane >> 4;
  const u32 bias_vector = biases + (lane & 3) * (G::kCols + 16);
#pragma unroll
  for (int block = 0; block < G::kCols / 64; ++block)
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int j = block * 8 + 2 * q;
      float bias[4] = {0.f, 0.f, 0.f, 0.f};
      if constexpr (G::kBias) load_shared(bias_vector + (j / 2) * 16, bias);
      const Quad a = biased<G>(group_of<G>(acc, 0, j), bias[0], bias[1]);
      const Quad b = biased<G>(group_of<G>(acc, 0, j + 1), bias[2], bias[3]);
      const int turned = (2 * q + piece) ^ (G::kGated ? block & 1 : 0);
      store_matrices(dump + block * 8192 + swizzled(row, turned, 128), G::Element::pack(a.top), G::Element::pack(a.bottom),
                     G::Element::pack(b.top), G::Element::pack(b.bottom));
    }
}

/// A unit of 16 rows and 64 output columns of a dumped tile: activation (and product) in place, then its store.
/// `dump` is the warpgroup's part of the dump.
template <class G>
INGOT_DEVICE void finish_unit(const TensorMap& y, u32 dump, int unit, int out_col, int row, int lane) {
  using Element = typename G::Element;
  using Steps = typename G::Steps;
  const int block = unit / 4, row_group = unit % 4, piece = lane & 7;
  u32 first[4][4], second[4][4];
  const u32 out = dump + (G::kGated ? 2 * block : block) * 8192 + row_group * 2048;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int r = (lane >> 3) + 4 * k;
    if constexpr (G::kGated) {
      // Output piece p comes from pieces 2p and 2p + 1 of the two blocks seen as one row; exchanged in the second block.
      const int half = piece >> 2, at = (piece & 3) * 2;
      load_shared(out + half * 8192 + swizzled(r, at ^ half, 128), first[k]);
      load_shared(out + half * 8192 + swizzled(r, (at + 1) ^ half, 128), second[k]);
    } else {
      load_shared(out + swizzled(r, piece, 128), first[k]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if constexpr (G::kGated) {
        const u32 gate = G::kGate_first ? first[k][q] : second[k][q], up = G::kGate_first ? second[k][q] : first[k][q];
        first[k][q] = Steps::gated(Element::unpack(gate), Element::unpack(up));
      } else {
        first[k][q] = Steps::plain(Element::unpack(first[k][q]));
      }
    }
    store_shared(out + swizzled((lane >> 3) + 4 * k, piece, 128), first[k]);
  }
  fence_shared_to_async();
  __syncwarp();
  if (elect_one()) store_box(y, out, out_col + block * 64, row + row_group * 16);
}

/// Warps 1 to 3 of the producer's warpgroup: finish the dumped tiles, the two consumers' halves in turn. A half is handed
/// back once its stores have been read: at once if the next half is not there yet, else under its first unit.
template <class G>
INGOT_DEVICE void epilogue(const GemmMaps& maps, const GemmArgs& args, const Place& p, int epilogue_warp, int lane) {
  constexpr int kUnits = G::kOut_cols / 64 * 4, kHalf_bytes = 64 * G::kCols * 2;
  int pending = -1;
  const auto hand_back = [&] {
    if (pending >= 0 && elect_one()) {
      stores_wait_read<0>();
      barrier_arrive(drained_barrier<G>(p, pending));
    }
    pending = -1;
  };
  // The first of these warps also brings the biases, a tile ahead: the buffer it writes was read before the tile at hand
  // was dumped.
  const bool brings_biases = G::kBias && epilogue_warp == 0;
  BiasAhead<G> bias;
  const auto give_bias = [&](u32 turn) {
    bias.store(bias_vectors<G>(p, turn), lane);
    __syncwarp();
    if (elect_one()) barrier_arrive(bias_ready_barrier<G>(p, turn));
  };
  const int count = work_count<G>(args);
  if (brings_biases && p.cluster < count) {
    bias.load(args, first_out_col<G>(work_at<G>(args, p.cluster), p), lane);
    give_bias(0);
  }
  u32 phase = 0;
  for (int index = p.cluster; index < count; index += p.clusters, phase ^= 1) {
    const Work work = work_at<G>(args, index);
    const int out_col = first_out_col<G>(work, p), row = first_row<G>(work, p);
    const bool more = brings_biases && index + p.clusters < count;
    if (more) bias.load(args, first_out_col<G>(work_at<G>(args, index + p.clusters), p), lane);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      if (!barrier_test(dumped_barrier<G>(p, half), phase)) {
        hand_back();
        barrier_wait(dumped_barrier<G>(p, half), phase);
      }
#pragma unroll 1
      for (int unit = (epilogue_warp + half) % 3; unit < kUnits; unit += 3) {
        finish_unit<G>(maps.y, p.shared + G::shared.output + half * kHalf_bytes, unit, out_col, row + half * 64, lane);
        hand_back();
      }
      if (elect_one()) stores_commit();
      pending = half;
      if (half == 0 && more) give_bias(phase ^ 1);
    }
  }
  if (elect_one()) stores_wait_read<0>();
}

/// A warpgroup: multiplies its tiles and finishes or dumps them.
template <class G>
INGOT_DEVICE void consume(const GemmMaps& maps, const GemmArgs& args, const Place& p, int consumer) {
  const int thread = threadIdx.x & 127, lane = thread & 31, warp = __shfl_sync(0xffffffffu, thread >> 5, 0);
  // Thread i tells reader i of the stage's loads: the blocks of this block's column, then those of its row.
  const bool releases = thread < G::kReaders;
  u32 release_barrier = empty_barrier<G>(p, 0);
  if constexpr (G::kBlocks > 1) {
    constexpr int kSide = G::tile.cluster_rows;
    u32 rank = p.rank;
    if (thread < kSide) {
      rank = thread + kSide * p.rank_col;
    } else if (releases) {
      const u32 col = thread - kSide;
      rank = p.rank_row + kSide * (col >= p.rank_col ? col + 1 : col);
    }
    release_barrier = remote_address(release_barrier, rank);
  }
  Cursor<G::kStages> cursor;
  u32 turn = 0, phase = 0;  // of the two bias buffers
  for (int index = p.cluster, count = work_count<G>(args); index < count; index += p.clusters) {
    int k_blocks = G::kK_blocks;
    if constexpr (G::kSplits > 1) {
      const Work ahead = work_at<G>(args, index);
      k_blocks = ahead.k_end - ahead.k_begin;
    }
    Accumulators<G> acc;
    multiply<G>(acc, cursor, k_blocks, p, consumer, index == p.cluster, releases, release_barrier);
    asm volatile("" : "+r"(index));  // where the tile lies is computed anew: no registers for it beside the accumulators
    const Work work = work_at<G>(args, index);
    const int out_col = first_out_col<G>(work, p), row = first_row<G>(work, p);
    const u32 biases = bias_vectors<G>(p, turn);
    if constexpr (G::kBias) barrier_wait(bias_ready_barrier<G>(p, turn), phase);
    if constexpr (G::tile.epilogue_warps) {
      // One dump buffer a consumer: its phase changes with every tile, that of the bias buffers with every other.
      barrier_wait(drained_barrier<G>(p, consumer), turn ^ 1);
      dump_tile<G>(acc, biases, p.shared + G::shared.output + consumer * (64 * G::kCols * 2), warp, lane);
      __syncwarp();
      if (elect_one()) barrier_arrive(dumped_barrier<G>(p, consumer));
    } else {
      const u32 staging = p.shared + G::shared.output + (consumer * 4 + warp) * (2 * staging_bytes);
      const int warp_row = row + consumer * (G::tile.subtiles * 64) + warp * 16;
      if constexpr (G::kSplits > 1) {
        const Partials<G> partials(args, work, p, consumer * 4 + warp, lane);
        if (partials.leave(acc, work.split, lane))
          finish_tile<G, 1>(partials, maps, biases, staging, warp_row, out_col, lane);
      } else {
        finish_tile<G, 64>([&](int m, int j) { return group_of<G>(acc, m, j); }, maps, biases, staging, warp_row, out_col,
                           lane);
      }
      if constexpr (G::kBias) {
        __syncwarp();
        if (elect_one()) barrier_arrive(bias_read_barrier<G>(p, turn));
      }
    }
    phase ^= turn;
    turn ^= 1;
  }
  if constexpr (!G::tile.epilogue_warps)
    if (elect_one()) stores_wait_read<0>();
}

/// The kernel. Grid: a multiple of the cluster's blocks, at most what the device holds at once.
template <class G>
INGOT_DEVICE void gemm(const GemmMaps& maps, const GemmArgs& args) {
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0), warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  Place p;
  p.shared = shared_address(dynamic_shared);
  p.rank = G::kBlocks > 1 ? cluster_rank() : 0;
  p.rank_row = p.rank % G::tile.cluster_rows;
  p.rank_col = p.rank / G::tile.cluster_rows;
  p.cluster = int(blockIdx.x) / G::kBlocks;
  p.clusters = int(gridDim.x) / G::kBlocks;
  if (warp == 0 && elect_one()) {
    prefetch_map(maps.w);
    prefetch_map(maps.x);
    for (int s = 0; s < G::kStages; ++s) {
      barrier_init(full_barrier<G>(p, s), 1);
      barrier_init(empty_barrier<G>(p, s), G::tile.consumers * G::kReaders);
    }
    for (int c = 0; c < G::tile.consumers; ++c) {
      barrier_init(dumped_barrier<G>(p, c), 4);
      barrier_init(drained_barrier<G>(p, c), 3);
    }
    for (u32 t = 0; t < 2; ++t) {
      barrier_init(bias_ready_barrier<G>(p, t), 1);
      barrier_init(bias_read_barrier<G>(p, t), 4 * G::tile.consumers);
    }
    barrier_init_fence();
  }
  __syncwarp();
  if constexpr (G::kBlocks > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
  launch_dependents();

  if (warpgroup == 0) {
    if constexpr (G::tile.consumers > 1) registers_decrease<G::kProducer_registers>();
    if (warp == 0) {
      if (elect_one()) produce<G>(maps, args, p);
    } else if constexpr (G::tile.epilogue_warps) {
      epilogue<G>(maps, args, p, warp - 1, threadIdx.x & 31);
    } else if constexpr (G::kBias) {
      if (warp == 1) bring_biases<G>(args, p, threadIdx.x & 31);
    }
  } else {
    if constexpr (G::tile.consumers > 1) registers_increase<G::kConsumer_registers>();
    consume<G>(maps, args, p, warpgroup - 1);
  }
  // A block stays until its neighbours have stopped arriving at its barriers.
  __syncwarp();
  if constexpr (G::kBlocks > 1) {
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace ingot::sm90
