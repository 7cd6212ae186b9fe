// SPDX-License-Identifier: Apache-2.0
//
// A whole MLP in one launch, y = W_down f(x W_up^T + bias)^T + bias, for few tokens on a small model, where
// reading the weights and waiting are the work. A cluster of blocks owns a few tokens, each of its blocks a
// slice of hidden. Weights are the rows of mma.sync and tokens its columns, so that a tile is as narrow as
// the tokens are few. A lane loads weights straight from memory to registers, as many as it can hold before
// the kernel before has finished.
//
// Order of K. The four lanes of a row each load 16 bytes, eight elements, of a chunk of 32. The instruction
// wants lane q's elements at 2q, 2q + 1, 2q + 8 and 2q + 9 of 16; which elements of K those are is free as
// long as both operands agree. So the first instruction takes the first four of every lane's eight, the
// second the rest, and x is read from shared memory in the same pieces of 16 bytes.
//
// Order of hidden. After movmatrix a unit's activated values are the second linear's operand: a lane needs
// elements 8q .. 8q + 7 of a chunk of its token, and gets two neighbouring rows of each 8 x 8 matrix. Matrix
// j of a chunk therefore holds hidden 8i + 2j and 8i + 2j + 1 in rows 2i and 2i + 1.
//
// Each block multiplies its slice of hidden by all output columns; f32 sums go through distributed shared
// memory to the block that owns the columns and are added there in the order of the blocks: the same bits
// every time.
#pragma once
#include "epilogue.cuh"
#include "mlp_args.cuh"
#include "sm90/cluster_layout.cuh"
#include "sm90/layout.cuh"
#include "sm90/ptx.cuh"

namespace ingot {
namespace sm90 {

/// Pointers and row strides are multiples of 16 bytes; strides count elements.
struct ClusterArgs {
  const void* x;             ///< [tokens, kDim], rows x_stride apart
  const void* up;            ///< [kHidden, kDim]
  const void* gate;          ///< [kHidden, kDim]; unread unless gated
  const void* down;          ///< [kDim, kHidden]
  MlpEpilogueArgs epilogue;  ///< y is 16-byte aligned, too
  i64 x_stride;
  int up_stride, gate_stride, down_stride;
  int tokens;
};

/// What a kernel is compiled for. Epilogue: the chain between the linears; kRounds: the first linear's result
/// is rounded to the element before it. Gate and up are two pointers: their order in memory makes no other
/// kernel.
template <class Element_, class Epilogue_, bool kRounds_, int kDim_, int kHidden_, bool kGated_,
          bool kUp_bias_, bool kDown_bias_, int kBlocks_, int kTokens_, int kWarps_, int kDepth_>
struct ClusterShape {
  using Element = Element_;
  using Epilogue = Epilogue_;
  static constexpr ClusterTile tile{kBlocks_, kTokens_, kWarps_, kDepth_};
  static constexpr ClusterLayout shared = layout(tile, kDim_, kHidden_, kGated_);
  static constexpr bool kRounds = kRounds_, kGated = kGated_, kUp_bias = kUp_bias_, kDown_bias = kDown_bias_;
  static constexpr int kDim = kDim_, kHidden = kHidden_, kBlocks = kBlocks_, kTokens = kTokens_,
                       kWarps = kWarps_;
  static constexpr int kThreads = sm90::threads(tile), kGroups = kTokens / 8;
  static constexpr int kMatrices = kGated ? 2 : 1;  // of the first linear: up and the gate

  static constexpr ClusterWalk up = shared.up, down = shared.down;
  static constexpr int kUp_units = shared.slice_chunks * (cluster_chunk / cluster_up_rows);  // of a block
  static constexpr int kOut_units = (kDim + cluster_down_columns - 1) / cluster_down_columns;
  // Whether every lane always has weights to load, so that nothing is asked.
  static constexpr bool kWhole_dim = up.rounds * up.chunks * cluster_chunk == kDim;
  static constexpr bool kWhole_hidden = kBlocks * shared.slice_chunks * cluster_chunk == kHidden;
  static constexpr bool kWhole_up = up.batches == 1 && up.units * kWarps == kUp_units && kWhole_hidden;
  static constexpr bool kWhole_down =
      down.batches == 1 && down.units * kWarps == kOut_units && kDim % cluster_down_columns == 0;
  // Independent sums of one output, added at the end, where there is little else to keep the tensor cores
  // busy.
  static constexpr int kUp_chains = up.units * kMatrices * kGroups < 4 ? 2 : 1;
  static constexpr int kDown_chains = down.units * kGroups < 2 ? 2 : 1;

