// SPDX-License-Identifier: Apache-2.0
//
// Shapes and shared-memory layouts of the sm_90a kernels as plain constants: the kernels use them, and the host's
// planner includes this file to size a launch. No device code.
#pragma once

namespace ingot::sm90 {

constexpr int block_k = 64;            // elements of K in a stage: 128 bytes, one row of the 128-byte swizzle
constexpr int shared_limit = 232448;   // bytes a block may use (227 KB)
constexpr int staging_bytes = 2048;    // 16 rows x 64 columns x 2 bytes, one unit of output

/// Weights of the linear that follows, which idle memory time brings into L2: step by step of K, each block asks for the
/// next `chunk_bytes` of its share. No bytes: nothing.
struct Following {
  const void* weights;
  long long bytes;
  int chunk_bytes;  // multiples of 16
};

/// One tile of the persistent kernel (gemm.cuh): tokens are rows.
struct GemmTile {
  int consumers;        // warpgroups that multiply
  int subtiles;         // blocks of 64 rows each of them holds
  int cols;             // accumulator columns; a gated tile holds gate and up, so half as many output columns
  int stages;           // of the ring of x and weight blocks
  int cluster_rows;     // blocks of a cluster along tokens: they share the weights' loads
  int cluster_cols;     // blocks of a cluster along outputs: they share the loads of x
  int splits;           // parts of K held by different blocks, summed in order through global memory
  bool epilogue_warps;  // bias, activation and stores on their own warps, under the next tile's multiplication
  int lag;              // K blocks by which each warpgroup trails the one before, so that their epilogues do not coincide
};

constexpr int rows(const GemmTile& t) { return 64 * t.subtiles * t.consumers; }
constexpr int blocks_in_cluster(const GemmTile& t) { return t.cluster_rows * t.cluster_cols; }
constexpr int threads(const GemmTile& t) { return 128 * (t.consumers + 1); }

struct GemmLayout {  // byte offsets in dynamic shared memory
  int stage_bytes, x_bytes, output, bias, bias_bytes, barriers, total;
};
constexpr GemmLayout layout(const GemmTile& t) {
  GemmLayout l{};
  l.x_bytes = rows(t) * block_k * 2;
  l.stage_bytes = l.x_bytes + t.cols * block_k * 2;
  l.output = t.stages * l.stage_bytes;
  // With epilogue warps: the tile itself, in 16 bits. Without: two units for each multiplying warp.
  const int output_bytes = t.epilogue_warps ? rows(t) * t.cols * 2 : t.consumers * 4 * 2 * staging_bytes;
  l.bias = l.output + output_bytes;
  // Two buffers of four interleaved vectors of float32, 16 bytes apart in the banks.
  l.bias_bytes = 4 * (t.cols + 16);
  l.barriers = l.bias + 2 * l.bias_bytes;
  l.total = l.barriers + 8 * (2 * t.stages + 2 * t.consumers + 4);
  return l;
}

/// Scratch of a split tile: float32 partial sums of all parts, and one counter for each tile and warp.
constexpr long long partial_bytes(const GemmTile& t, long long tiles) {
  return t.splits > 1 ? tiles * t.splits * rows(t) * t.cols * 4 : 0;
}
constexpr long long counter_count(const GemmTile& t, long long tiles) {
  return t.splits > 1 ? tiles * t.consumers * 4 : 0;
}

/// One tile of the kernel for few tokens (few.cuh): output features are rows, tokens are columns.
struct FewTile {
  int feature_warpgroups;  // blocks of 64 weight rows (gated: 32 gate and 32 up)
  int k_warpgroups;        // warpgroups that share a block of weight rows, each taking every n-th block of K
  int tokens;              // accumulator columns, a multiple of 8
  int stages;
  int share;               // blocks of a cluster that hold different features and share the loads of x
  int splits;              // blocks of a cluster that hold different parts of K, summed in order; share or splits is 1
};

constexpr int rows(const FewTile& t) { return 64 * t.feature_warpgroups; }
constexpr int blocks_in_cluster(const FewTile& t) { return t.share * t.splits; }
constexpr int multiplying_threads(const FewTile& t) { return 128 * t.feature_warpgroups * t.k_warpgroups; }
constexpr int threads(const FewTile& t) { return multiplying_threads(t) + 32; }

struct FewLayout {
  int stage_bytes, weight_bytes;
  int sum_rows, sum_slots, sum_pitch, sum_skew, sum_slot_floats;  // the exchange of float32 sums, see few.cuh
  int sums, bias, barriers, total;
};
constexpr FewLayout layout(const FewTile& t, bool gated) {
  FewLayout l{};
  l.weight_bytes = rows(t) * block_k * 2;
  l.stage_bytes = l.weight_bytes + t.tokens * block_k * 2;
  l.sum_rows = rows(t) / t.splits;
  l.sum_slots = t.splits * t.k_warpgroups;
  l.sum_pitch = (t.tokens + 23) / 32 * 32 + 8;  // 8 modulo 32: the fragments' writes meet no bank twice
  const int groups = l.sum_rows / (gated ? 16 : 8);
  l.sum_skew = groups >= 16 ? 2 : 32 / groups;  // floats between groups: nor do the reads
  l.sum_slot_floats = l.sum_rows * l.sum_pitch + groups * l.sum_skew;
  const int sums_bytes = l.sum_slots * l.sum_slot_floats * 4, ring_bytes = t.stages * l.stage_bytes;
  // Alone, a block may put its sums over the ring, which is read by then; others may send theirs at any time.
  l.sums = t.splits > 1 ? ring_bytes : 0;
  l.bias = (t.splits > 1 ? ring_bytes + sums_bytes : (ring_bytes > sums_bytes ? ring_bytes : sums_bytes));
  l.barriers = l.bias + rows(t) * 4;
  l.total = l.barriers + 8 * (2 * t.stages + 1);
  return l;
}

}  // namespace ingot::sm90
