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

using ingot::sm90::ClusterLayout;
using ingot::sm90::ClusterTile;
using ingot::sm90::ClusterWalk;

// Of the model below, fitted to the cluster kernel's times in docs/measured-gpu.md.
inline constexpr double cluster_start_us = 0.57;  // to the first weights, and from the last sums to the end
inline constexpr double cluster_fill_bytes_per_ns =
    80;  // weights on their way to one multiprocessor's registers
inline constexpr double cluster_multiply_adds = 900;  // a cycle and multiprocessor, beside those loads
inline constexpr double cluster_exchange_bytes_per_cycle = 14;  // of sums between blocks

/// Registers a thread has for weights, sums and tokens, of those that so many threads leave it.
constexpr int cluster_registers(const ClusterTile& t) {
  const int all = 65536 / threads(t);
  return (all < 255 ? all : 255) - 55;
}
/// What it holds at most: both linears' weights and the first one's sums or the tokens, or the second one's
/// sums.
constexpr int cluster_held(const ClusterTile& t, const ClusterLayout& l, bool gated) {
  const int groups = t.tokens / 8, matrices = gated ? 2 : 1;
  const auto sums = [&](const ClusterWalk& w, int each, int wanted) {
    const int own = w.units * groups * each;
    return 4 * (own > wanted ? own : wanted);
  };
  const int up = l.up.units * l.up.chunks * matrices * 8, down = l.down.units * l.down.chunks * 16;
  const int tokens = 4 * static_cast<int>(ceil_div(l.up.rounds * l.up.chunks * 4 * t.tokens, threads(t)));
  const int first = sums(l.up, matrices, 4), second = sums(l.down, 2, 4);
  const int loading = up + down + tokens, multiplying = up + down + first, last = down + second;
  const int most = loading > multiplying ? loading : multiplying;
  return most > last ? most : last;
}

/// Why the kernel cannot be made of this tile for this MLP; empty when it can.
constexpr std::string_view reject(const ClusterTile& t, const MlpShape& m) {
  if (m.dim % 8 != 0 || m.hidden % 8 != 0) return "widths are multiples of 8";
  if (t.blocks < 1 || t.blocks > 8) return "a cluster has at most 8 blocks";
  if (t.tokens < 8 || t.tokens > 72 || t.tokens % 8 != 0)
    return "tokens of a tile are multiples of 8, at most 72";
  if (t.warps < 1 || t.warps > 16) return "a block has at most 16 warps";
  if (t.depth < 4 || t.depth > 32) return "4 to 32 pieces of weights are in flight";
  if (m.hidden < std::int64_t{32} * t.blocks) return "every block has 32 hidden values";
  if (m.dim > 4096 || m.hidden > 32768) return "weights that take longer to read than a second launch";
  const ClusterLayout l = layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated);
  // Beside two groups of tokens the walk over batches of gate and up spills.
  if (cluster_held(t, l, m.gated) > cluster_registers(t) || (m.gated && t.tokens > 8 && l.up.batches > 1))
    return "registers";
  if (l.total > ingot::sm90::shared_limit) return "shared memory";
  return {};
}

/// Dynamic shared memory of a block. The tile is legal.
constexpr int shared_bytes(const ClusterTile& t, const MlpShape& m) {
  return layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated).total;
}

/// Of the caller's workspace for one launch; contents undefined before and after. Never less for more tokens.
constexpr std::int64_t scratch_bytes(const ClusterTile&, const MlpShape&, std::int64_t, int) {
  return 0;
}

/// A launch in microseconds. The tile is legal, tokens >= 1. Loads, products and the exchange hide little of
/// each other. Waves: more clusters than the card holds.
inline double forecast_us(const ClusterTile& t, const MlpShape& m, std::int64_t tokens, const Card& card) {
  const double matrices = m.gated ? 3 : 2, dim = static_cast<double>(m.dim),
               hidden = static_cast<double>(m.hidden);
  const double weights = matrices * dim * hidden / t.blocks;
  const double cycle_us = 1e-3 / (short_clock_ghz * card.speed);
  const double fill = 2e-3 * weights / (cluster_fill_bytes_per_ns * card.speed);
  const double multiply = weights * t.tokens / cluster_multiply_adds * cycle_us;
  const double sums = 4.0 * t.tokens * dim * (t.blocks - 1) / t.blocks;
  const double wave = fill + multiply + sums / cluster_exchange_bytes_per_cycle * cycle_us;
  const std::int64_t clusters = ceil_div(tokens, t.tokens);
  const auto waves =
      static_cast<double>(ceil_div(clusters, resident_clusters(t.blocks, card.multiprocessors)));
  const double memory = bytes(m, tokens) / (stream_bytes_per_ns * card.memory) * 1e-3;
  return card.launch_us + cluster_start_us / card.speed + (waves * wave > memory ? waves * wave : memory);
}

/// Tiles worth trying, and where they win.
inline constexpr std::array cluster_frames{
    ClusterTile{8, 8, 8, 16},   // up to 120 tokens
    ClusterTile{8, 16, 8, 16},  // up to 240
};

}  // namespace ingot::arch::sm90
