// SPDX-License-Identifier: Apache-2.0
#include "arch/sm80.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>

namespace ingot::arch::sm80 {
namespace {

constexpr Chip a100 = chip_of(*typical_gpu(8, 0));
constexpr Chip a10 = chip_of(*typical_gpu(8, 6));

TEST(Sm80Tiles, KnownLayout) {
  // (128 + 256) rows of 32 elements of 2 bytes, four stages; outputs of 128 rows of 256 + 8 elements.
  constexpr Tile wide{128, 256, 32, 4, 2, 4};
  EXPECT_EQ(ingot::sm80::threads(wide), 256);
  EXPECT_EQ(ingot::sm80::shared_bytes(wide, 2, false), 384 * 64 * 4);
  EXPECT_EQ(ingot::sm80::out_columns(wide, true), 128);
  EXPECT_EQ(ingot::sm80::shared_bytes(Tile{128, 256, 32, 2, 2, 4}, 2, false), 128 * (512 + 16));
  EXPECT_EQ(ingot::sm80::shared_bytes(Tile{128, 128, 16, 4, 4, 2}, 4, false), 256 * 64 * 4);
}

TEST(Sm80Tiles, BlocksCoverEveryOutput) {
  constexpr Tile t{128, 128, 32, 4, 2, 2};
  EXPECT_EQ(ingot::sm80::blocks(t, 128, false, 128), 1);
  EXPECT_EQ(ingot::sm80::blocks(t, 129, false, 129), 4);
  EXPECT_EQ(ingot::sm80::blocks(t, 65, true, 1), 2);
  EXPECT_EQ(ingot::sm80::blocks(t, 13824, false, std::int64_t{1} << 40), (std::int64_t{1} << 33) * 108);
}

TEST(Sm80Tiles, EveryTileFitsEveryChip) {
  for (const Gpu& gpu : gpus) {
    const Chip chip = chip_of(gpu);
    for (const bool gated : {false, true}) {
      for (const Tile& t : tiles) {
        const LinearShape l{.out = 3072, .in = 768, .gated = gated};
        const bool only_large =
            t.rows * t.stages > 128 * 4 && shared_bytes_per_block(gpu.major, gpu.minor) < 128 << 10;
        const auto why = reject(t, l, chip);
        EXPECT_TRUE(why.empty() || only_large) << gpu.name << ": " << t.rows << "x" << t.cols << ": " << why;
      }
      for (const Tile& t : f32_tiles) {
        EXPECT_EQ(reject(t, {.out = 3072, .in = 768, .gated = gated, .element_bytes = 4}, chip), "")
            << gpu.name;
      }
    }
  }
}

TEST(Sm80Tiles, RejectionsSayWhy) {
  const LinearShape l{.out = 3072, .in = 768};
  EXPECT_EQ(reject(Tile{128, 256, 64, 4, 2, 4}, l, a10), "shared memory");
  EXPECT_EQ(reject(Tile{128, 256, 64, 3, 2, 4}, l, a100), "");
  EXPECT_EQ(reject(Tile{128, 256, 48, 3, 2, 4}, l, a100), "a row of a block is 64 or 128 bytes");
  EXPECT_EQ(reject(Tile{16, 32, 64, 4, 1, 2}, l, a100), "whole passes of copies");
  EXPECT_EQ(reject(Tile{128, 64, 32, 4, 1, 8}, l, a100), "a warp has whole instructions");
  EXPECT_EQ(reject(Tile{128, 128, 32, 4, 2, 2}, {.out = 8, .in = 77}, a100),
            "an aligned row of K is a multiple of 16 bytes");
  EXPECT_EQ(reject(Tile{128, 128, 32, 4, 2, 2}, {.out = 8, .in = 77, .aligned = false}, a100), "");
}

TEST(Sm80Tiles, ResidentBlocks) {
  const LinearShape l{.out = 3072, .in = 768};
  EXPECT_EQ(blocks_per_multiprocessor(Tile{128, 128, 32, 5, 2, 2}, l, a100), 2);
  EXPECT_EQ(blocks_per_multiprocessor(Tile{128, 128, 32, 5, 2, 2}, l, a10), 1);
  EXPECT_EQ(blocks_per_multiprocessor(Tile{128, 128, 32, 3, 2, 2}, l, a10), 2);
  EXPECT_EQ(blocks_per_multiprocessor(Tile{128, 256, 32, 4, 2, 4}, l, a100), 1);
}

TEST(Sm80Tiles, ForecastsKeepToTheRoofline) {
  for (const Gpu& gpu : gpus) {
    const Chip chip = chip_of(gpu);
    for (const std::int64_t tokens : {1, 16, 77, 1024, 32768}) {
      for (const LinearShape& l :
           {LinearShape{.out = 3072, .in = 768, .gated = true}, LinearShape{.out = 5120, .in = 13824},
            LinearShape{.out = 1024, .in = 256, .element_bytes = 4}}) {
        const bool f32 = l.element_bytes == 4;
        const double operations = 2.0 * static_cast<double>(tokens * l.out * l.in) * (l.gated ? 2 : 1);
        const double least = operations / (f32 ? chip.f32_flops_per_s : chip.tensor_flops_per_s) * 1e6;
        double best = std::numeric_limits<double>::infinity();
        const auto consider = [&](const Tile& t) {
          if (!reject(t, l, chip).empty()) return;
          const double us = forecast_us(t, l, tokens, chip);
          EXPECT_GT(us, least) << gpu.name;
          best = us < best ? us : best;
        };
        for (const Tile& t : f32 ? std::span<const Tile>(f32_tiles) : std::span<const Tile>(tiles))
          consider(t);
        // A good tile of many is near what the chip can do: products at the rate of mma.sync, weights once.
        const double bytes = static_cast<double>(l.element_bytes) *
                             (static_cast<double>(l.out * l.in) * (l.gated ? 2 : 1) +
                              static_cast<double>(tokens) * static_cast<double>(l.out + l.in));
        const double roofline = std::max(least / (f32 ? 1 : mma_sync_share(chip.major, chip.minor)),
                                         bytes / chip.memory_bytes_per_s * 1e6);
        EXPECT_LT(best, 2.5 * roofline + 40)
            << gpu.name << ", " << tokens << " tokens, " << l.in << " to " << l.out;
      }
    }
  }
}

TEST(Sm80Tiles, FewTokensTakeSmallTilesAndManyLargeOnes) {
  const LinearShape l{.out = 3072, .in = 768};
  const auto best_of = [&](std::int64_t tokens) {
    Tile best = tiles[0];
    for (const Tile& t : tiles) {
      if (forecast_us(t, l, tokens, a100) < forecast_us(best, l, tokens, a100)) best = t;
    }
    return best;
  };
  EXPECT_EQ(best_of(1).rows, 16);
  EXPECT_GE(best_of(65536).rows * best_of(65536).cols, 128 * 128);
}

TEST(Gpus, TypicalOnes) {
  EXPECT_EQ(typical_gpu(8, 0)->name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(typical_gpu(8, 6)->name, "NVIDIA A10");
  EXPECT_EQ(typical_gpu(8, 9)->name, "NVIDIA L40S");
  EXPECT_EQ(typical_gpu(8, 7)->name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(typical_gpu(9, 0)->name, "NVIDIA H200");
  EXPECT_EQ(typical_gpu(10, 3)->name, "NVIDIA B200");
  EXPECT_EQ(typical_gpu(12, 0)->name, "NVIDIA GeForce RTX 5090");
  EXPECT_EQ(typical_gpu(13, 0)->major, 12);
  EXPECT_EQ(typical_gpu(7, 5), nullptr);
  EXPECT_EQ(find_gpu("NVIDIA L4")->multiprocessors, 58);
  EXPECT_EQ(find_gpu("nothing"), nullptr);
}

}  // namespace
}  // namespace ingot::arch::sm80
