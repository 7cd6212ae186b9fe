// SPDX-License-Identifier: Apache-2.0
//
// kernels/sm90/narrow.cuh, the kernel of a whole narrow MLP: its tiles, which of them are legal, and what one
// should take.
#pragma once

#include <array>
#include <string_view>

#include "arch/sm90.h"
#include "arch/sm90_mlp.h"
#include "kernels/sm90/narrow_layout.cuh"

namespace ingot::arch::sm90 {

using ingot::sm90::NarrowTile;

inline constexpr int narrowest_dim = 32, widest_dim = 320;  // y of 64 tokens in a warpgroup's registers

/// Why the kernel cannot be made of this tile for this MLP; empty when it can.
constexpr std::string_view reject(const NarrowTile& t, const MlpShape& m) {
  if (m.dim % 8 != 0 || m.hidden % 8 != 0) return "widths are multiples of 8";
  if (m.dim > widest_dim) return "dim is at most 320";
  if (m.dim < narrowest_dim) return "dim is at least 32";
  if (t.warpgroups < 1 || t.warpgroups > 4 || t.slots < 1) return "1 to 4 warpgroups, a slot or more";
  const int sums = t.chunk * (m.gated ? 2 : 1);
  if ((t.chunk != 64 && t.chunk != 128) || sums > 256) return "at most 256 sums of a chunk of 64 or 128";
  // y and a chunk's sums, in the registers that so many threads leave each.
  const std::int64_t held = m.dim / 2 + sums / 2;
  if (held > (t.warpgroups <= 2 ? 224 : (t.warpgroups == 3 ? 128 : 96))) return "registers";
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

/// A launch in microseconds. The tile is legal, tokens >= 1.
inline double forecast_us(const NarrowTile&, const MlpShape& m, std::int64_t tokens, const Card& card) {
  return card.launch_us + 1e6 * 2 * multiply_adds(m, tokens) / tensor_flops_per_s;
}

/// Tiles worth trying.
inline constexpr std::array narrow_frames{NarrowTile{2, 64, 1, 2}};

}  // namespace ingot::arch::sm90