  static_assert(kDim % 8 == 0 && kHidden % 8 == 0, "dim and hidden are multiples of 8");
  static_assert(kTokens % 8 == 0 && kTokens >= 8, "columns of a tile");
  static_assert(kDepth_ >= 4, "a chunk of the second linear is in flight");
  static_assert(shared.total <= shared_limit, "shared memory");
};

/// A thread's place. row, quarter: of a lane in the instruction's operands: which of eight rows, which piece.
struct ClusterPosition {
  u32 shared;
  int thread, warp, lane, row, quarter, rank;
  i64 first_token;
};
template <class S>
INGOT_DEVICE ClusterPosition cluster_position(const void* shared) {
  ClusterPosition p;
  p.shared = device::shared_address(shared);
  p.thread = int(threadIdx.x);
  p.warp = __shfl_sync(0xffffffffu, p.thread >> 5, 0);
  p.lane = p.thread & 31;
  p.row = p.lane >> 2;
  p.quarter = p.lane & 3;
  p.rank = S::kBlocks > 1 ? int(cluster_rank()) : 0;
  p.first_token = i64(blockIdx.x) / S::kBlocks * S::kTokens;
  return p;
}

/// A warp: the barrier that counts the bytes of all blocks' sums of this block's columns.
template <class S>
INGOT_DEVICE void cluster_init_barrier(const ClusterPosition& p) {
  const int left = S::kOut_units - p.rank * S::shared.owned_units;
  const int owned = min(max(left, 0), S::shared.owned_units);
  if (elect_one()) {
    barrier_init(p.shared + S::shared.barrier, 1);
    barrier_init_fence();
  }
  __syncwarp();
  if (elect_one())
    barrier_expect(p.shared + S::shared.barrier, owned * S::kBlocks * S::kTokens * cluster_down_columns * 4);
}

/// Biases, which wait for no other kernel: of this block's slice of hidden, or of its columns. Loaded early
/// and stored, in f32, when something else has to be waited for.
template <class S, int kFloats>
struct ClusterBiases {
  static constexpr int kCount = (kFloats + S::kThreads - 1) / S::kThreads;
  u16 bits[kCount];

  /// `count`: of the whole vector.
  INGOT_DEVICE void load(const void* bias, const ClusterPosition& p, int count) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int at = p.thread + i * S::kThreads, element = p.rank * kFloats + at;
      bits[i] = 0;
      if (at < kFloats && element < count)
        bits[i] = device::load_constant(static_cast<const u16*>(bias) + element);
    }
  }
  INGOT_DEVICE void store(u32 shared, const ClusterPosition& p) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int at = p.thread + i * S::kThreads;
      if (at < kFloats) store_shared(shared + 4 * at, S::Element::value(bits[i]));
    }
  }
};

/// A batch of weights of a lane: pieces of 16 bytes. Rows: of a unit, as the instruction's operand wants
/// them, r and r + 8 of its first 16 rows, then of the next 16.
template <int kUnits, int kChunks, int kRows>
struct ClusterWeights {
  static constexpr int units = kUnits, chunks = kChunks, rows = kRows;
  u32 piece[kChunks][kUnits][kRows][4];

  /// The operand of the first or the second instruction of a chunk.
  INGOT_DEVICE void operand(u32 (&a)[4], int chunk, int unit, int tile, int half) const {
    a[0] = piece[chunk][unit][2 * tile][2 * half];
    a[1] = piece[chunk][unit][2 * tile + 1][2 * half];
    a[2] = piece[chunk][unit][2 * tile][2 * half + 1];
    a[3] = piece[chunk][unit][2 * tile + 1][2 * half + 1];
  }
};
template <class S>
using ClusterUpWeights = ClusterWeights<S::up.units, S::up.chunks, 2 * S::kMatrices>;
template <class S>
using ClusterDownWeights = ClusterWeights<S::down.units, S::down.chunks, 4>;

/// Where a batch's rows lie, at a lane's piece of the batch's first chunk.
template <int kUnits, int kRows>
struct ClusterRows {
  const u16* row[kUnits][kRows];
  bool exists[kUnits];
  int k;  // of the piece
};

