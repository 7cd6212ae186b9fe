// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) for many tokens: persistent blocks, one warp loads (producer), one to
// three warpgroups multiply (consumers), and the epilogue runs either in the consumers' registers or, for short K, on
// three warps of its own while the consumers are at the next tile. Gated: W holds two matrices, gate and up, whose
// rows the tensor map interleaves in groups of eight, so one instruction computes both and a thread ends with gate and
// up of the same output. Rows, columns and K beyond the tensors are loaded as zeros and not stored.
#pragma once
#include "epilogue.cuh"
#include "sm90/gemm_pipeline.cuh"

namespace ingot {
namespace sm90 {

/// The tile's biases in float32, for the consumers to add: two buffers in turn, filled by a warp that is ahead of them.
/// Column c lies in vector (c / 2) % 4 at 2 (c / 8) + c % 2, so that a thread reads four of its columns at once.
template <class G>
INGOT_DEVICE u32 bias_vectors(const Position& p, u32 turn) {
  return p.shared + G::shared.bias + turn * G::shared.bias_bytes;
}
template <class G>
struct BiasAhead {
  static constexpr int kCount = (G::kCols + 31) / 32;
  float values[kCount];
  INGOT_DEVICE void load(const EpilogueArgs& args, int out_col, int lane) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int c = lane + 32 * i;
      const int col = out_col + (G::kGated ? (c / 16) * 8 + c % 8 : c);
      const bool gate = G::kGated && ((c / 8) % 2 == 0) == G::kGate_first;
      const u16* base = static_cast<const u16*>(gate ? args.gate_bias : args.up_bias);
      values[i] = c < G::kCols && col < G::kN ? G::Element::value(device::load_constant(base + col)) : 0.f;
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
INGOT_DEVICE void bring_biases(const GemmArgs& args, const Position& p, int lane) {
  u32 turn = 0, phase = 0;
  for (int index = p.cluster, count = work_count<G>(args); index < count; index += p.clusters) {
    BiasAhead<G> bias;
    bias.load(args.epilogue, work_at<G>(args, p, index).out_col, lane);
    barrier_wait(bias_read_barrier<G>(p, turn), phase ^ 1);
    bias.store(bias_vectors<G>(p, turn), lane);
    __syncwarp();
    if (elect_one()) barrier_arrive(bias_ready_barrier<G>(p, turn));
    phase ^= turn;
    turn ^= 1;
  }
}

/// Idle warps: the weights of the block's first tile and the next linear's into L2, where the launch asks for it.
template <class G>
INGOT_DEVICE void fetch_ahead(const GemmArgs& args, const Position& p, int warp, int warps, int lane) {
  if (args.ahead.first != nullptr && p.cluster < work_count<G>(args)) {
    const Work work = work_at<G>(args, p, p.cluster);
    const int begin = first_k_block<G>(p) * (block_k * 2), bytes = min(k_block_count<G>(p) * (block_k * 2), G::kK * 2 - begin);
    const int shares = min(8, row_tile_count<G>(args) * G::tile.cluster_rows), share = work.row / G::kRows % shares;
    const int rows = min(G::kOut_cols, G::kN - work.out_col);
    fetch_rows(args.ahead.first, args.ahead.stride, work.out_col, rows, begin, bytes, share, shares, warp, warps, lane);
    if constexpr (G::kGated)
      fetch_rows(args.ahead.second, args.ahead.stride, work.out_col, rows, begin, bytes, share, shares, warp, warps, lane);
  }
  if (args.ahead.next != nullptr)
    fetch_next(args.ahead, int(blockIdx.x) * warps + warp, int(gridDim.x) * warps, lane);
}

/// A thread's four sums of one group of eight columns: columns 2q and 2q + 1 (q = lane % 4) of rows r and r + 8.
struct Quad {
  float v[4];
};
/// Column group j of the accumulators of subtile m.
template <class G>
INGOT_DEVICE Quad group_of(const Accumulators<G>& acc, int m, int j) {
  constexpr int kGroups = G::kInstruction_cols / 8;
  const float* v = &acc[m][j / kGroups][(j % kGroups) * 4];
  return {{v[0], v[1], v[2], v[3]}};
}
template <class G>
INGOT_DEVICE Quad biased(const Quad& q, float low, float high) {
  if constexpr (!G::kBias) return q;
  return {{q.v[0] + low, q.v[1] + high, q.v[2] + low, q.v[3] + high}};
}

/// What follows the linear, on two neighbouring outputs of a row: packed as they are stored. first, second: of the matrix
/// that comes first in the interleaving, and of the other.
template <class G>
INGOT_DEVICE u32 finished(const EpilogueArgs& args, int row, int column, float first0, float first1, float second0,
                          float second1) {
  device::Outputs<2, G::kGated> values;
  if constexpr (G::kGated) {
    values.gate[0] = G::kGate_first ? first0 : second0;
    values.gate[1] = G::kGate_first ? first1 : second1;
    values.up[0] = G::kGate_first ? second0 : first0;
    values.up[1] = G::kGate_first ? second1 : first1;
  } else {
    values.up[0] = first0;
    values.up[1] = first1;
  }
  G::Epilogue::apply(args, {row, column, 2}, values);
  return G::Element::pair_bits(values.up[0], values.up[1]);
}

/// The same from float32 sums, which are rounded first where the linear's result would have been stored.
template <class G>
INGOT_DEVICE u32 finished_sums(const EpilogueArgs& args, int row, int column, float first0, float first1, float second0,
                               float second1) {
  if constexpr (G::kRounds) {
    float sums[4] = {first0, first1, second0, second1};
    device::round_all<typename G::Element>(sums);
    return finished<G>(args, row, column, sums[0], sums[1], sums[2], sums[3]);
  } else {
    return finished<G>(args, row, column, first0, first1, second0, second1);
  }
}

/// Byte offset of 16-byte piece `piece` of row `row` in a box of `pitch` bytes a row, in the swizzle of that width
/// (pitch 96 has none).
INGOT_DEVICE u32 swizzled(int row, int piece, int pitch) {
  const int turn = pitch == 128 ? row & 7 : (pitch == 64 ? (row >> 1) & 3 : (pitch == 32 ? (row >> 2) & 1 : 0));
  return u32(row * pitch + ((piece ^ turn) << 4));
}

/// A warp: bias, what follows, and store of a unit of 16 rows and 64 columns. sums(j): the subtile's column group j.
template <class G, class Sums>
INGOT_DEVICE void finish_unit_of_rows(const Sums& sums, const GemmArgs& args, u32 biases, u32 staging, int unit, int row,
                                      int out_col, int lane) {
  constexpr int kTail = G::kTail_cols;
  const int matrix_row = (lane & 7) + ((lane >> 3) & 1) * 8, matrix_piece = lane >> 4;
  const u32 bias_vector = biases + (lane & 3) * (G::kCols + 16);
  const bool tail = kTail != 0 && unit == G::kUnits - 1;
  const int groups = tail ? kTail / 8 : 8, pitch = tail ? kTail * 2 : 128;
#pragma unroll
  for (int q = 0; q < 4; ++q) {  // 16 columns
    if (2 * q >= groups) break;
    u32 packed[4];
    float bias[4] = {0.f, 0.f, 0.f, 0.f};  // of two plain output groups, or of one gated one's two matrices
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int i = unit * 8 + 2 * q + g, column = out_col + i * 8 + 2 * (lane & 3), top = row + lane / 4;
      if constexpr (G::kGated) {
        if constexpr (G::kBias) load_shared(bias_vector + i * 16, bias);
        const Quad a = biased<G>(sums(2 * i), bias[0], bias[1]), b = biased<G>(sums(2 * i + 1), bias[2], bias[3]);
        packed[2 * g] = finished_sums<G>(args.epilogue, top, column, a.v[0], a.v[1], b.v[0], b.v[1]);
        packed[2 * g + 1] = finished_sums<G>(args.epilogue, top + 8, column, a.v[2], a.v[3], b.v[2], b.v[3]);
      } else {
        if constexpr (G::kBias)
          if (g == 0) load_shared(bias_vector + (i / 2) * 16, bias);
        const Quad a = biased<G>(sums(i), bias[2 * g], bias[2 * g + 1]);
        packed[2 * g] = finished_sums<G>(args.epilogue, top, column, a.v[0], a.v[1], 0.f, 0.f);
        packed[2 * g + 1] = finished_sums<G>(args.epilogue, top + 8, column, a.v[2], a.v[3], 0.f, 0.f);
      }
    }
    store_matrices(staging + swizzled(matrix_row, 2 * q + matrix_piece, pitch), packed[0], packed[1], packed[2], packed[3]);
  }
  fence_shared_to_async();
  __syncwarp();
  if (elect_one()) {
    store_box(tail ? args.maps.y_tail : args.maps.y, staging, out_col + unit * 64, row);
    stores_commit();
  }
}

/// A warp: all units of its rows. Staging: a buffer for each unit where one_each, else shared.buffers of them in turn.
template <class G>
INGOT_DEVICE void finish_rows(const Accumulators<G>& acc, const GemmArgs& args, u32 biases, u32 staging, bool one_each,
                              int row, int out_col, int lane) {
  constexpr int kBuffers = G::shared.buffers > 0 ? G::shared.buffers : 1;
#pragma unroll
  for (int at = 0; at < G::tile.subtiles * G::kUnits; ++at) {
    const int m = at / G::kUnits;
    // Stores of the tile before are long done; those of this one free a buffer after kBuffers units.
    if (!one_each && (at == 0 || at >= kBuffers)) {
      if (elect_one()) {
        if (at == 0)
          stores_wait_read<0>();
        else
          stores_wait_read<kBuffers - 1>();
      }
      __syncwarp();
    }
    finish_unit_of_rows<G>([&](int j) { return group_of<G>(acc, m, j); }, args, biases,
                           staging + (one_each ? at : at % kBuffers) * unit_bytes, at % G::kUnits, row + m * 64, out_col, lane);
  }
}

/// The sums of a split tile. Its pieces, 64 rows by 64 output columns, belong to the splits in turn; every warp sends what
/// others own and adds what it gets to its own, in the order of the splits.
template <class G>
struct Exchange {
  static constexpr int kPieces = G::tile.consumers * G::tile.subtiles * G::kUnits, kOwned = kPieces / G::kSplits;
  static constexpr int kGroups = G::kGated ? 16 : 8;  // column groups of a piece, 16 bytes a thread each
  static_assert(kPieces % G::kSplits == 0, "every split finishes as many pieces");

