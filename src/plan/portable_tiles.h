// SPDX-License-Identifier: Apache-2.0
//
// Tiles of the portable kernels, and a model of what one takes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/linear.h"

namespace ingot::portable {

// rows, cols, block_k, stages, warps along rows and columns
inline constexpr std::array tiles{
    sm80::Tile{16, 64, 64, 4, 1, 4},   sm80::Tile{32, 64, 64, 4, 1, 4},   sm80::Tile{64, 64, 64, 4, 2, 2},
    sm80::Tile{64, 128, 32, 4, 2, 2},  sm80::Tile{128, 128, 32, 4, 2, 2}, sm80::Tile{128, 64, 32, 4, 2, 2},
    sm80::Tile{128, 256, 32, 3, 2, 4}, sm80::Tile{256, 128, 32, 3, 4, 2},
};
inline constexpr std::array f32_tiles{
    sm80::Tile{16, 64, 16, 3, 1, 4},
    sm80::Tile{64, 64, 16, 3, 2, 4},
    sm80::Tile{128, 128, 16, 3, 4, 2},
};

inline bool fits(const sm80::Tile& t, const LinearSpec& linear, const GpuDescription& gpu) {
  const auto element = static_cast<int>(size_of(linear.dtype));
  const int ring = t.stages * (t.rows + t.cols) * t.block_k * element;
  return ring <= gpu.shared_bytes && (linear.dtype == DType::f32) == (t.block_k == 16);
}

inline double forecast_us(const sm80::Tile& t, const LinearSpec& linear, std::int64_t tokens,
                          const GpuDescription& gpu) {
  const double matrices = linear.gated ? 2 : 1, element = static_cast<double>(size_of(linear.dtype));
  const auto in = static_cast<double>(linear.in), out = static_cast<double>(linear.out);
  const auto rows = static_cast<double>(tokens);
  const double blocks = std::ceil(rows / t.rows) * std::ceil(out * matrices / t.cols);
  const double waves = std::ceil(blocks / gpu.multiprocessors);
  const bool f32 = linear.dtype == DType::f32;
  const double rate = (f32 ? gpu.f32_flops_per_s : gpu.tensor_flops_per_s) / gpu.multiprocessors;
  const double multiply = 2.0 * t.rows * t.cols * in / rate;
  const double fill = (t.rows + t.cols) * in * element / (rate / (f32 ? 4 : 48));
  const double memory = element * (rows * in + matrices * in * out + rows * out) / gpu.memory_bytes_per_s;
  const double tile = std::max(multiply, fill) * (linear.aligned ? 1 : 3);
  return 1e6 * (gpu.launch_s + 3e-6 + std::max(waves * tile, memory));
}

}  // namespace ingot::portable
