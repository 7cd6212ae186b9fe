// SPDX-License-Identifier: Apache-2.0
//
// Shape and shared-memory layout of the kernel of a whole MLP for few tokens as plain constants, for kernel
// and host. No device code.
#pragma once

namespace ingot {
namespace sm90 {

/// How cluster.cuh is cut.
struct ClusterTile {
  int tokens;  // of a cluster
  int blocks;  // of a cluster, each with a slice of hidden

  // In the order in which the kernel's template and a tile's label name them.
  static constexpr int ClusterTile::*fields[] = {&ClusterTile::tokens, &ClusterTile::blocks};
  static constexpr char letter = 'c';  // of its label: "c8x4"
};

constexpr int threads(const ClusterTile&) {
  return 256;
}
constexpr int blocks_in_cluster(const ClusterTile& t) {
  return t.blocks;
}

struct ClusterLayout {  // byte offsets in dynamic shared memory
  int total;
};
constexpr ClusterLayout layout(const ClusterTile&, int, int, bool) {
  return {};
}

}  // namespace sm90
}  // namespace ingot
