// SPDX-License-Identifier: Apache-2.0
//
// Shape and shared-memory layout of the kernel of a whole narrow MLP (narrow.cuh) as plain constants, for
// kernel and host. No device code.
#pragma once

namespace ingot {
namespace sm90 {

/// How narrow.cuh is cut.
struct NarrowTile {
  int warpgroups;  // of 64 tokens each
  int chunk;       // hidden columns held at a time: 64 or 128
  int slots;       // chunks of weights in shared memory; all of them: they are loaded once
  int lag;         // blocks of dim by which each warpgroup trails the one before, so that one activates while
                   // another multiplies

  // In the order in which the kernel's template and a tile's label name them.
  static constexpr int NarrowTile::*fields[] = {&NarrowTile::warpgroups, &NarrowTile::chunk,
                                                &NarrowTile::slots, &NarrowTile::lag};
  static constexpr char letter = 'n';  // of its label: "n2x64x1x3"
};

constexpr int threads(const NarrowTile& t) {
  return 128 * t.warpgroups;
}
constexpr int blocks_in_cluster(const NarrowTile&) {
  return 1;
}
constexpr int tokens_of_block(const NarrowTile& t) {
  return 64 * t.warpgroups;
}

struct NarrowLayout {  // byte offsets in dynamic shared memory
  int k_blocks;        // of 64 columns of dim, the last one filled up with zeros
  int chunks;          // of hidden, the last one filled up with zeros
  int slots;           // no more than chunks
  int up_parts;        // loads of a chunk of the first linear's weights, each with barriers of its own
  int first_k_blocks;  // of the first of two parts
  int down_parts;      // loads of a chunk of the second linear's weights: 64 hidden columns each
  int x_bytes;         // of a warpgroup's tokens
  int up_block_bytes;  // of a chunk's weights of a block of dim: gate and up behind one another
  int down_part_bytes;
  int up, down;            // weights; x lies at 0
  int up_bias, down_bias;  // float32
  int barriers, total;
};
constexpr NarrowLayout layout(const NarrowTile& t, int dim, int hidden, bool gated, bool up_bias) {
  constexpr int block = 64, row_bytes = 128;  // a row of the 128-byte swizzle, in elements and bytes
  NarrowLayout l{};
  l.k_blocks = (dim + block - 1) / block;
  l.chunks = (hidden + t.chunk - 1) / t.chunk;
  l.slots = t.slots < l.chunks ? t.slots : l.chunks;
  // With one slot its first half is refilled while the second is still read.
  l.up_parts = l.slots == 1 && l.chunks > 1 && l.k_blocks > 1 ? 2 : 1;
  l.first_k_blocks = l.up_parts == 2 ? l.k_blocks / 2 : l.k_blocks;
  l.down_parts = t.chunk / block;
  l.x_bytes = 64 * l.k_blocks * row_bytes;
  l.up_block_bytes = t.chunk * (gated ? 2 : 1) * row_bytes;
  l.down_part_bytes = dim * row_bytes;
  l.up = t.warpgroups * l.x_bytes;
  l.down = l.up + l.slots * l.k_blocks * l.up_block_bytes;
  l.up_bias = l.down + l.slots * l.down_parts * l.down_part_bytes;
  l.down_bias = l.up_bias + (up_bias ? l.chunks * t.chunk * (gated ? 8 : 4) : 0);
  l.barriers = l.down_bias + dim * 4;
  l.total = l.barriers + 8 * (2 * l.slots * (l.up_parts + l.down_parts) + 2 * t.warpgroups);
  return l;
}

}  // namespace sm90
}  // namespace ingot