  static INGOT_DEVICE int owner(int piece) { return piece / kOwned; }
  /// Where split `from`'s sums of a piece lie in its owner's ring, this thread's of group 0.
  static INGOT_DEVICE u32 place(const Position& p, int piece, int from, int thread) {
    const int source = from < owner(piece) ? from : from - 1;
    return p.shared + (piece % kOwned * (G::kSplits - 1) + source) * G::shared.piece_bytes + thread * 16;
  }
  static INGOT_DEVICE u32 staging(const Position& p, int piece, int warp) {
    return p.shared + G::shared.sums_bytes + (piece % kOwned * 4 + warp) * unit_bytes;
  }
  static INGOT_DEVICE void send(const Accumulators<G>& acc, const Position& p, int consumer, int thread) {
#pragma unroll
    for (int at = 0; at < G::tile.subtiles * G::kUnits; ++at) {
      const int m = at / G::kUnits, unit = at % G::kUnits, piece = consumer * (G::tile.subtiles * G::kUnits) + at;
      if (owner(piece) == p.split) continue;
      const u32 to = remote_address(place(p, piece, p.split, thread), rank_of<G>(p.rank_row, p.rank_col, owner(piece)));
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (unit * kGroups + g >= G::kCols / 8) break;
        const Quad q = group_of<G>(acc, m, unit * kGroups + g);
        store_remote(to + g * 2048, q.v[0], q.v[1], q.v[2], q.v[3]);
      }
    }
  }
  /// Column group j of subtile m, which lies in `piece`.
  static INGOT_DEVICE Quad sum(const Accumulators<G>& acc, const Position& p, int m, int j, int piece, int thread) {
    Quad total{};
#pragma unroll
    for (int s = 0; s < G::kSplits; ++s) {
      Quad part = group_of<G>(acc, m, j);
      if (s != p.split) load_shared(place(p, piece, s, thread) + j % kGroups * 2048, part.v);
#pragma unroll
      for (int i = 0; i < 4; ++i) total.v[i] = s == 0 ? part.v[i] : total.v[i] + part.v[i];
    }
    return total;
  }
};

/// A warp of a consumer: rounds its part of the linear layer's result and leaves it to the epilogue warps, 64 columns
/// (8 KB a warpgroup) behind one another, rows of 128 bytes in the 128-byte swizzle. Gated: every other block of columns
/// has gate and up exchanged, so that the readers of a gate meet no bank twice.
template <class G>
INGOT_DEVICE void dump_tile(const Accumulators<G>& acc, u32 biases, u32 dump, int warp, int lane) {
  using Element = typename G::Element;
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
      store_matrices(dump + block * 8192 + swizzled(row, turned, 128), Element::pair_bits(a.v[0], a.v[1]),
                     Element::pair_bits(a.v[2], a.v[3]), Element::pair_bits(b.v[0], b.v[1]),
                     Element::pair_bits(b.v[2], b.v[3]));
    }
}

