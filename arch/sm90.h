// SPDX-License-Identifier: Apache-2.0
//
// Hopper (compute capability 9.0): limits and rates as measured on an H200 (docs/measured-gpu.md), the tiles
// of kernels/sm90 worth trying, which of them are legal for a linear, and what one should take. Plain data
// and pure functions for the planner; the layouts themselves are kernels/sm90/layout.cuh, read by host and
// device.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "arch/integers.h"
#include "kernels/sm90/layout.cuh"

namespace ingot::arch::sm90 {

using ingot::sm90::FewTile;
using ingot::sm90::GemmTile;

// One H200: the model's constants, fitted together to the 211 tiles in docs/measured/two_launch_h200.txt
// (docs/cost-model.md says how well they fit).
inline constexpr int multiprocessors = 132;
inline constexpr int gpc_multiprocessors = 16;  // of a group that shares a way to L2; some have 18
inline constexpr int shared_bytes_per_multiprocessor = 233472;
inline constexpr int shared_bytes_per_block = 1024;      // taken by the system, beside a block's own
inline constexpr double tensor_flops_per_s = 790e12;     // a large product
inline constexpr double memory_bytes_per_s = 4.3e12;     // a copy
inline constexpr double multiply_adds_per_cycle = 2048;  // dense 16-bit, one multiprocessor
inline constexpr double tensor_share = 0.94;      // of that rate, reached by a ring that is never empty
inline constexpr double three_warpgroups = 1.02;  // a third one's ring is shallow beside its tile
// The power limit sets the clock: short work runs at the first, work of several milliseconds at the second,
// and `clock_fall_us` of work is half-way.
inline constexpr double short_clock_ghz = 1.7, long_clock_ghz = 1.35, clock_fall_us = 600;
inline constexpr double fill_bytes_per_ns = 122;      // from L2 to one multiprocessor, multicast or not
inline constexpr double launch_us = 1.1;              // from one kernel of a graph to the next
inline constexpr double gemm_start_us = 1.65;         // from a block's start to its first product
inline constexpr double few_start_us = 1.15;          // the same of the kernel for few tokens
inline constexpr double stream_bytes_per_ns = 3870;   // from memory, beside the multiplication
inline constexpr double ragged = 0.67;                // of a last wave's empty places that cost no time
inline constexpr double plain_unit_cycles = 150;      // a warp's unit of 16 x 64 outputs: bias and store
inline constexpr double activated_unit_cycles = 620;  // and an activation
inline constexpr double gated_unit_cycles = 1090;     // and the product
inline constexpr double offload_unit_cycles = 470;    // by the three epilogue warps, together
inline constexpr double offload_gated_unit_cycles = 1500;
inline constexpr double offload_us = 0.15;                // what they leave of a tile's finish to the others
inline constexpr double split_us = 2.9;                   // the two cluster barriers around an exchange
inline constexpr double split_bytes_per_cycle = 15;       // of f32 sums to the cluster's other blocks
inline constexpr double few_split_bytes_per_cycle = 4.7;  // the same of the kernel for few tokens
inline constexpr double few_finish_us = 0.007;            // a token of a tile, for each block of 64 features
inline constexpr double few_k_warpgroup_us = 0.23;        // sums of two warpgroups through shared memory

/// A Hopper card beside the H200.
struct Card {
  int multiprocessors = sm90::multiprocessors;
  double speed = 1;   ///< clocks, over the H200's
  double memory = 1;  ///< bandwidth, over the H200's
  double launch_us = sm90::launch_us;
};

/// Clusters of a size that a card holds at once, in proportion to those counted on an H200 (sizes 1, 2, 4
/// and 8).
constexpr int resident_clusters(int blocks, int card_multiprocessors = multiprocessors) {
  constexpr int counted[] = {132, 66, 42, 30, 23, 20, 16, 15};
  if (blocks < 1 || blocks > 8) return 0;
  const int here = counted[blocks - 1] * card_multiprocessors / multiprocessors;
  return here < 1 ? 1 : here;
}

/// What of a linear decides a tile.
struct LinearShape {
  std::int64_t out = 0, in = 0;  // of one matrix where gated
  bool gated = false;            // one pass over two matrices
  bool bias = false;
  bool activated = false;  // followed by an activation (and a product)
  bool rounds = false;     // numerics `match`: the linear's result is rounded to 16 bits
  bool short_tanh = true;  // bf16: the activation is a few instructions; f16 takes the C library's
};

constexpr int out_columns(const GemmTile& t, bool gated) {
  return gated ? t.cols / 2 : t.cols;
}
constexpr int out_rows(const FewTile& t, bool gated) {
  return gated ? rows(t) / 2 : rows(t);
}

/// Why the kernel cannot be made of this tile for this linear; empty when it can.
constexpr std::string_view reject(const GemmTile& t, const LinearShape& l) {
  const int out = out_columns(t, l.gated), group = l.gated ? 16 : 8;
  if (l.out % 8 != 0 || l.in % 8 != 0) return "widths are multiples of 8";
  if (t.cols % 8 != 0 || t.cols > 256 || out % 16 != 0)
    return "output columns are multiples of 16, at most 256 sums";
  if (rows(t) / t.cluster_cols % 8 != 0 || t.cols % t.cluster_rows != 0 ||
      t.cols / t.cluster_rows % group != 0) {
    return "the cluster's blocks share whole groups of eight rows";
  }
  if (blocks_in_cluster(t) > 8) return "a cluster has at most 8 blocks";
  if (ceil_div(l.in, ingot::sm90::block_k) / t.splits <= t.lag)
    return "every split has more blocks of K than the lag";
  if (t.epilogue_warps) {
    if (t.consumers != 2 || t.subtiles != 1 || t.splits != 1 || out % 64 != 0) {
      return "epilogue warps take 128 rows and whole units of 64 columns";
    }
    if (!l.rounds) return "epilogue warps take the linear's result in 16 bits, numerics match";
  }
  if (t.splits > 1 && t.consumers * t.subtiles * ((out + 63) / 64) % t.splits != 0) {
    return "every split finishes as many pieces";
  }
  const auto layout = ingot::sm90::layout(t, l.gated);
  if (layout.total > ingot::sm90::shared_limit ||
      (!t.epilogue_warps && t.splits == 1 && layout.buffers < 1)) {
    return "shared memory";
  }
  // Beside accumulators this wide the epilogue's own values go to local memory.
  if (t.subtiles * t.cols > 384 || t.consumers * t.subtiles > 4) return "registers";
  if (t.consumers > 2 && t.cols > 240 && (l.activated || (t.cluster_rows == 1 && t.cluster_cols == 1)))
    return "registers";
  if (l.gated && ((t.subtiles == 2 && t.cols > 160) || (t.consumers > 2 && t.cols > 208))) return "registers";
  if (l.activated && !l.short_tanh && !t.epilogue_warps && t.subtiles * t.cols > 192) return "registers";
  return {};
}
constexpr std::string_view reject(const FewTile& t, const LinearShape& l) {
  if (l.out % 8 != 0 || l.in % 8 != 0) return "widths are multiples of 8";
  if (t.share != 1 && t.splits != 1) return "a cluster shares x or splits K";
  if (blocks_in_cluster(t) > 8) return "a cluster has at most 8 blocks";
  if (t.tokens % 8 != 0 || t.tokens > 256 || t.tokens % t.share != 0 || t.tokens / t.share % 8 != 0) {
    return "tokens of a tile are multiples of 8, shared by whole groups of eight";
  }
  if (ceil_div(l.in, ingot::sm90::block_k) < t.splits * t.k_warpgroups || t.stages < t.k_warpgroups) {
    return "every warpgroup has a block of K";
  }
  if (rows(t) / t.splits % (l.gated ? 16 : 8) != 0) return "every split finishes whole groups of features";
  if (ingot::sm90::layout(t, l.gated).total > ingot::sm90::shared_limit) return "shared memory";
  return {};
}

/// Clusters of work.
constexpr std::int64_t work(const GemmTile& t, const LinearShape& l, std::int64_t tokens) {
  return ceil_div(tokens, std::int64_t{rows(t)} * t.cluster_rows) *
         ceil_div(l.out, std::int64_t{out_columns(t, l.gated)} * t.cluster_cols);
}
constexpr std::int64_t work(const FewTile& t, const LinearShape& l, std::int64_t tokens) {
  return ceil_div(ceil_div(l.out, out_rows(t, l.gated)), t.share) * ceil_div(tokens, t.tokens);
}

/// Row tiles of clusters to walk together before the next column of tiles, so that the clusters at work at a
/// time read as few different rows of x and of W as they can: as many of the one as of the other. Measured:
/// with the double, kernels with K from 3072 take 0.3 to 0.6 % longer back to back. Tiles of 64 rows wait for
/// their loads, and what blocks of one GPC ask for at a time is fetched once: without clusters, neighbours in
/// the grid lie in one, so those share as much as they can, in groups of one size (1024 tokens, K 4608: 18.4
/// us with groups of 8, 19.6 with all 16 row tiles, 19.8 with groups of 5).
inline int group_rows(const GemmTile& t, int clusters, std::int64_t tokens) {
  const double x_rows = rows(t) * t.cluster_rows, w_rows = t.cols * t.cluster_cols;
  const bool by_gpc = rows(t) == 64 && blocks_in_cluster(t) == 1;
  const double together = by_gpc ? gpc_multiprocessors : clusters;
  const int side = std::max(1, static_cast<int>(std::lround(std::sqrt(together * w_rows / x_rows))));
  const std::int64_t row_tiles = ceil_div(tokens, std::int64_t{rows(t)} * t.cluster_rows);
  if (!by_gpc || row_tiles <= side) return side;
  return static_cast<int>(ceil_div(row_tiles, row_tiles / side));
}

/// Bytes that must pass the memory: x and y once, the weights once.
constexpr double bytes(const LinearShape& l, std::int64_t tokens) {
  const double matrices = l.gated ? 2 : 1, t = static_cast<double>(tokens);
  const double in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  return 2 * (t * in + matrices * in * out + t * out);
}

/// Waves of a launch; the last one's empty places save some time, since the others share the power and L2.
inline double waves(std::int64_t pieces, int places) {
  const double whole = static_cast<double>(ceil_div(pieces, places));
  const double filled = static_cast<double>(pieces) / places;
  return whole - ragged * (whole - (filled > 1 ? filled : 1));
}

/// Microseconds in which the multiprocessors multiply and finish, at a clock.
inline double busy_us(const GemmTile& t, const LinearShape& l, std::int64_t tokens, const Card& card,
                      double ghz) {
  const double cycle_us = 1e-3 / ghz;
  const double k_blocks = static_cast<double>(ceil_div(ceil_div(l.in, ingot::sm90::block_k), t.splits));
  const double multiply =
      rows(t) * t.cols * ingot::sm90::block_k / multiply_adds_per_cycle / tensor_share * cycle_us;
  const double fill = 2e-3 * ingot::sm90::block_k * (rows(t) + t.cols) / (fill_bytes_per_ns * card.speed);
  // Where both take as long, neither hides the other: the norm of fourth powers.
  const double squares = multiply * multiply * multiply * multiply + fill * fill * fill * fill;
  double tile_us = k_blocks * std::sqrt(std::sqrt(squares)) * (t.consumers > 2 ? three_warpgroups : 1);
  const int units = (out_columns(t, l.gated) + 63) / 64;
  double unit_cycles = l.activated ? activated_unit_cycles : plain_unit_cycles;
  if (l.gated) unit_cycles = gated_unit_cycles;
  double finish_us = t.subtiles * units * unit_cycles * cycle_us;  // of the last tile
  double between_us = finish_us;                                   // of a tile that is not the last
  if (t.epilogue_warps) {
    const double all = rows(t) / 16.0 * units / 3;
    const double offloaded = all * (l.gated ? offload_gated_unit_cycles : offload_unit_cycles) * cycle_us;
    if (offloaded > tile_us) tile_us = offloaded;
    between_us = offload_us;
  }
  double exchange_us = 0;
  if (t.splits > 1) {
    const double sums = 4.0 * rows(t) * t.cols * (t.splits - 1) / t.splits;
    exchange_us = split_us + sums / split_bytes_per_cycle * cycle_us;
    finish_us /= t.splits;
  }
  const double all = waves(work(t, l, tokens), resident_clusters(blocks_in_cluster(t), card.multiprocessors));
  return all * tile_us + (all - 1) * between_us + finish_us + exchange_us;
}
inline double busy_us(const FewTile& t, const LinearShape& l, std::int64_t tokens, const Card& card,
                      double ghz) {
  const double cycle_us = 1e-3 / ghz;
  const double k_blocks = static_cast<double>(ceil_div(ceil_div(l.in, ingot::sm90::block_k), t.splits));
  const double columns = static_cast<double>(tokens < t.tokens ? tokens : t.tokens);
  // A narrow instruction waits for its 64 rows of weights to leave shared memory.
  const double instruction = t.tokens / 2.0 > 20 + t.tokens / 4.0 ? t.tokens / 2.0 : 20 + t.tokens / 4.0;
  const double multiply = 4 * instruction * t.feature_warpgroups * cycle_us;
  const double fill = 2e-3 * ingot::sm90::block_k * (rows(t) + columns) / (fill_bytes_per_ns * card.speed);
  const double tile_us = k_blocks * (multiply > fill ? multiply : fill);
  const double finish_us = few_finish_us * t.tokens * t.feature_warpgroups / card.speed;
  double exchange_us = 0;
  if (t.splits > 1) {
    const double sums = 4.0 * rows(t) * t.tokens * (t.splits - 1) / t.splits;
    exchange_us = sums / few_split_bytes_per_cycle * cycle_us;
  }
  if (t.k_warpgroups > 1) exchange_us += few_k_warpgroup_us;
  const auto all = static_cast<double>(
      ceil_div(work(t, l, tokens), resident_clusters(blocks_in_cluster(t), card.multiprocessors)));
  return all * (tile_us + finish_us) + exchange_us;
}

/// A model, to rank tiles and to forecast: waves of clusters times the blocks of K, each at the slower of the
/// tensor cores and the way from L2; what no multiplication hides; beside it the bytes from memory; before
/// it the launch. Never less for more tokens.
template <class Tile>
double forecast_us(const Tile& t, const LinearShape& l, std::int64_t tokens, const Card& card = {}) {
  const double at_once = busy_us(t, l, tokens, card, short_clock_ghz * card.speed);
  const double fallen = at_once * card.speed / (at_once * card.speed + clock_fall_us);
  const double ghz = short_clock_ghz + (long_clock_ghz - short_clock_ghz) * fallen;
  const double busy = busy_us(t, l, tokens, card, ghz * card.speed);
  const double memory = bytes(l, tokens) / (stream_bytes_per_ns * card.memory) * 1e-3;
  constexpr bool few = std::is_same_v<Tile, FewTile>;
  const double start_us = card.launch_us + (few ? few_start_us : gemm_start_us) / card.speed;
  return start_us + std::sqrt(busy * busy + memory * memory);
}

/// A tile without its stages: as many as fit. Where it won on the H200 among those measured.
struct GemmFrame {
  int consumers, subtiles, cols, cluster_rows, cluster_cols, splits;
  bool epilogue_warps;
  std::string_view wins;
};
inline constexpr std::array gemm_frames{
    GemmFrame{2, 1, 256, 2, 1, 1, true, "activated or gated, K 640 to 5120, many tokens; long K alike"},
    GemmFrame{2, 1, 256, 1, 1, 1, true, "the same where waves fit better; K 13824"},
    GemmFrame{2, 1, 256, 1, 2, 1, true, "the same"},
    GemmFrame{2, 1, 192, 1, 1, 1, true, "widths that 192 fits better than 256"},
    GemmFrame{2, 1, 256, 1, 1, 1, false, "K up to 320, where three epilogue warps cannot keep up"},
    GemmFrame{2, 1, 256, 2, 1, 1, false, "the same"},
    GemmFrame{2, 1, 128, 1, 1, 1, false, "some hundred tokens, plain; K 256"},
    GemmFrame{2, 1, 128, 2, 1, 1, false, "some hundred tokens, K from 4096"},
    GemmFrame{2, 1, 144, 2, 1, 1, false, "widths of 144 n: 1152, 4608"},
    GemmFrame{2, 1, 144, 1, 1, 1, false, "the same: 8960"},
    GemmFrame{2, 1, 160, 1, 2, 1, false, "widths of 160 n, many tokens"},
    GemmFrame{2, 1, 192, 2, 1, 1, false, "width 768"},
    GemmFrame{2, 2, 160, 1, 2, 1, false, "widths of 160 n: 640, 1280, plain"},
    GemmFrame{2, 2, 160, 1, 1, 1, false, "gated, some hundred tokens, K 4096"},
    GemmFrame{2, 2, 192, 1, 2, 1, false, "width 768 and long K, plain"},
    GemmFrame{2, 2, 128, 1, 1, 1, false, "width 256, many tokens"},
    GemmFrame{2, 2, 144, 1, 1, 1, false, "one wave of 256 x 144"},
    GemmFrame{3, 1, 208, 1, 1, 1, false, "K 8192, 5000 tokens: waves of 192 x 208"},
    GemmFrame{3, 1, 208, 1, 2, 1, false, "the same"},
    GemmFrame{3, 1, 256, 1, 2, 1, false, "plain, K from 5120, where waves fit"},
    GemmFrame{3, 1, 128, 1, 1, 1, false, "between the others"},
    GemmFrame{1, 1, 144, 1, 1, 1, false, "width 1152, a thousand tokens"},
    GemmFrame{1, 1, 96, 1, 1, 1, false, "gated, a hundred tokens"},
    GemmFrame{2, 1, 112, 2, 1, 4, false, "few tokens, K 8960"},
    GemmFrame{2, 1, 112, 1, 1, 4, false, "the same"},
    GemmFrame{2, 1, 128, 1, 1, 4, false, "the same"},
    GemmFrame{2, 1, 144, 1, 1, 2, false, "long K, a thousand tokens"},
};

struct FewFrame {
  int feature_warpgroups, k_warpgroups, tokens, share, splits;
  std::string_view wins;
};
inline constexpr std::array few_frames{
    FewFrame{1, 1, 16, 1, 1, "up to a hundred tokens, K 256"},
    FewFrame{1, 1, 32, 1, 1, "the same; a thousand tokens, width 256"},
    FewFrame{1, 1, 40, 1, 1, "fc1 of up to 80 tokens, K 768"},
    FewFrame{1, 1, 64, 1, 1, "between the others"},
    FewFrame{1, 1, 80, 1, 1, "fc1 of up to 80 tokens"},
    FewFrame{1, 1, 128, 1, 1, "gated fc1 of up to 128 tokens; a thousand tokens, K 256"},
    FewFrame{2, 1, 64, 1, 1, "a thousand tokens, K 256"},
    FewFrame{1, 2, 32, 1, 1, "a thousand tokens, K 1024, width 256"},
    FewFrame{1, 1, 16, 1, 4, "fc2 of up to 64 tokens, K 1024"},
    FewFrame{1, 1, 40, 1, 4, "fc2 of up to 80 tokens, K 3072"},
    FewFrame{1, 1, 64, 1, 4, "fc2 of up to 128 tokens, K 3072"},
    FewFrame{1, 1, 128, 1, 8, "the same"},
};

/// The frame with as many stages as shared memory holds (no more than K has blocks); no stages: it does not
/// fit.
constexpr GemmTile with_stages(const GemmFrame& f, const LinearShape& l) {
  const std::int64_t k_blocks = ceil_div(ceil_div(l.in, ingot::sm90::block_k), f.splits);
  GemmTile t{f.consumers,    f.subtiles, f.cols,           8, f.cluster_rows,
             f.cluster_cols, f.splits,   f.epilogue_warps, 0};
  if (k_blocks < t.stages) t.stages = k_blocks < 3 ? 3 : static_cast<int>(k_blocks);
  while (t.stages > 2 && !reject(t, l).empty()) --t.stages;
  if (t.stages < 3) t.stages = 0;
  return t;
}
constexpr FewTile with_stages(const FewFrame& f, const LinearShape& l) {
  const std::int64_t k_blocks = ceil_div(ceil_div(l.in, ingot::sm90::block_k), f.splits);
  FewTile t{f.feature_warpgroups, f.k_warpgroups, f.tokens, 12, f.share, f.splits};
  if (k_blocks < t.stages) t.stages = static_cast<int>(k_blocks);
  while (t.stages > 0 && !reject(t, l).empty()) --t.stages;
  return t;
}

/// The second of two linears for few tokens, with so many stages that its blocks fit a multiprocessor beside
/// the first's and can start while those still run; as it is where that would take more than a quarter of its
/// stages, which weights from memory need more (1024 tokens, 256 -> 1024 -> 256: 5.9 us with 10 stages, 6.8
/// with 12; 77 tokens, 768 -> 3072 -> 768: 8.0 with 12, 9.1 with the 8 that fit).
constexpr FewTile beside(const FewTile& first, bool first_gated, const FewTile& second) {
  const int room = shared_bytes_per_multiprocessor - 2 * shared_bytes_per_block -
                   ingot::sm90::layout(first, first_gated).total;
  FewTile fitting = second;
  const int step = second.stages % 2 == 0 ? 2 : 1;  // pairs stay pairs
  while (fitting.stages > step && ingot::sm90::layout(fitting, false).total > room) fitting.stages -= step;
  const bool fits = ingot::sm90::layout(fitting, false).total <= room;
  return fits && 4 * fitting.stages >= 3 * second.stages ? fitting : second;
}

}  // namespace ingot::arch::sm90
