// SPDX-License-Identifier: Apache-2.0
//
// y[tokens, kN] = f(x[tokens, kK] W^T + bias) for many tokens: persistent blocks, one warp loads (producer),
// one to three warpgroups multiply (consumers), and the epilogue runs either in the consumers' registers or,
// for short K, on three warps of its own while the consumers are at the next tile. Gated: W holds two
// matrices, gate and up, whose rows the tensor map interleaves in groups of eight, so one instruction
// computes both and a thread ends with gate and up of the same output. Rows, columns and K beyond the tensors
// are loaded as zeros and not stored.
#pragma once
#include "epilogue.cuh"
#include "sm90/gemm_pipeline.cuh"

namespace ingot {
namespace sm90 {

/// The tile's biases in float32, for the consumers to add: two buffers in turn, filled by a warp that is
/// ahead of them. Column c lies in vector (c / 2) % 4 at 2 (c / 8) + c % 2, so that a thread reads four of
/// its columns at once.
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
      if (c < G::kCols)
        store_shared(vectors + ((c / 2) % 4) * (G::kCols + 16) + (2 * (c / 8) + c % 2) * 4, values[i]);
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
    barrier_arrive(bias_ready_barrier<G>(p, turn));
    phase ^= turn;
    turn ^= 1;
  }
}

/// A thread's four sums of one group of eight columns: columns 2q and 2q + 1 (q = lane % 4) of rows r and r
/// + 8.
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

/// What follows the linear, on two neighbouring outputs of a row: packed as they are stored. first, second:
/// of the matrix that comes first in the interleaving, and of the other.
template <class G>
INGOT_DEVICE u32 finished(const EpilogueArgs& args, int row, int column, float first0, float first1,
                          float second0, float second1) {
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
INGOT_DEVICE u32 finished_sums(const EpilogueArgs& args, int row, int column, float first0, float first1,
                               float second0, float second1) {
  if constexpr (G::kRounds) {
    float sums[4] = {first0, first1, second0, second1};
    device::round_all<typename G::Element>(sums);
    return finished<G>(args, row, column, sums[0], sums[1], sums[2], sums[3]);
  } else {
    return finished<G>(args, row, column, first0, first1, second0, second1);
  }
}

/// Byte offset of 16-byte piece `piece` of row `row` in a box of `pitch` bytes a row, in the swizzle of that
/// width (pitch 96 has none).
INGOT_DEVICE u32 swizzled(int row, int piece, int pitch) {
  const int turn =
      pitch == 128 ? row & 7 : (pitch == 64 ? (row >> 1) & 3 : (pitch == 32 ? (row >> 2) & 1 : 0));
  return u32(row * pitch + ((piece ^ turn) << 4));
}

/// A warp: bias and what follows, of a unit of 16 rows and 64 columns, to its staging. sums(j): the subtile's
/// column group j. Biases are loaded and results kept for a whole unit where registers allow, so that the
/// arithmetic overlaps.
template <class G, class Sums>
INGOT_DEVICE void stage_unit(const Sums& sums, const GemmArgs& args, u32 biases, u32 staging, int unit,
                             int row, int out_col, int lane) {
  constexpr int kTail = G::kTail_cols, kBatch = G::kTight ? 1 : (G::kGated ? 2 : 4);
  const int matrix_row = (lane & 7) + ((lane >> 3) & 1) * 8, matrix_piece = lane >> 4;
  const u32 bias_vector = biases + (lane & 3) * (G::kCols + 16);
  const bool tail = kTail != 0 && unit == G::kUnits - 1;
  const int groups = tail ? kTail / 8 : 8, pitch = tail ? kTail * 2 : 128;
#pragma unroll
  for (int first = 0; first < 4; first += kBatch) {
    // Four biases are of two plain output groups, or of one gated one's two matrices.
    float bias[kBatch * (G::kGated ? 2 : 1)][4] = {};
    u32 packed[kBatch][4];
    if constexpr (G::kBias) {
#pragma unroll
      for (int i = 0; i < kBatch * (G::kGated ? 2 : 1); ++i) {
        const int group = 2 * first + (G::kGated ? i : 2 * i);  // of the unit's output groups
        if (group < groups) load_shared(bias_vector + (unit * 8 + group) * (G::kGated ? 16 : 8), bias[i]);
      }
    }
#pragma unroll
    for (int q = 0; q < kBatch; ++q) {  // 16 columns
      if (2 * (first + q) >= groups) break;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int i = unit * 8 + 2 * (first + q) + g, column = out_col + i * 8 + 2 * (lane & 3),
                  top = row + lane / 4;
        if constexpr (G::kGated) {
          const float(&b)[4] = bias[2 * q + g];
          const Quad one = biased<G>(sums(2 * i), b[0], b[1]), two = biased<G>(sums(2 * i + 1), b[2], b[3]);
          packed[q][2 * g] =
              finished_sums<G>(args.epilogue, top, column, one.v[0], one.v[1], two.v[0], two.v[1]);
          packed[q][2 * g + 1] =
              finished_sums<G>(args.epilogue, top + 8, column, one.v[2], one.v[3], two.v[2], two.v[3]);
        } else {
          const Quad one = biased<G>(sums(i), bias[q][2 * g], bias[q][2 * g + 1]);
          packed[q][2 * g] = finished_sums<G>(args.epilogue, top, column, one.v[0], one.v[1], 0.f, 0.f);
          packed[q][2 * g + 1] =
              finished_sums<G>(args.epilogue, top + 8, column, one.v[2], one.v[3], 0.f, 0.f);
        }
      }
    }
#pragma unroll
    for (int q = 0; q < kBatch; ++q)
      if (2 * (first + q) < groups)
        store_matrices(staging + swizzled(matrix_row, 2 * (first + q) + matrix_piece, pitch), packed[q][0],
                       packed[q][1], packed[q][2], packed[q][3]);
  }
}
/// One thread: a staged unit to memory; belongs to the open group of stores.
template <class G>
INGOT_DEVICE void store_unit(const GemmArgs& args, u32 staging, int unit, int row, int out_col) {
  store_box(G::kTail_cols != 0 && unit == G::kUnits - 1 ? args.maps.y_tail : args.maps.y, staging,
            out_col + unit * 64, row);
}

