// SPDX-License-Identifier: Apache-2.0
//
// Shapes and shared-memory layouts of the sm_90a kernels as plain constants: the kernels use them, and the
// host's planner includes this file to size a launch. No device code.
#pragma once

namespace ingot {
namespace sm90 {

constexpr int block_k = 64;           // elements of K in a stage: 128 bytes, one row of the 128-byte swizzle
constexpr int shared_limit = 232448;  // bytes a block may use (227 KB)
constexpr int unit_bytes = 2048;      // a unit of output: 16 rows x 64 columns x 2 bytes

/// One tile of the persistent kernel (gemm.cuh): tokens are rows.
struct GemmTile {
  int consumers;        // warpgroups that multiply
  int subtiles;         // blocks of 64 rows each of them holds
  int cols;             // accumulator columns; a gated tile holds gate and up, so half as many output columns
  int stages;           // of the ring of x and weight blocks
  int cluster_rows;     // blocks of a cluster along tokens: they share the weights' loads
  int cluster_cols;     // blocks of a cluster along outputs: they share the loads of x
  int splits;           // blocks of a cluster that hold different parts of K; their sums are added in order
  bool epilogue_warps;  // activation and stores on their own warps, under the next tile's multiplication
  int lag;  // K blocks by which each warpgroup trails the one before, so that their epilogues do not coincide
};

constexpr int rows(const GemmTile& t) {
  return 64 * t.subtiles * t.consumers;
}
constexpr int blocks_in_cluster(const GemmTile& t) {
  return t.cluster_rows * t.cluster_cols * t.splits;
}
constexpr int threads(const GemmTile& t) {
  return 128 * (t.consumers + 1);
}

struct GemmLayout {  // byte offsets in dynamic shared memory
  int stage_bytes, x_bytes;
  int output,
      buffers;  // staging: `buffers` units for each multiplying warp; with epilogue warps the tile in 16 bits
  int piece_bytes, sums_bytes;  // split: float32 sums of a piece, and of all that arrive
  int bias, bias_bytes, barriers, total;
};
constexpr GemmLayout layout(const GemmTile& t, bool gated) {
  GemmLayout l{};
  l.x_bytes = rows(t) * block_k * 2;
  l.stage_bytes = l.x_bytes + t.cols * block_k * 2;
  l.output = t.stages * l.stage_bytes;
  // Two buffers of four interleaved vectors of float32, 16 bytes apart in the banks.
  l.bias_bytes = 4 * (t.cols + 16);
  const int barrier_bytes = 8 * (2 * t.stages + 2 * t.consumers + 5);
  const int units =
      (gated ? t.cols / 2 : t.cols) / 64 + ((gated ? t.cols / 2 : t.cols) % 64 != 0);  // of a row
  int output_bytes = rows(t) * t.cols * 2;
  if (t.splits > 1) {
    // Sums from the other splits, and staging, lie over the ring, which is free by then; what is more lies
    // behind it.
    const int owned = t.consumers * t.subtiles * units / t.splits;  // pieces of 64 rows and 64 output columns
    l.piece_bytes = 64 * (gated ? 128 : 64) * 4;
    l.sums_bytes = owned * (t.splits - 1) * l.piece_bytes;
    const int exchange = l.sums_bytes + owned * 4 * unit_bytes;
    output_bytes = exchange > l.output ? exchange - l.output : 0;
  } else if (!t.epilogue_warps) {
    // The last tile of a block, too, stages its output in the ring.
    const int warps = 4 * t.consumers, all = t.subtiles * units;
    const int room = (shared_limit - l.output - 2 * l.bias_bytes - barrier_bytes) / (warps * unit_bytes);
    l.buffers = room < all ? room : all;
    output_bytes = l.buffers * warps * unit_bytes;
  }
  l.bias = l.output + output_bytes;
  l.barriers = l.bias + 2 * l.bias_bytes;
  l.total = l.barriers + barrier_bytes;
  return l;
}

/// One tile of the kernel for few tokens (few.cuh): output features are rows, tokens are columns.
struct FewTile {
  int feature_warpgroups;  // blocks of 64 weight rows (gated: 32 gate and 32 up)
  int k_warpgroups;        // warpgroups that share a block of weight rows, each taking every n-th block of K
  int tokens;              // accumulator columns, a multiple of 8
  int stages;
  int share;   // blocks of a cluster that hold different features and share the loads of x
  int splits;  // blocks of a cluster that hold different parts of K, summed in order; share or splits is 1
};

constexpr int rows(const FewTile& t) {
  return 64 * t.feature_warpgroups;
}
constexpr int blocks_in_cluster(const FewTile& t) {
  return t.share * t.splits;
}
constexpr int multiplying_threads(const FewTile& t) {
  return 128 * t.feature_warpgroups * t.k_warpgroups;
}
constexpr int threads(const FewTile& t) {
  return multiplying_threads(t) + 32;
}
/// Whether a warp holds all of K of its rows: then it finishes them itself.
constexpr bool whole_k(const FewTile& t) {
  return t.splits * t.k_warpgroups == 1;
}

/// Blocks of K that one copy brings: two where the parts of K and the ring divide, since the loading warp
/// takes as long over a small box as over a large one. Then the tensor maps have K / 64 as a dimension of its
/// own, so that K has no remainder.
constexpr int depth(const FewTile& t, long long k) {
  const bool whole = t.share == 1 && t.stages % 2 == 0 && k % (2 * block_k * t.splits) == 0;
  return whole && t.stages / 2 >= t.k_warpgroups && k / (2 * block_k * t.splits) >= t.k_warpgroups ? 2 : 1;
}

struct FewLayout {
  int stage_bytes, weight_bytes;
  int out_pitch;  // whole K: bytes of a token's features in staging
  int sum_rows, sum_slots, sum_pitch, sum_skew,
      sum_slot_floats;  // else: the exchange of float32 sums, see few.cuh
  int output, bias, barriers, total;
};
constexpr FewLayout layout(const FewTile& t, bool gated) {
  FewLayout l{};
  l.weight_bytes = rows(t) * block_k * 2;
  l.stage_bytes = l.weight_bytes + t.tokens * block_k * 2;
  const int ring_bytes = t.stages * l.stage_bytes;
  l.out_pitch = rows(t) * (gated ? 1 : 2) + 16;
  l.sum_rows = rows(t) / t.splits;
  l.sum_slots = t.splits * t.k_warpgroups;
  l.sum_pitch = (t.tokens + 23) / 32 * 32 + 8;  // 8 modulo 32: the fragments' writes meet no bank twice
  const int groups = l.sum_rows / (gated ? 16 : 8);
  l.sum_skew = groups >= 16 ? 2 : 32 / groups;  // floats between groups: nor do the reads
  l.sum_slot_floats = l.sum_rows * l.sum_pitch + groups * l.sum_skew;
  const int output_bytes = whole_k(t) ? t.tokens * l.out_pitch : l.sum_slots * l.sum_slot_floats * 4;
  // A block alone may put its output over the ring, which is read by then; other blocks may send theirs at
  // any time.
  l.output = t.splits > 1 ? ring_bytes : 0;
  l.bias = t.splits > 1 ? ring_bytes + output_bytes : (ring_bytes > output_bytes ? ring_bytes : output_bytes);
  l.barriers = l.bias + rows(t) * 4;
  l.total = l.barriers + 8 * (2 * t.stages + 1);
  return l;
}

}  // namespace sm90
}  // namespace ingot
