// SPDX-License-Identifier: Apache-2.0
//
// kernels/sm90/cluster.cuh, the kernel of a whole MLP for few tokens: its tiles, which of them are legal, and
// what one should take.
#pragma once

#include <array>
#include <string_view>

#include "arch/sm90.h"
#include "arch/sm90_mlp.h"
#include "kernels/sm90/cluster_layout.cuh"

namespace ingot::arch::sm90 {

using ingot::sm90::ClusterTile;

/// Why the kernel cannot be made of this tile for this MLP; empty when it can.
constexpr std::string_view reject(const ClusterTile&, const MlpShape&) {
  return "not written yet";
}

/// Dynamic shared memory of a block. The tile is legal.
constexpr int shared_bytes(const ClusterTile& t, const MlpShape& m) {
  return layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated).total;
}

/// Of the caller's workspace for one launch; contents undefined before and after. Never less for more tokens.
constexpr std::int64_t scratch_bytes(const ClusterTile&, const MlpShape&, std::int64_t, int) {
  return 0;
}

/// A launch in microseconds. The tile is legal, tokens >= 1.
inline double forecast_us(const ClusterTile&, const MlpShape& m, std::int64_t tokens, const Card& card) {
  return card.launch_us + 1e6 * 2 * multiply_adds(m, tokens) / tensor_flops_per_s;
}

/// Tiles worth trying.
inline constexpr std::array cluster_frames{ClusterTile{8, 8}};

}  // namespace ingot::arch::sm90