/// A warp: all units of its rows, through `kBuffers` units of staging: one fence and one group of stores for
/// each filling, since the fence waits for all that was written.
template <class G, int kBuffers>
INGOT_DEVICE void finish_rows(const Accumulators<G>& acc, const GemmArgs& args, u32 biases, u32 staging,
                              int row, int out_col, int lane) {
  constexpr int kAll = G::tile.subtiles * G::kUnits;
#pragma unroll
  for (int first = 0; first < kAll; first += kBuffers) {
    if (elect_one()) stores_wait_read<0>();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kBuffers; ++i) {
      const int at = first + i, m = at / G::kUnits;
      if (at >= kAll) break;
      stage_unit<G>([&](int j) { return group_of<G>(acc, m, j); }, args, biases, staging + i * unit_bytes,
                    at % G::kUnits, row + m * 64, out_col, lane);
    }
    fence_shared_to_async();
    __syncwarp();
    if (elect_one()) {
#pragma unroll
      for (int i = 0; i < kBuffers; ++i)
        if (first + i < kAll)
          store_unit<G>(args, staging + i * unit_bytes, (first + i) % G::kUnits,
                        row + (first + i) / G::kUnits * 64, out_col);
      stores_commit();
    }
  }
}

/// The sums of a split tile. Its pieces, 64 rows by 64 output columns, belong to the splits in turn; every
/// warp sends what others own and adds what it gets to its own, in the order of the splits.
template <class G>
struct Exchange {
  static constexpr int kPieces = G::tile.consumers * G::tile.subtiles * G::kUnits,
                       kOwned = kPieces / G::kSplits;
  static constexpr int kGroups = G::kGated ? 16 : 8;  // column groups of a piece, 16 bytes a thread each
  static_assert(kPieces % G::kSplits == 0, "every split finishes as many pieces");