/// A unit of 16 rows and 64 output columns of a dumped tile: what follows the linear, in place, then its store. `dump`:
/// the warpgroup's part of the dump; row, out_col: of its first element.
template <class G>
INGOT_DEVICE void finish_unit(const GemmArgs& args, u32 dump, int unit, int out_col, int row, int lane) {
  using Element = typename G::Element;
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
  const auto low = [](u32 pair) { return Element::value(u16(pair)); };
  const auto high = [](u32 pair) { return Element::value(u16(pair >> 16)); };
  const int column = out_col + block * 64 + piece * 8;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int r = (lane >> 3) + 4 * k;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const u32 a = first[k][q], b = G::kGated ? second[k][q] : 0;
      first[k][q] = finished<G>(args.epilogue, row + row_group * 16 + r, column + 2 * q, low(a), high(a), low(b), high(b));
    }
    store_shared(out + swizzled(r, piece, 128), first[k]);
  }
  fence_shared_to_async();
  __syncwarp();
  if (elect_one()) store_box(args.maps.y, out, out_col + block * 64, row + row_group * 16);
}

/// Warps 1 to 3 of the producer's warpgroup: finish the dumped tiles, the two consumers' halves in turn. A half is handed
/// back once its stores have been read: at once if the next half is not there yet, else under its first unit.
template <class G>
INGOT_DEVICE void epilogue(const GemmArgs& args, const Position& p, int epilogue_warp, int lane) {
  constexpr int kUnits = G::kUnits * 4, kHalf_bytes = 64 * G::kCols * 2;
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
    bias.load(args.epilogue, work_at<G>(args, p, p.cluster).out_col, lane);
    give_bias(0);
  }
  u32 phase = 0;
  for (int index = p.cluster; index < count; index += p.clusters, phase ^= 1) {
    const Work work = work_at<G>(args, p, index);
    const bool more = brings_biases && index + p.clusters < count;
    if (more) bias.load(args.epilogue, work_at<G>(args, p, index + p.clusters).out_col, lane);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      if (!barrier_test(dumped_barrier<G>(p, half), phase)) {
        hand_back();
        barrier_wait(dumped_barrier<G>(p, half), phase);
      }
#pragma unroll 1
      for (int unit = (epilogue_warp + half) % 3; unit < kUnits; unit += 3) {
        finish_unit<G>(args, p.shared + G::shared.output + half * kHalf_bytes, unit, work.out_col, work.row + half * 64, lane);
        hand_back();
      }
      if (elect_one()) stores_commit();
      pending = half;
      if (half == 0 && more) give_bias(phase ^ 1);
    }
  }
  if (elect_one()) stores_wait_read<0>();
}

