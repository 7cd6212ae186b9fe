// SPDX-License-Identifier: Apache-2.0
//
// The portable kernels (compute capability 8.0 and newer): tiles of kernels/sm80 and kernels/f32 worth
// trying, which of them are legal, and what one should take. A model from data sheets and published figures,
// not tuned on any card. Plain data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "arch/gpus.h"
#include "arch/integers.h"
#include "kernels/sm80/layout.cuh"

namespace ingot::arch::sm80 {

using ingot::sm80::Tile;

/// What of a linear decides a tile.
struct LinearShape {
  std::int64_t out = 0, in = 0;  // of one matrix where gated
  bool gated = false;            // one pass over two matrices
  int element_bytes = 2;
  bool aligned = true;  // else elements are copied one by one
};

/// 16-bit types. Stages as 100 KB of shared memory hold them, which is what sm_86, sm_89 and sm_120 have.
inline constexpr std::array tiles{
    Tile{128, 256, 32, 4, 2, 4},  // many tokens, wide outputs: most products a byte
    Tile{256, 128, 32, 4, 4, 2},  // the same, outputs that 128 fits better
    Tile{128, 192, 32, 4, 2, 4},  // widths that 192 fits better
    Tile{128, 128, 32, 5, 2, 2},  // two blocks a multiprocessor on sm_80 and sm_90
    Tile{128, 128, 32, 3, 2, 2},  // two blocks on the others
    Tile{128, 96, 32, 4, 2, 2},   // narrow outputs
    Tile{128, 64, 32, 4, 2, 2},   // the same
    Tile{64, 256, 32, 4, 1, 4},   // some tokens, gated
    Tile{64, 128, 32, 4, 2, 2},   // some tokens
    Tile{64, 64, 64, 4, 2, 2},    // some tokens, narrow outputs
    Tile{32, 128, 64, 4, 1, 4},   // few tokens
    Tile{32, 64, 64, 6, 1, 4},
    Tile{16, 128, 64, 4, 1, 4},  // up to 16 tokens: reading weights is the work
    Tile{16, 64, 64, 8, 1, 4},
    Tile{16, 32, 32, 12, 1, 2},  // and so many blocks that every multiprocessor reads
};
inline constexpr std::array f32_tiles{
    Tile{128, 128, 16, 4, 4, 2}, Tile{128, 64, 16, 4, 4, 2}, Tile{64, 64, 16, 4, 2, 2},
    Tile{32, 64, 32, 4, 1, 4},   Tile{16, 32, 16, 8, 1, 2},
};

// From L2 into one multiprocessor's shared memory, bytes a second, by published microbenchmarks of each
// generation, rounded down.
constexpr double fill_bytes_per_s(int major, int minor) {
  if (major == 8) return minor == 0 ? 55e9 : minor == 6 ? 35e9 : 40e9;
  return major == 12 ? 40e9 : 80e9;
}
inline constexpr double element_copy_factor = 6;  // one element an instruction instead of 16 bytes
inline constexpr double latency_s = 1e-6;       // from asking for a block of K to its products, loaded memory
inline constexpr double first_data_s = 1.6e-6;  // from a block's first instruction to its first product
inline constexpr double finish_s = 0.6e-6;      // bias, activation and stores of a tile

/// Why the kernel cannot be made of this tile for this linear; empty when it can.
constexpr std::string_view reject(const Tile& t, const LinearShape& l, const Chip& chip) {
  const int row_bytes = t.block_k * l.element_bytes, threads = ingot::sm80::threads(t);
  if (row_bytes != 64 && row_bytes != 128) return "a row of a block is 64 or 128 bytes";
  if (threads > 1024 || t.stages < 2) return "at most 1024 threads, at least two stages";
  const int pass_rows = threads / (row_bytes / 16);
  if (pass_rows % 16 != 0 || t.rows % pass_rows != 0 || t.cols % pass_rows != 0)
    return "whole passes of copies";
  const int warp_rows = t.rows / t.warp_rows, warp_cols = t.cols / t.warp_cols;
  if (l.element_bytes == 2 ? warp_rows % 16 != 0 || warp_cols % 16 != 0
                           : warp_rows % 4 != 0 || warp_cols % (l.gated ? 16 : 8) != 0) {
    return "a warp has whole instructions";
  }
  if (l.aligned && l.in * l.element_bytes % 16 != 0) return "an aligned row of K is a multiple of 16 bytes";
  if (ingot::sm80::shared_bytes(t, l.element_bytes, l.gated) >
      shared_bytes_per_block(chip.major, chip.minor)) {
    return "shared memory";
  }
  return {};
}

/// Blocks that a multiprocessor holds at once, by shared memory, threads and registers. Registers as
/// compiled: sums, two sets of fragments and some 32 more; f32 takes all there are.
constexpr int blocks_per_multiprocessor(const Tile& t, const LinearShape& l, const Chip& chip) {
  const int threads = ingot::sm80::threads(t);
  const int shared = ingot::sm80::shared_bytes(t, l.element_bytes, l.gated) + 1024;
  const int by_shared = shared_bytes_per_multiprocessor(chip.major, chip.minor) / shared;
  const int by_threads = 1536 / threads;
  const int fragments = 8 * (t.rows / t.warp_rows / 16 + t.cols / t.warp_cols / 16);
  const int registers = l.element_bytes == 4 ? 255 : (t.rows * t.cols / threads + fragments + 32 + 7) / 8 * 8;
  const int by_registers = 65536 / (threads * (registers > 255 ? 256 : registers));
  int blocks = by_shared < by_threads ? by_shared : by_threads;
  blocks = blocks < by_registers ? blocks : by_registers;
  return blocks < 1 ? 1 : blocks;
}

/// A model, to rank tiles and to forecast. Every multiprocessor works on as many tiles at once as it holds; a
/// block of K of each takes the slowest of the products, the way from L2, and the latency that the ring does
/// not hide. At least the time of the bytes that must pass the memory.
constexpr double forecast_us(const Tile& t, const LinearShape& l, std::int64_t tokens, const Chip& chip) {
  const std::int64_t blocks = ingot::sm80::blocks(t, l.out, l.gated, tokens);
  const bool f32 = l.element_bytes == 4;
  const double rate =
      (f32 ? chip.f32_flops_per_s : chip.tensor_flops_per_s * mma_sync_share(chip.major, chip.minor)) /
      chip.multiprocessors;
  const double multiply = 2.0 * t.rows * t.cols * t.block_k / rate;
  const double fill = static_cast<double>(t.rows + t.cols) * t.block_k * l.element_bytes *
                      (l.aligned ? 1 : element_copy_factor) / fill_bytes_per_s(chip.major, chip.minor);
  const auto k_blocks = static_cast<double>(ceil_div(l.in, t.block_k));
  const int warps = t.warp_rows * t.warp_cols;

  // `count` tiles side by side on one multiprocessor. Its four parts need two warps each to be always busy.
  const auto side_by_side = [&](std::int64_t count) {
    const double resident = static_cast<double>(count * warps);
    const double busy = (resident < 4 ? resident / 4 : 1) * (resident < 8 ? 0.75 : 1);
    const double work = static_cast<double>(count) * (multiply / busy > fill ? multiply / busy : fill);
    const double wait = latency_s / (t.stages - 1);
    return k_blocks * (work > wait ? work : wait) + finish_s;
  };
  const std::int64_t at_once = blocks_per_multiprocessor(t, l, chip);
  const std::int64_t waves = blocks / (at_once * chip.multiprocessors);
  const std::int64_t rest = blocks - waves * at_once * chip.multiprocessors;
  double seconds = static_cast<double>(waves) * side_by_side(at_once);
  if (rest > 0) seconds += side_by_side(ceil_div(rest, chip.multiprocessors));

  const double matrices = l.gated ? 2 : 1, m = static_cast<double>(tokens);
  const double in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  const double memory = l.element_bytes * (m * in + matrices * in * out + m * out) / chip.memory_bytes_per_s;
  return (chip.launch_s + first_data_s + (seconds > memory ? seconds : memory)) * 1e6;
}

}  // namespace ingot::arch::sm80