  /// Column groups of unit `unit`: a tile's last may be narrower.
  static INGOT_DEVICE int groups(int unit) { return min(kGroups, G::kCols / 8 - unit * kGroups); }
  /// Bytes that the other splits send to split `split`.
  static INGOT_DEVICE u32 arriving_bytes(int split) {
    int count = 0;
    for (int piece = split * kOwned; piece < (split + 1) * kOwned; ++piece)
      count += groups(piece % G::kUnits);
    return u32(count * 2048 * (G::kSplits - 1));
  }
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
      const int m = at / G::kUnits, unit = at % G::kUnits,
                piece = consumer * (G::tile.subtiles * G::kUnits) + at;
      if (owner(piece) == p.split) continue;
      const u32 rank = rank_of<G>(p.rank_row, p.rank_col, owner(piece));
      const u32 to = remote_address(place(p, piece, p.split, thread), rank);
      const u32 barrier = remote_address(sums_barrier<G>(p), rank);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (g >= groups(unit)) break;
        const Quad q = group_of<G>(acc, m, unit * kGroups + g);
        store_remote(to + g * 2048, q.v[0], q.v[1], q.v[2], q.v[3], barrier);
      }
    }
  }
  /// Column group j of subtile m, which lies in `piece`.
  static INGOT_DEVICE Quad sum(const Accumulators<G>& acc, const Position& p, int m, int j, int piece,
                               int thread) {
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

/// A warp of a consumer: rounds its part of the linear layer's result and leaves it to the epilogue warps, 64
/// columns (8 KB a warpgroup) behind one another, rows of 128 bytes in the 128-byte swizzle. Gated: every
/// other block of columns has gate and up exchanged, so that the readers of a gate meet no bank twice.
template <class G>
INGOT_DEVICE void dump_tile(const Accumulators<G>& acc, u32 biases, u32 dump, int warp, int lane) {
  using Element = typename G::Element;
  const int row = warp * 16 + (lane & 7) + ((lane >> 3) & 1) * 8, piece = lane >> 4;
  const u32 bias_vector = biases + (lane & 3) * (G::kCols + 16);
  // Biases of 64 columns are loaded while those before are added.
  float bias[2][4][4] = {};
  const auto load_biases = [&](int block) {
#pragma unroll
    for (int q = 0; q < 4; ++q) load_shared(bias_vector + (block * 4 + q) * 16, bias[block % 2][q]);
  };
  if constexpr (G::kBias) load_biases(0);
#pragma unroll
  for (int block = 0; block < G::kCols / 64; ++block) {
    if (G::kBias && block + 1 < G::kCols / 64) load_biases(block + 1);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float(&b)[4] = bias[block % 2][q];
      const Quad one = biased<G>(group_of<G>(acc, 0, block * 8 + 2 * q), b[0], b[1]);
      const Quad two = biased<G>(group_of<G>(acc, 0, block * 8 + 2 * q + 1), b[2], b[3]);
      const int turned = (2 * q + piece) ^ (G::kGated ? block & 1 : 0);
      store_matrices(dump + block * 8192 + swizzled(row, turned, 128), Element::pair_bits(one.v[0], one.v[1]),
                     Element::pair_bits(one.v[2], one.v[3]), Element::pair_bits(two.v[0], two.v[1]),
                     Element::pair_bits(two.v[2], two.v[3]));
    }
  }
}

/// Where the output of a unit of a dumped tile lies: in place of its sums, or of the first half of them.
template <class G>
INGOT_DEVICE u32 unit_of_dump(u32 dump, int unit) {
  return dump + (G::kGated ? 2 : 1) * (unit / 4) * 8192 + unit % 4 * unit_bytes;
}
/// A unit of 16 rows and 64 output columns of a dumped tile: what follows the linear, in place. `dump`: the
/// warpgroup's part of the dump; row, out_col: of its first element.
template <class G>
INGOT_DEVICE void finish_unit(const GemmArgs& args, u32 dump, int unit, int out_col, int row, int lane) {
  using Element = typename G::Element;
  const int block = unit / 4, row_group = unit % 4, piece = lane & 7;
  u32 first[4][4], second[4][4];
  const u32 out = unit_of_dump<G>(dump, unit);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int r = (lane >> 3) + 4 * k;
    if constexpr (G::kGated) {
      // Output piece p comes from pieces 2p and 2p + 1 of the two blocks seen as one row; exchanged in the
      // second block.
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
      first[k][q] = finished<G>(args.epilogue, row + row_group * 16 + r, column + 2 * q, low(a), high(a),
                                low(b), high(b));
    }
    store_shared(out + swizzled(r, piece, 128), first[k]);
  }
}