/// Unit `unit` of the slice: its hidden value that is in the operand's first row group, counted within the
/// slice; the second group's is two further.
INGOT_DEVICE int cluster_up_row(const ClusterPosition& p, int unit) {
  return unit / 2 * cluster_chunk + p.row / 2 * 8 + unit % 2 * 4 + p.row % 2;
}
template <class S>
INGOT_DEVICE int cluster_up_unit(const ClusterPosition& p, int batch, int i) {
  return p.warp + S::kWarps * (batch / S::up.rounds * S::up.units + i);
}
template <class S>
INGOT_DEVICE int cluster_down_unit(const ClusterPosition& p, int batch, int i) {
  return p.warp + S::kWarps * (batch / S::down.rounds * S::down.units + i);
}

template <class S>
INGOT_DEVICE ClusterRows<S::up.units, 2 * S::kMatrices> cluster_up_rows_of(const ClusterArgs& args,
                                                                           const ClusterPosition& p,
                                                                           int batch) {
  ClusterRows<S::up.units, 2 * S::kMatrices> rows;
  rows.k = batch % S::up.rounds * S::up.chunks * cluster_chunk + p.quarter * 8;
#pragma unroll
  for (int i = 0; i < S::up.units; ++i) {
    const int unit = cluster_up_unit<S>(p, batch, i);
    const int hidden = p.rank * S::shared.up_biases + cluster_up_row(p, unit);
    rows.exists[i] = S::kWhole_up || (unit < S::kUp_units && hidden < S::kHidden);
    rows.row[i][0] = static_cast<const u16*>(args.up) + i64(hidden) * args.up_stride + rows.k;
    rows.row[i][1] = rows.row[i][0] + 2 * args.up_stride;
    if constexpr (S::kGated) {
      rows.row[i][2] = static_cast<const u16*>(args.gate) + i64(hidden) * args.gate_stride + rows.k;
      rows.row[i][3] = rows.row[i][2] + 2 * args.gate_stride;
    }
  }
  return rows;
}
/// Four neighbouring columns for a lane: two rows of each of the unit's two tiles of 16.
template <class S>
INGOT_DEVICE ClusterRows<S::down.units, 4> cluster_down_rows_of(const ClusterArgs& args,
                                                                const ClusterPosition& p, int batch) {
  ClusterRows<S::down.units, 4> rows;
  rows.k =
      p.rank * S::shared.up_biases + batch % S::down.rounds * S::down.chunks * cluster_chunk + p.quarter * 8;
#pragma unroll
  for (int i = 0; i < S::down.units; ++i) {
    const int column = cluster_down_unit<S>(p, batch, i) * cluster_down_columns + p.row * 4;
    rows.exists[i] = S::kWhole_down || column < S::kDim;
#pragma unroll
    for (int r = 0; r < 4; ++r)
      rows.row[i][r] = static_cast<const u16*>(args.down) + i64(column + r) * args.down_stride + rows.k;
  }
  return rows;
}
/// kWhole: every chunk is within K, kK elements.
template <bool kWhole, int kK, class Weights, class Rows>
INGOT_DEVICE void cluster_load_chunk(Weights& w, const Rows& rows, int chunk) {
#pragma unroll
  for (int i = 0; i < Weights::units; ++i) {
    const bool exists = rows.exists[i] && (kWhole || rows.k + chunk * cluster_chunk < kK);
#pragma unroll
    for (int r = 0; r < Weights::rows; ++r)
      load_streamed(w.piece[chunk][i][r], rows.row[i][r] + chunk * cluster_chunk, exists);
  }
}
template <class S>
INGOT_DEVICE void cluster_load_up(ClusterUpWeights<S>& w, const ClusterArgs& args, const ClusterPosition& p) {
  const auto rows = cluster_up_rows_of<S>(args, p, 0);
#pragma unroll
  for (int chunk = 0; chunk < S::up.chunks; ++chunk)
    cluster_load_chunk<S::kWhole_dim, S::kDim>(w, rows, chunk);
}
template <class S>
INGOT_DEVICE void cluster_load_down(ClusterDownWeights<S>& w, const ClusterArgs& args,
                                    const ClusterPosition& p) {
  const auto rows = cluster_down_rows_of<S>(args, p, 0);
#pragma unroll
  for (int chunk = 0; chunk < S::down.chunks; ++chunk)
    cluster_load_chunk<S::kWhole_hidden, S::kHidden>(w, rows, chunk);
}

