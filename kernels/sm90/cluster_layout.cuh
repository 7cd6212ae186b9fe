// SPDX-License-Identifier: Apache-2.0
//
// The shape of a tile of cluster.cuh, how its warps walk over the weights, and its shared memory, as plain
// constants: the kernel uses them, and the host's planner includes this file to size a launch. No device
// code.
#pragma once

namespace ingot {
namespace sm90 {

constexpr int cluster_chunk = 32;    // elements of K that the four lanes of a row hold as 16 bytes each
constexpr int cluster_up_rows = 16;  // hidden values of a unit of the first linear: one instruction's rows
constexpr int cluster_down_columns = 32;  // outputs of a unit of the second: two instructions' rows

/// One tile of the kernel for few tokens on small models (cluster.cuh): weights are rows, tokens are columns.
struct ClusterTile {
  int blocks;  // of a cluster, each with a slice of hidden
  int tokens;  // of a cluster, a multiple of 8
  int warps;   // of a block
  int depth;   // pieces of 16 bytes of each linear's weights that a lane has in flight

  // In the order in which the kernel's template and a tile's label name them.
  static constexpr int ClusterTile::*fields[] = {&ClusterTile::blocks, &ClusterTile::tokens,
                                                 &ClusterTile::warps, &ClusterTile::depth};
  static constexpr char letter = 'c';  // of its label: "c8x8x8x16"
};

constexpr int threads(const ClusterTile& t) {
  return 32 * t.warps;
}
constexpr int blocks_in_cluster(const ClusterTile& t) {
  return t.blocks;
}

/// How a warp walks over its units of a linear, in batches of as many weights as it has in flight.
struct ClusterWalk {
  int units;    // of a warp in a batch
  int chunks;   // of K in a batch
  int rounds;   // batches until K is done: more than one only with as few units as may be
  int batches;  // of a warp in all
};

constexpr int ceil_quotient(int a, int b) {
  return (a + b - 1) / b;
}
/// pieces: of a lane for one unit and chunk. Tokens are read from shared memory once for all units of a
/// batch, so many tokens ask for two where there are.
constexpr ClusterWalk cluster_walk(const ClusterTile& t, int pieces, int block_units, int chunks) {
  const int warp_units = ceil_quotient(block_units, t.warps);
  const int in_flight = t.depth > pieces ? t.depth / pieces : 1, most = t.tokens > 8 ? 2 : 4;
  ClusterWalk w{};
  w.units = t.tokens > 16 && pieces == 2 && in_flight > 1 && warp_units > 1 ? 2 : 1;
  w.chunks = in_flight / w.units;
  w.rounds = ceil_quotient(chunks, w.chunks);
  w.chunks = ceil_quotient(chunks, w.rounds);
  if (w.rounds == 1) {
    const int room = in_flight / w.chunks < most ? in_flight / w.chunks : most;
    w.units = room < warp_units ? room : warp_units;
  }
  w.batches = ceil_quotient(warp_units, w.units) * w.rounds;
  return w;
}

struct ClusterLayout {
  int slice_chunks;      // of hidden in a block, in chunks of K of the second linear
  int owned_units;       // of outputs that a block finishes
  ClusterWalk up, down;  // of the first linear and of the second
  int x_pitch;           // bytes of a token's row: 64 modulo 128, so that no two rows' pieces meet in a bank
  int x, hidden, sums, bias;  // byte offsets in dynamic shared memory
  int up_biases, biases;      // floats: of up (as many of the gate follow), in all
  int barrier, total;
};
constexpr ClusterLayout layout(const ClusterTile& t, int dim, int hidden, bool gated) {
  ClusterLayout l{};
  const int out_units = ceil_quotient(dim, cluster_down_columns);
  l.owned_units = ceil_quotient(out_units, t.blocks);
  const int slice = ceil_quotient(ceil_quotient(hidden, cluster_chunk), t.blocks);
  l.down = cluster_walk(t, 4, out_units, slice);
  l.slice_chunks = l.down.rounds * l.down.chunks;
  l.up = cluster_walk(t, gated ? 4 : 2, l.slice_chunks * (cluster_chunk / cluster_up_rows),
                      ceil_quotient(dim, cluster_chunk));
  const int x_chunks = l.up.rounds * l.up.chunks;
  l.x_pitch = 64 * (x_chunks | 1);
  l.hidden = t.tokens * l.x_pitch;
  l.sums = l.hidden + l.slice_chunks * t.tokens * 64;
  l.bias = l.sums + t.blocks * l.owned_units * t.tokens * cluster_down_columns * 4;
  l.up_biases = l.slice_chunks * cluster_chunk;
  l.biases = l.up_biases * (gated ? 2 : 1) + l.owned_units * cluster_down_columns;
  l.barrier = l.bias + 4 * l.biases;
  l.total = l.barrier + 8;
  return l;
}

}  // namespace sm90
}  // namespace ingot
