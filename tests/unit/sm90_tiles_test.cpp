// SPDX-License-Identifier: Apache-2.0
#include "arch/sm90.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace ingot::arch::sm90 {
namespace {

constexpr LinearShape fc1(std::int64_t dim, std::int64_t hidden, bool gated) {
  return {.out = hidden, .in = dim, .gated = gated, .bias = !gated, .activated = true, .rounds = true};
}
constexpr LinearShape fc2(std::int64_t dim, std::int64_t hidden) {
  return {.out = dim, .in = hidden, .bias = true};
}

TEST(Sm90Tiles, LayoutsFillSharedMemoryWithoutOverlap) {
  for (const auto& frame : gemm_frames) {
    for (const LinearShape& l : {fc1(1536, 8960, false), fc1(768, 3072, true), fc2(1536, 8960)}) {
      const GemmTile t = with_stages(frame, l);
      if (t.stages == 0) continue;
      const auto layout = ingot::sm90::layout(t, l.gated);
      EXPECT_EQ(layout.stage_bytes, (rows(t) + t.cols) * 128);
      EXPECT_EQ(layout.output, t.stages * layout.stage_bytes);
      EXPECT_EQ(layout.output % 1024, 0) << "the swizzle repeats every 1024 bytes";
      EXPECT_LE(layout.output, layout.bias);
      EXPECT_LT(layout.bias, layout.barriers);
      EXPECT_EQ(layout.barriers % 8, 0);
      EXPECT_LE(layout.total, 232448);
    }
  }
}

TEST(Sm90Tiles, ClustersAtWorkReadAsMuchOfXAsOfW) {
  // 66 clusters of 256 x 256: 8 x 8 of them. 132 blocks of 128 x 256: 16 x 8. 66 clusters of 256 x 384: 10
  // x 6.6.
  EXPECT_EQ(group_rows({2, 1, 256, 3, 2, 1, 1, true, 0}, 66, 8192), 8);
  EXPECT_EQ(group_rows({2, 1, 256, 4, 1, 1, 1, false, 0}, 132, 8192), 16);
  EXPECT_EQ(group_rows({2, 2, 192, 3, 1, 2, 1, false, 0}, 66, 8192), 10);
  EXPECT_EQ(group_rows({2, 2, 160, 3, 1, 1, 1, false, 0}, 1, 8192), 1);
}

TEST(Sm90Tiles, TilesOf64RowsShareWithinAGroupOfMultiprocessors) {
  // 16 blocks of 64 x 144: 6 x 2.7 of them. 1024 tokens are 16 row tiles, two groups of 8; 960 are 15, of 8 and
  // 7; 256 are 4, one group.
  const GemmTile t{1, 1, 144, 7, 1, 1, 1, false, 0};
  EXPECT_EQ(group_rows(t, 132, 1024), 8);
  EXPECT_EQ(group_rows(t, 132, 960), 8);
  EXPECT_EQ(group_rows(t, 132, 1), 6);
  EXPECT_EQ(group_rows(t, 132, 256), 6);
  // Clusters are spread over the groups: as other tiles.
  EXPECT_EQ(group_rows({1, 1, 144, 7, 2, 1, 1, false, 0}, 66, 1024), 9);
}

TEST(Sm90Tiles, TheSecondFitsBesideTheFirstWhereThatCostsFewStages) {
  // Four stages of 24 KB and twelve of 12 KB do not fit 228 KB less 1 KB a block; ten do.
  const FewTile first{1, 1, 128, 4, 1, 1}, second{1, 1, 32, 12, 1, 1};
  EXPECT_EQ(beside(first, false, second).stages, 10);
  EXPECT_EQ(beside(first, false, {1, 1, 32, 8, 1, 1}).stages, 8);
  EXPECT_EQ(beside(first, false, {1, 1, 32, 11, 1, 1}).stages, 10);
  // Beside twelve stages of 13 KB only five would fit.
  EXPECT_EQ(beside({1, 1, 40, 12, 1, 1}, false, {1, 1, 40, 12, 1, 4}).stages, 12);
}

TEST(Sm90Tiles, KnownLayout) {
  // 128 x 256, three stages of 48 KB, the tile in 16 bits, two bias buffers, fifteen barriers.
  const GemmTile t{2, 1, 256, 3, 2, 1, 1, true, 0};
  const auto layout = ingot::sm90::layout(t, false);
  EXPECT_EQ(layout.stage_bytes, 49152);
  EXPECT_EQ(layout.output, 147456);
  EXPECT_EQ(layout.bias, 147456 + 65536);
  EXPECT_EQ(layout.total, 212992 + 2 * 4 * 272 + 8 * 15);
  EXPECT_EQ(threads(t), 384);
}

TEST(Sm90Tiles, EveryFrameServesSomething) {
  for (const auto& frame : gemm_frames) {
    bool legal = false;
    for (const LinearShape& l :
         {fc1(320, 1280, true), fc1(1536, 8960, false), fc2(1536, 8960), fc2(5120, 13824)}) {
      legal = legal || with_stages(frame, l).stages > 0;
    }
    EXPECT_TRUE(legal) << frame.wins;
  }
  for (const auto& frame : few_frames) {
    EXPECT_GT(with_stages(frame, fc2(768, 3072)).stages, 0) << frame.wins;
  }
}

TEST(Sm90Tiles, RejectionsSayWhy) {
  const GemmTile offload{2, 1, 256, 3, 2, 1, 1, true, 0};
  LinearShape l = fc1(768, 3072, false);
  EXPECT_EQ(reject(offload, l), "");
  l.rounds = false;
  EXPECT_EQ(reject(offload, l), "epilogue warps take the linear's result in 16 bits, numerics match");
  l = fc1(764, 3072, false);
  EXPECT_EQ(reject(offload, l), "widths are multiples of 8");
  EXPECT_EQ(reject(GemmTile{2, 1, 256, 6, 1, 1, 1, false, 0}, fc2(768, 3072)), "shared memory");
  EXPECT_EQ(reject(GemmTile{2, 2, 256, 3, 1, 1, 1, false, 0}, fc2(768, 3072)), "registers");
  EXPECT_EQ(reject(GemmTile{2, 1, 128, 4, 1, 1, 3, false, 0}, fc2(768, 3072)),
            "every split finishes as many pieces");
  EXPECT_EQ(reject(GemmTile{2, 1, 128, 4, 2, 2, 4, false, 0}, fc2(768, 3072)),
            "a cluster has at most 8 blocks");
  EXPECT_EQ(reject(FewTile{1, 1, 20, 4, 1, 1}, fc2(768, 3072)),
            "tokens of a tile are multiples of 8, shared by whole groups of eight");
  EXPECT_EQ(reject(FewTile{1, 1, 64, 4, 2, 2}, fc2(768, 3072)), "a cluster shares x or splits K");
}

TEST(Sm90Tiles, WorkCoversEveryOutput) {
  const GemmTile t{2, 1, 144, 5, 2, 1, 1, false, 0};
  EXPECT_EQ(work(t, fc1(1152, 4608, false), 1024), 4 * 32);
  EXPECT_EQ(work(t, fc1(1152, 4608, false), 1025), 5 * 32);
  EXPECT_EQ(work(FewTile{1, 1, 40, 12, 1, 4}, fc2(768, 3072), 77), 12 * 2);
}

// The model may be off by much; it must not call good what is far from the measured best (H200,
// docs/measured-gpu.md).
TEST(Sm90Tiles, ForecastsAreNearWhatWasMeasured) {
  struct Measured {
    GemmTile tile;
    LinearShape linear;
    std::int64_t tokens;
    double us;
  };
  const Measured measured[] = {
      {{2, 1, 144, 6, 1, 1, 1, false, 0}, fc1(1152, 4608, false), 1024, 19.8},
      {{2, 1, 256, 4, 1, 1, 1, false, 0}, fc1(256, 1024, false), 16384, 20.4},
      {{2, 1, 256, 4, 1, 1, 1, false, 0}, fc2(256, 1024), 16384, 17.0},
      {{2, 1, 128, 6, 1, 1, 4, false, 0}, fc2(1536, 8960), 256, 18.7},
      {{2, 2, 160, 4, 1, 1, 1, false, 0}, fc1(4096, 10240, true), 512, 115},
  };
  for (const Measured& m : measured) {
    ASSERT_EQ(reject(m.tile, m.linear), "");
    const double us = forecast_us(m.tile, m.linear, m.tokens);
    EXPECT_NEAR(us / m.us, 1.0, 0.25) << m.tile.cols << " columns, " << m.tokens << " tokens: " << us;
  }
}

}  // namespace
}  // namespace ingot::arch::sm90