/// All threads of a split tile's cluster, twice: the rings are read, the sums have arrived.
INGOT_DEVICE void meet_cluster() {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
}

/// A warpgroup: multiplies its tiles and finishes or dumps them.
template <class G>
INGOT_DEVICE void consume(const GemmArgs& args, const Position& p, int consumer) {
  constexpr int kSubtiles = G::tile.subtiles;
  const int thread = threadIdx.x & 127, lane = thread & 31, warp = __shfl_sync(0xffffffffu, thread >> 5, 0);
  const Releases releases = releases_of<G>(p, thread);
  Cursor<G::kStages> cursor;
  u32 turn = 0, phase = 0;  // of the two bias buffers
  for (int index = p.cluster, count = work_count<G>(args); index < count; index += p.clusters) {
    Accumulators<G> acc;
    multiply<G>(acc, cursor, k_block_count<G>(p), p, consumer, index == p.cluster, releases);
    asm volatile("" : "+r"(index));  // where the tile lies is computed now: no registers for it beside the accumulators
    const u32 biases = bias_vectors<G>(p, turn);
    if constexpr (G::kBias) barrier_wait(bias_ready_barrier<G>(p, turn), phase);
    if constexpr (G::tile.epilogue_warps) {
      // One dump buffer a consumer: its phase changes with every tile, that of the bias buffers with every other.
      barrier_wait(drained_barrier<G>(p, consumer), turn ^ 1);
      dump_tile<G>(acc, biases, p.shared + G::shared.output + consumer * (64 * G::kCols * 2), warp, lane);
      __syncwarp();
      if (elect_one()) barrier_arrive(dumped_barrier<G>(p, consumer));
    } else {
      const Work work = work_at<G>(args, p, index);
      const int warp_row = work.row + consumer * (kSubtiles * 64) + warp * 16;
      if constexpr (G::kSplits > 1) {
        meet_cluster();
        Exchange<G>::send(acc, p, consumer, thread);
        meet_cluster();
#pragma unroll
        for (int m = 0; m < kSubtiles; ++m) {
          const int piece = (consumer * kSubtiles + m) * G::kUnits;  // of unit 0
#pragma unroll
          for (int unit = 0; unit < G::kUnits; ++unit)
            if (Exchange<G>::owner(piece + unit) == p.split)
              finish_unit_of_rows<G>(
                  [&](int j) { return Exchange<G>::sum(acc, p, m, j, piece + unit, thread); }, args, biases,
                  Exchange<G>::staging(p, piece + unit, warp), unit, warp_row + m * 64, work.out_col, lane);
        }
      } else {
        // Nothing is loaded under a block's last tile: once both warpgroups are through, the ring is staging for all.
        constexpr int kUnits = kSubtiles * G::kUnits;
        const int warp_of_all = consumer * 4 + warp;
        u32 staging = p.shared + G::shared.output + warp_of_all * (G::shared.buffers * unit_bytes);
        bool one_each = G::shared.buffers >= kUnits;
        if constexpr (G::shared.buffers < kUnits &&
                      kUnits * unit_bytes * 4 * G::tile.consumers <= G::kStages * G::shared.stage_bytes) {
          if (index + p.clusters >= count) {
            named_barrier_sync(3, 128 * G::tile.consumers);
            staging = p.shared + warp_of_all * (kUnits * unit_bytes);
            one_each = true;
          }
        }
        if (G::shared.buffers >= kUnits && index != p.cluster) {
          if (elect_one()) stores_wait_read<0>();
          __syncwarp();
        }
        finish_rows<G>(acc, args, biases, staging, one_each, warp_row, work.out_col, lane);
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

/// The kernel. Grid: a multiple of the cluster's blocks; split: a cluster for each tile, else at most what the device
/// holds at once.
template <class Shape>
struct Gemm {
  using Args = GemmArgs;
  static constexpr int threads = Shape::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const GemmArgs& args) {
    using G = Shape;
    extern __shared__ __align__(1024) unsigned char ingot_gemm_shared[];
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0), warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    const int lane = threadIdx.x & 31;
    const Position p = position_of_block<G>(ingot_gemm_shared);
    constexpr bool kWeights_at_once = G::tile.cluster_rows == 1;  // no other block's barrier is touched
    if (warp == 0 && elect_one()) {
      prefetch_map(args.maps.w);
      prefetch_map(args.maps.x);
      init_barriers<G>(p);
      if constexpr (kWeights_at_once) produce_first_weights<G>(args, p);
    }
    __syncwarp();
    if constexpr (G::kBlocks > 1)
      meet_cluster();
    else
      __syncthreads();
    device::let_next_kernel_start();

    if (warpgroup == 0) {
      if constexpr (G::tile.consumers > 1) registers_decrease<G::kProducer_registers>();
      if (warp == 0) {
        if (elect_one()) {
          if constexpr (!kWeights_at_once) produce_first_weights<G>(args, p);
          produce<G>(args, p);
        }
      } else if constexpr (G::tile.epilogue_warps) {
        epilogue<G>(args, p, warp - 1, lane);
      } else if (warp == 1) {
        if constexpr (G::kBias) bring_biases<G>(args, p, lane);
      } else {
        fetch_ahead<G>(args, p, warp - 2, 2, lane);
      }
      if constexpr (G::kSplits > 1) {
        meet_cluster();
        meet_cluster();
      }
    } else {
      if constexpr (G::tile.consumers > 1) registers_increase<G::kConsumer_registers>();
      consume<G>(args, p, warpgroup - 1);
    }
    // A block stays until its neighbours have stopped arriving at its barriers.
    if constexpr (G::kBlocks > 1) meet_cluster();
  }
};

}  // namespace sm90
}  // namespace ingot