/// The cluster's tokens on their way to shared memory, zeros where x ends. Through registers: a wait for
/// asynchronous copies is no barrier to the compiler, which then moves loads of weights behind it.
template <class S>
struct ClusterTokens {
  static constexpr int kPieces = S::up.rounds * S::up.chunks * 4,
                       kItems = S::kTokens * kPieces;  // of 16 bytes
  static constexpr int kCount = (kItems + S::kThreads - 1) / S::kThreads;
  u32 piece[kCount][4];

  INGOT_DEVICE void load(const ClusterArgs& args, const ClusterPosition& p) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = p.thread + i * S::kThreads, token = item / kPieces, k = (item - token * kPieces) * 8;
      const bool exists = item < kItems && p.first_token + token < args.tokens && k < S::kDim;
      load_streamed(piece[i], static_cast<const u16*>(args.x) + (p.first_token + token) * args.x_stride + k,
                    exists);
    }
  }
  INGOT_DEVICE void store(const ClusterPosition& p) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = p.thread + i * S::kThreads, token = item / kPieces, at = item - token * kPieces;
      if (item < kItems) store_shared(p.shared + S::shared.x + token * S::shared.x_pitch + at * 16, piece[i]);
    }
  }
};

/// A warp: a unit's sums of 16 hidden values and eight tokens (two of each in a lane, and of the gate),
/// finished and stored as the second linear's operand.
template <class S>
INGOT_DEVICE void cluster_finish_hidden(const float (&sums)[S::kMatrices][S::kUp_chains][4],
                                        const ClusterPosition& p, int unit, int group) {
  using Element = typename S::Element;
  float linear[S::kMatrices][4];  // two tokens of a hidden value, two of the other
#pragma unroll
  for (int m = 0; m < S::kMatrices; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      linear[m][i] = sums[m][0][i];
#pragma unroll
      for (int chain = 1; chain < S::kUp_chains; ++chain) linear[m][i] += sums[m][chain][i];
    }
    if constexpr (S::kUp_bias) {
      const u32 bias = p.shared + S::shared.bias + 4 * (m * S::shared.up_biases + cluster_up_row(p, unit));
      const float first = load_shared(bias), second = load_shared(bias + 8);
      linear[m][0] += first;
      linear[m][1] += first;
      linear[m][2] += second;
      linear[m][3] += second;
    }
    if constexpr (S::kRounds) device::round_all<Element>(linear[m]);
  }
  device::Outputs<4, S::kGated> values;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values.up[i] = linear[0][i];
    if constexpr (S::kGated) values.gate[i] = linear[1][i];
  }
  // The steps between the linears ask neither for a place nor for arguments.
  S::Epilogue::apply(EpilogueArgs{}, device::Place{}, values);
  const u32 to =
      p.shared + S::shared.hidden + ((unit / 2 * S::kGroups + group) * 32 + p.lane) * 16 + unit % 2 * 8;
  store_shared(to, transpose_matrix(Element::pair_bits(values.up[0], values.up[1])),
               transpose_matrix(Element::pair_bits(values.up[2], values.up[3])));
}

INGOT_DEVICE void cluster_clear(float& sum) {
  sum = 0.f;
}
/// All sums of an array of arrays.
template <class Part, int kParts>
INGOT_DEVICE void cluster_clear(Part (&parts)[kParts]) {
#pragma unroll
  for (Part& part : parts) cluster_clear(part);
}

/// A warp: its units of the first linear, the first batch of whose weights is in w.
template <class S>
INGOT_DEVICE void cluster_multiply_up(ClusterUpWeights<S>& w, const ClusterArgs& args,
                                      const ClusterPosition& p) {
  float sums[S::up.units][S::kGroups][S::kMatrices][S::kUp_chains][4] = {};
  const u32 x = p.shared + S::shared.x + p.row * S::shared.x_pitch + p.quarter * 16;
#pragma unroll 1
  for (int batch = 0; batch < S::up.batches; ++batch) {
    const int round = batch % S::up.rounds;
    const auto next = cluster_up_rows_of<S>(args, p, batch + 1);
#pragma unroll
    for (int chunk = 0; chunk < S::up.chunks; ++chunk) {
      u32 b[S::kGroups][4];
#pragma unroll
      for (int n = 0; n < S::kGroups; ++n)
        load_shared(x + n * 8 * S::shared.x_pitch + (round * S::up.chunks + chunk) * 64, b[n]);
#pragma unroll
      for (int i = 0; i < S::up.units; ++i) {
#pragma unroll
        for (int m = 0; m < S::kMatrices; ++m) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            u32 a[4];
            w.operand(a, chunk, i, m, half);
#pragma unroll
            for (int n = 0; n < S::kGroups; ++n)
              S::Element::multiply_add(sums[i][n][m][(2 * chunk + half) % S::kUp_chains], a, b[n][2 * half],
                                       b[n][2 * half + 1]);
          }
        }
      }
      if constexpr (S::up.batches > 1) cluster_load_chunk<S::kWhole_dim, S::kDim>(w, next, chunk);
    }
    if (round != S::up.rounds - 1) continue;