/// Warps 1 to 3 of the producer's warpgroup: finish the dumped tiles, the two consumers' halves in turn. A
/// half is handed back once its stores have been read: at once if the next half is not there yet, else under
/// its first unit.
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
  // The first of these warps also brings the biases, a tile ahead: the buffer it writes was read before the
  // tile at hand was dumped.
  const bool brings_biases = G::kBias && epilogue_warp == 0;
  BiasAhead<G> bias;
  const auto give_bias = [&](u32 turn) {
    bias.store(bias_vectors<G>(p, turn), lane);
    barrier_arrive(bias_ready_barrier<G>(p, turn));
  };
  const int count = work_count<G>(args);
  if (brings_biases && p.cluster < count) {
    bias.load(args.epilogue, work_at<G>(args, p, p.cluster).out_col, lane);
    give_bias(0);
  }
  // A block's last tile has nothing to hide under: the consumers, who are more, finish it themselves.
  u32 phase = 0;
  for (int index = p.cluster; index + p.clusters < count; index += p.clusters, phase ^= 1) {
    const Work work = work_at<G>(args, p, index);
    if (brings_biases) bias.load(args.epilogue, work_at<G>(args, p, index + p.clusters).out_col, lane);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      if (!barrier_done(dumped_barrier<G>(p, half), phase)) {
        hand_back();
        barrier_wait(dumped_barrier<G>(p, half), phase);
      }
      const u32 dump = p.shared + G::shared.output + half * kHalf_bytes;
      const int first = (epilogue_warp + half) % 3;
#pragma unroll 1
      for (int unit = first; unit < kUnits; unit += 3) {
        finish_unit<G>(args, dump, unit, work.out_col, work.row + half * 64, lane);
        hand_back();
      }
      fence_shared_to_async();
      __syncwarp();
      if (elect_one()) {
        for (int unit = first; unit < kUnits; unit += 3)
          store_box(args.maps.y, unit_of_dump<G>(dump, unit), work.out_col + unit / 4 * 64,
                    work.row + half * 64 + unit % 4 * 16);
        stores_commit();
      }
      pending = half;
      if (half == 0 && brings_biases) give_bias(phase ^ 1);
    }
  }
  if (elect_one()) stores_wait_read<0>();
}

/// A warp of a split tile: the pieces that its block owns.
template <class G>
INGOT_DEVICE void finish_pieces(const Accumulators<G>& acc, const Position& p, const GemmArgs& args,
                                u32 biases, int consumer, int row, int out_col, int thread) {
  constexpr int kAll = G::tile.subtiles * G::kUnits;
  const int warp = thread / 32, lane = thread & 31;
#pragma unroll
  for (int at = 0; at < kAll; ++at) {
    const int m = at / G::kUnits, piece = consumer * kAll + at;
    if (Exchange<G>::owner(piece) == p.split)
      stage_unit<G>([&](int j) { return Exchange<G>::sum(acc, p, m, j, piece, thread); }, args, biases,
                    Exchange<G>::staging(p, piece, warp), at % G::kUnits, row + m * 64, out_col, lane);
  }
  fence_shared_to_async();
  __syncwarp();
  if (elect_one()) {
    for (int at = 0; at < kAll; ++at)
      if (Exchange<G>::owner(consumer * kAll + at) == p.split)
        store_unit<G>(args, Exchange<G>::staging(p, consumer * kAll + at, warp), at % G::kUnits,
                      row + at / G::kUnits * 64, out_col);
    stores_commit();
  }
}

