// SPDX-License-Identifier: Apache-2.0
//
// Shape and shared-memory layout of the kernel of a whole narrow MLP as plain constants, for kernel and host.
// No device code.
#pragma once

namespace ingot {
namespace sm90 {

/// How narrow.cuh is cut.
struct NarrowTile {
  int chunk;  // hidden columns held at a time
  int lag;    // chunks by which the second warpgroup trails the first

  // In the order in which the kernel's template and a tile's label name them.
  static constexpr int NarrowTile::*fields[] = {&NarrowTile::chunk, &NarrowTile::lag};
  static constexpr char letter = 'n';  // of its label: "n64x1"
};

constexpr int threads(const NarrowTile&) {
  return 256;
}
constexpr int blocks_in_cluster(const NarrowTile&) {
  return 1;
}

struct NarrowLayout {  // byte offsets in dynamic shared memory
  int total;
};
constexpr NarrowLayout layout(const NarrowTile&, int, int, bool) {
  return {};
}

}  // namespace sm90
}  // namespace ingot