#pragma unroll
    for (int i = 0; i < S::up.units; ++i) {
      const int unit = cluster_up_unit<S>(p, batch, i);
      if (!S::kWhole_up && unit >= S::kUp_units) continue;
#pragma unroll
      for (int n = 0; n < S::kGroups; ++n) cluster_finish_hidden<S>(sums[i][n], p, unit, n);
    }
    if constexpr (S::up.batches > 1) cluster_clear(sums);
  }
}

/// A warp: sums of a unit's 32 columns and eight tokens, to the block that owns the columns. A lane holds
/// four neighbouring columns of two tokens.
template <class S>
INGOT_DEVICE void cluster_send(const float (&sums)[2][S::kDown_chains][4], const ClusterPosition& p, int unit,
                               int group) {
  const int owner = unit / S::shared.owned_units, slot = unit - owner * S::shared.owned_units;
  const u32 row = (p.rank * S::shared.owned_units + slot) * S::kTokens + group * 8 + 2 * p.quarter;
  u32 to = p.shared + S::shared.sums + row * (4 * cluster_down_columns) + p.row * 16;
  u32 barrier = p.shared + S::shared.barrier;
  if constexpr (S::kBlocks > 1) {
    to = remote_address(to, owner);
    barrier = remote_address(barrier, owner);
  }
#pragma unroll
  for (int token = 0; token < 2; ++token) {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i] = sums[i / 2][0][i % 2 * 2 + token];
#pragma unroll
      for (int chain = 1; chain < S::kDown_chains; ++chain) v[i] += sums[i / 2][chain][i % 2 * 2 + token];
    }
    if constexpr (S::kBlocks > 1)
      store_remote(to + token * (4 * cluster_down_columns), v[0], v[1], v[2], v[3], barrier);
    else
      store_shared(to + token * (4 * cluster_down_columns), v);
  }
}

/// A warp: its units of the second linear over the block's slice of hidden.
template <class S>
INGOT_DEVICE void cluster_multiply_down(ClusterDownWeights<S>& w, const ClusterArgs& args,
                                        const ClusterPosition& p) {
  float sums[S::down.units][S::kGroups][2][S::kDown_chains][4] = {};
  const u32 hidden = p.shared + S::shared.hidden + p.lane * 16;
#pragma unroll 1
  for (int batch = 0; batch < S::down.batches; ++batch) {
    const int round = batch % S::down.rounds;
    const auto next = cluster_down_rows_of<S>(args, p, batch + 1);
#pragma unroll
    for (int chunk = 0; chunk < S::down.chunks; ++chunk) {
      u32 b[S::kGroups][4];
#pragma unroll
      for (int n = 0; n < S::kGroups; ++n)
        load_shared(hidden + ((round * S::down.chunks + chunk) * S::kGroups + n) * 512, b[n]);
#pragma unroll
      for (int i = 0; i < S::down.units; ++i) {
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            u32 a[4];
            w.operand(a, chunk, i, tile, half);
#pragma unroll
            for (int n = 0; n < S::kGroups; ++n)
              S::Element::multiply_add(sums[i][n][tile][(2 * chunk + half) % S::kDown_chains], a,
                                       b[n][2 * half], b[n][2 * half + 1]);
          }
        }
      }
      if constexpr (S::down.batches > 1) cluster_load_chunk<S::kWhole_hidden, S::kHidden>(w, next, chunk);
    }
    if (round != S::down.rounds - 1) continue;
#pragma unroll
    for (int i = 0; i < S::down.units; ++i) {
      const int unit = cluster_down_unit<S>(p, batch, i);
      if (!S::kWhole_down && unit >= S::kOut_units) continue;
#pragma unroll
      for (int n = 0; n < S::kGroups; ++n) cluster_send<S>(sums[i][n], p, unit, n);
    }
    if constexpr (S::down.batches > 1) cluster_clear(sums);
  }
}

