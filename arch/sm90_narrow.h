// SPDX-License-Identifier: Apache-2.0
//
// kernels/sm90/narrow.cuh, the kernel of a whole narrow MLP: its tiles, which of them are legal, and what one
// should take.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "arch/sm90.h"
#include "arch/sm90_mlp.h"
#include "kernels/sm90/narrow_layout.cuh"

namespace ingot::arch::sm90 {

using ingot::sm90::NarrowTile;

inline constexpr int narrowest_dim = 64, widest_dim = 320;  // y of 64 tokens in a warpgroup's registers

/// Why the kernel cannot be made of this tile for this MLP; empty when it can.
constexpr std::string_view reject(const NarrowTile& t, const MlpShape& m) {
  if (m.dim % 8 != 0 || m.hidden % 8 != 0) return "widths are multiples of 8";
  if (m.dim > widest_dim) return "dim is at most 320";
  if (m.dim < narrowest_dim) return "dim is at least 64";
  if (t.warpgroups < 1 || t.warpgroups > 4 || t.slots < 1) return "1 to 4 warpgroups, a slot or more";
  const int sums = t.chunk * (m.gated ? 2 : 1);
  if ((t.chunk != 64 && t.chunk != 128) || sums > 256) return "at most 256 sums of a chunk of 64 or 128";
  // y and a chunk's sums, in the registers that so many threads leave each.
  if (m.dim / 2 + sums / 2 > (t.warpgroups <= 2 ? 224 : (t.warpgroups == 3 ? 128 : 96))) return "registers";
  if (m.hidden > 65536) return "shared memory";  // of the biases alone
  const auto shared = layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated, m.up_bias);
  if (t.lag < 0 || t.lag > shared.k_blocks) return "the lag is at most the blocks of dim";
  if (shared.total > ingot::sm90::shared_limit) return "shared memory";
  return {};
}

/// Dynamic shared memory of a block. The tile is legal.
constexpr int shared_bytes(const NarrowTile& t, const MlpShape& m) {
  return layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated, m.up_bias).total;
}

/// Of the caller's workspace for one launch; contents undefined before and after. Never less for more tokens.
constexpr std::int64_t scratch_bytes(const NarrowTile&, const MlpShape&, std::int64_t, int) {
  return 0;
}

// Fitted to the tiles measured on an H200 (docs/measured-gpu.md), which it meets within 8 %.
inline constexpr double narrow_clock_ghz = 1.92;  // short work; of the fit, not of the card
inline constexpr double narrow_start_us = 1.5;    // barriers, biases, the first weights
// Cycles of a warpgroup for each of a thread's hidden values: between the products nothing else of it runs.
inline constexpr double plain_value_cycles = 14, gated_value_cycles = 17.5;
inline constexpr double library_value_cycles = 60;  // the C library's activations
inline constexpr double turn_cycles = 150,
                        turn_column_cycles = 6;  // of a warpgroup, to store a tile and begin the next

/// A launch in microseconds. The tile is legal, tokens >= 1. Chunk by chunk the products of all warpgroups
/// and what is between them; what overlaps is in the constants.
inline double forecast_us(const NarrowTile& t, const MlpShape& m, std::int64_t tokens, const Card& card) {
  const auto shared = layout(t, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated, m.up_bias);
  const double matrices = m.gated ? 2 : 1, rows = tokens_of_block(t), dim = static_cast<double>(m.dim);
  const double k = static_cast<double>(ceil_div(m.dim, 16) * 16);
  const double multiply = rows * t.chunk * (k * matrices + dim) / multiply_adds_per_cycle;
  double value = m.gated ? gated_value_cycles : plain_value_cycles;
  if (m.activated && !m.short_tanh) value += library_value_cycles;
  const double between = t.warpgroups * (t.chunk / 2.0) * value;
  const double turn = t.warpgroups * (turn_cycles + turn_column_cycles * dim);
  const double tile = shared.chunks * (multiply + between) + turn;
  const auto tiles =
      static_cast<double>(ceil_div(ceil_div(tokens, tokens_of_block(t)), card.multiprocessors));
  const double busy = tiles * tile / (narrow_clock_ghz * 1e3 * card.speed);
  const double memory = bytes(m, tokens) / (stream_bytes_per_ns * card.memory) * 1e-3;
  return card.launch_us + narrow_start_us / card.speed + std::sqrt(busy * busy + memory * memory);
}

/// Tiles worth trying: where each won on the H200 among those measured.
inline constexpr std::array narrow_frames{
    NarrowTile{2, 64, 1, 0},   // dim 256 to 320, gated and not
    NarrowTile{2, 64, 1, 2},   // the same
    NarrowTile{2, 128, 1, 0},  // dim 192 and 256; gated, dim 128
    NarrowTile{2, 128, 1, 2},  // the same
    NarrowTile{2, 64, 2, 2},   // gated, dim 192
    NarrowTile{2, 128, 2, 0},  // gated, dim 64
    NarrowTile{4, 64, 4, 0},   // dim 128
};

}  // namespace ingot::arch::sm90
