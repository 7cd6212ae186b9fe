// SPDX-License-Identifier: Apache-2.0
//
// How a run cuts columns into tasks and where it keeps what in the caller's workspace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ingot/plan.h"

namespace ingot::cpu {

// 16-bit weights become f32 a block at a time, small enough to stay in the second-level cache beside the
// tile: few enough columns that a row of blocks is read along, enough that the GEMM has work.
inline constexpr std::int64_t weight_block = std::int64_t{32} * 1024;  // elements
inline constexpr std::int64_t weight_block_depth = 512;
inline constexpr std::int64_t split_grain = 32;  // splits start at whole vectors and cache lines

/// Columns [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Columns of every part but the last when `columns` are split into `parts`.
inline std::int64_t split_width(std::int64_t columns, std::int64_t parts) {
  const std::int64_t even = (columns + parts - 1) / parts;
  return parts == 1 ? columns : (even + split_grain - 1) / split_grain * split_grain;
}
/// Part `i` of `parts`; empty where the columns do not reach.
inline Range split(std::int64_t columns, std::int64_t parts, std::int64_t i) {
  const std::int64_t width = split_width(columns, parts);
  return {std::min(columns, i * width), std::min(columns, (i + 1) * width)};
}

/// Where a run keeps what: offsets into the caller's workspace, sizes in elements of the type named.
struct Layout {
  std::size_t first = 0;   ///< MLP's dtype [tokens, width]: what a linear wrote
  std::size_t second = 0;  ///< the same size: what a pass over `first` wrote
  std::size_t scratch =
      0;  ///< scratch_bytes per thread: x, tile, sums, weights, hidden, each aligned to a cache line
  std::size_t scratch_bytes = 0;
  std::size_t x_elements = 0;       ///< widened: a tile of x as f32
  std::size_t tile_elements = 0;    ///< sums of gate (and up) of one step
  std::size_t sum_elements = 0;     ///< 16-bit: sums of the output
  std::size_t weight_elements = 0;  ///< widened: a block of weights as f32
  std::size_t hidden_elements = 0;  ///< bf16 multiplied as it is: hidden values of one step
  std::size_t bytes = 0;            ///< total; the largest size_t when it would overflow
};

/// What the GEMMs read. f32: everything in place. 16-bit: f32 copies, a tile and a block of weights at a
/// time, or, where the library multiplies bf16 itself, again everything in place.
enum class Operands : std::uint8_t { f32, widened, bf16 };
Operands operands(DType dtype, bool native_bf16);

Layout layout(const Mlp& mlp, std::int64_t tokens, Rung rung, const Tile& tile, const CpuDescription& cpu);

}  // namespace ingot::cpu