/// All threads of the cluster. Relaxed: what the others wait for was only read.
INGOT_DEVICE void meet_cluster() {
  __syncwarp();
  cluster_arrive_relaxed();
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
    asm volatile(
        ""
        : "+r"(index));  // where the tile lies is computed now: no registers for it beside the accumulators
    const u32 biases = bias_vectors<G>(p, turn);
    const bool last = index + p.clusters >= count;
    if constexpr (G::kBias) barrier_wait(bias_ready_barrier<G>(p, turn), phase);
    if (G::tile.epilogue_warps && !last) {
      // One dump buffer a consumer: its phase changes with every tile, that of the bias buffers with every
      // other.
      if constexpr (G::tile.epilogue_warps) {
        barrier_wait(drained_barrier<G>(p, consumer), turn ^ 1);
        dump_tile<G>(acc, biases, p.shared + G::shared.output + consumer * (64 * G::kCols * 2), warp, lane);
        __syncwarp();
        if (elect_one()) barrier_arrive(dumped_barrier<G>(p, consumer));
      }
    } else {
      const Work work = work_at<G>(args, p, index);
      const int warp_row = work.row + consumer * (kSubtiles * 64) + warp * 16;
      if constexpr (G::kSplits > 1) {
        meet_cluster();  // the rings are read
        Exchange<G>::send(acc, p, consumer, thread);
        barrier_wait(sums_barrier<G>(p), 0);
        finish_pieces<G>(acc, p, args, biases, consumer, warp_row, work.out_col, thread);
      } else {
        // Nothing is loaded under a block's last tile: once all warpgroups are through, the ring is staging
        // for all.
        constexpr int kUnits = kSubtiles * G::kUnits, kBuffers = G::shared.buffers;
        constexpr bool kRing_holds_all =
            kUnits * unit_bytes * 4 * G::tile.consumers <= G::kStages * G::shared.stage_bytes;
        static_assert(kRing_holds_all || !G::tile.epilogue_warps, "staging of the last tile");
        const int warp_of_all = consumer * 4 + warp;
        if constexpr (kBuffers < kUnits && kRing_holds_all) {
          if (last) {
            named_barrier_sync(3, 128 * G::tile.consumers);
            finish_rows<G, kUnits>(acc, args, biases, p.shared + warp_of_all * (kUnits * unit_bytes),
                                   warp_row, work.out_col, lane);
          }
        }
        if constexpr (kBuffers > 0)
          if (kBuffers >= kUnits || !kRing_holds_all || !last)
            finish_rows<G, kBuffers>(acc, args, biases,
                                     p.shared + G::shared.output + warp_of_all * (kBuffers * unit_bytes),
                                     warp_row, work.out_col, lane);
      }
      if constexpr (G::kBias && !G::tile.epilogue_warps) {
        barrier_arrive(bias_read_barrier<G>(p, turn));
      }
    }
    phase ^= turn;
    turn ^= 1;
  }
  if (elect_one()) stores_wait_read<0>();
}

/// The kernel. Grid: a multiple of the cluster's blocks; split: a cluster for each tile, else at most what
/// the device holds at once.
template <class Shape>
struct Gemm {
  using Args = GemmArgs;
  static constexpr int threads = Shape::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const GemmArgs& args) {
    using G = Shape;
    extern __shared__ __align__(1024) unsigned char ingot_gemm_shared[];
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0),
              warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    const int lane = threadIdx.x & 31;
    const Position p = position_of_block<G>(ingot_gemm_shared);
    if (warp == 0 && elect_one()) {
      prefetch_map(args.maps.w);
      prefetch_map(args.maps.x);
      init_barriers<G>(p);
      if constexpr (G::kSplits > 1) barrier_expect(sums_barrier<G>(p), Exchange<G>::arriving_bytes(p.split));
    }
    __syncwarp();
    // The loading warp waits for nobody but the cluster that it loads for.
    if constexpr (G::kBlocks > 1)
      meet_cluster();
    else if (warp == 0)
      named_barrier_arrive(4, G::kThreads);
    else
      named_barrier_sync(4, G::kThreads);
    if (warp != 0) {
      // A kernel that reads nothing early lets the next one start only now: what that one reads early is
      // older.
      if (args.early_weights == 0) device::wait_for_previous_kernel();
      device::let_next_kernel_start();
    }

    if (warpgroup == 0) {
      if constexpr (G::tile.consumers > 1) registers_decrease<G::kProducer_registers>();
      if (warp == 0) {
        produce<G>(args, p);
      } else if constexpr (G::tile.epilogue_warps) {
        epilogue<G>(args, p, warp - 1, lane);
      } else if (warp == 1) {
        if constexpr (G::kBias) bring_biases<G>(args, p, lane);
      }
      if constexpr (G::kSplits > 1) meet_cluster();
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