/// All threads: add the blocks' sums of this block's columns in order, and store. An item is two columns of a
/// token.
template <class S>
INGOT_DEVICE void cluster_finish(const ClusterArgs& args, const ClusterPosition& p) {
  constexpr int kPairs = cluster_down_columns / 2, kSource_bytes = S::shared.owned_units * S::kTokens * 128;
  constexpr int kItems = S::shared.owned_units * S::kTokens * kPairs;
#pragma unroll 2
  for (int first = 0; first < kItems; first += S::kThreads) {
    const int item = first + p.thread;
    if (item >= kItems) break;
    const int pair = item % kPairs, row = item / kPairs, token = row % S::kTokens, slot = row / S::kTokens;
    const int owned_column = slot * cluster_down_columns + 2 * pair;
    const int column = p.rank * S::shared.owned_units * cluster_down_columns + owned_column;
    const i64 y_row = p.first_token + token;
    if (y_row >= args.tokens || column >= S::kDim) continue;
    float part[S::kBlocks][2];
#pragma unroll
    for (int source = 0; source < S::kBlocks; ++source)
      load_shared(p.shared + S::shared.sums + source * kSource_bytes + item * 8, part[source][0],
                  part[source][1]);
    float sum[2] = {part[0][0], part[0][1]};
#pragma unroll
    for (int source = 1; source < S::kBlocks; ++source) {
      sum[0] += part[source][0];
      sum[1] += part[source][1];
    }
    if constexpr (S::kDown_bias) {
      float bias[2];
      load_shared(p.shared + S::shared.bias + 4 * (S::shared.up_biases * S::kMatrices + owned_column),
                  bias[0], bias[1]);
      sum[0] += bias[0];
      sum[1] += bias[1];
    }
    u16* y = static_cast<u16*>(args.epilogue.y) + y_row * args.epilogue.y_stride + column;
    *reinterpret_cast<u32*>(y) = S::Element::pair_bits(sum[0], sum[1]);
  }
}

/// The kernel. Grid: kBlocks for every kTokens tokens, ranks of a cluster adjacent.
template <class Shape>
struct Cluster {
  using Args = ClusterArgs;
  static constexpr int threads = Shape::kThreads, blocks_per_sm = 1;

  static INGOT_DEVICE void run(const ClusterArgs& args) {
    using S = Shape;
    const ClusterPosition p = cluster_position<S>(device::shared_memory());
    const u32 bias = p.shared + S::shared.bias;
    ClusterBiases<S, S::shared.up_biases> up_bias, gate_bias;
    ClusterBiases<S, S::shared.owned_units * cluster_down_columns> down_bias;
    if constexpr (S::kUp_bias) up_bias.load(args.epilogue.up_bias, p, S::kHidden);
    if constexpr (S::kUp_bias && S::kGated) gate_bias.load(args.epilogue.gate_bias, p, S::kHidden);
    if constexpr (S::kDown_bias) down_bias.load(args.epilogue.down_bias, p, S::kDim);
    ClusterUpWeights<S> up;
    ClusterDownWeights<S> down;
    cluster_load_up<S>(up, args, p);
    if constexpr (S::kBlocks > 1) {
      if (p.warp == 0) cluster_init_barrier<S>(p);
      __syncwarp();
      cluster_arrive_relaxed();
    }
    cluster_load_down<S>(down, args, p);
    device::wait_for_previous_kernel();
    ClusterTokens<S> x;
    x.load(args, p);
    device::let_next_kernel_start();
    // Every block of the cluster has its barrier ready. Asked here, because the compiler moves no load across
    // it.
    if constexpr (S::kBlocks > 1) cluster_wait();
    if constexpr (S::kUp_bias) up_bias.store(bias, p);
    if constexpr (S::kUp_bias && S::kGated) gate_bias.store(bias + 4 * S::shared.up_biases, p);
    if constexpr (S::kDown_bias) down_bias.store(bias + 4 * S::shared.up_biases * S::kMatrices, p);
    x.store(p);
    __syncthreads();

    cluster_multiply_up<S>(up, args, p);
    __syncthreads();
    cluster_multiply_down<S>(down, args, p);
    if constexpr (S::kBlocks > 1)
      barrier_wait(p.shared + S::shared.barrier, 0);
    else
      __syncthreads();
    cluster_finish<S>(args, p);
  }
};

}  // namespace sm90
}  // namespace ingot
