// SPDX-License-Identifier: Apache-2.0
//
// The kernel of a whole MLP for few tokens: how its warps walk, its shared memory, which tiles are legal, and
// what reaches the driver. Numbers are worked out by hand from kernels/sm90/cluster.cuh.
#include <gtest/gtest.h>

#include "arch/sm90_cluster.h"
#include "fake/gpu_driver.h"
#include "gpu/mlp_launch.h"

namespace ingot {
namespace {

using arch::sm90::MlpShape;
using arch::sm90::reject;
using sm90::ClusterTile;
using test::FakeGpu;

constexpr ClusterTile few{8, 8, 8, 16};
constexpr MlpShape seed{
    .dim = 256, .hidden = 1024, .up_bias = true, .down_bias = true, .activated = true, .rounds = true};
constexpr MlpShape geglu{.dim = 768, .hidden = 3072, .gated = true, .activated = true, .rounds = true};

TEST(ClusterTile, SmallModelIsInFlightAtOnce) {
  const auto l = layout(few, 256, 1024, false);
  // 1024 / 8 = 128 hidden a block: 4 chunks of 32, 8 units of 16, one a warp; 256 / 32 = 8 units of outputs.
  EXPECT_EQ(l.slice_chunks, 4);
  EXPECT_EQ(l.owned_units, 1);
  // A lane holds 2 pieces of a chunk of the first linear, 4 of the second: 8 chunks and 4 are 16 pieces each.
  EXPECT_EQ(l.up.chunks, 8);
  EXPECT_EQ(l.up.batches, 1);
  EXPECT_EQ(l.down.chunks, 4);
  EXPECT_EQ(l.down.batches, 1);
  // x: 8 rows of 512 bytes, 64 apart; hidden 128 x 8 x 2; sums of 8 blocks, 8 x 32 x 4; 128 + 32 biases; a
  // barrier.
  EXPECT_EQ(l.x_pitch, 576);
  EXPECT_EQ(l.total, 8 * 576 + 2048 + 8 * 1024 + 160 * 4 + 8);
  EXPECT_EQ(shared_bytes(few, seed), l.total);
}

TEST(ClusterTile, LongerRowsComeInRounds) {
  const auto l = layout(few, 768, 3072, true);
  // 384 hidden a block: 12 chunks, 24 units, 3 a warp; 4 pieces a chunk: 24 chunks of dim in 6 rounds of 4.
  EXPECT_EQ(l.slice_chunks, 12);
  EXPECT_EQ(l.up.units, 1);
  EXPECT_EQ(l.up.chunks, 4);
  EXPECT_EQ(l.up.rounds, 6);
  EXPECT_EQ(l.up.batches, 18);
  // 24 units of outputs, 3 a warp and 3 a block; 12 chunks of hidden in 3 rounds.
  EXPECT_EQ(l.down.rounds, 3);
  EXPECT_EQ(l.down.batches, 9);
  EXPECT_EQ(l.owned_units, 3);
}

TEST(ClusterTile, SlicesCoverHiddenAndRowsNeverMeetInABank) {
  for (int dim = 8; dim <= 800; dim += 56) {
    for (int hidden = 8; hidden <= 3200; hidden += 152) {
      for (const ClusterTile& t :
           {few, ClusterTile{1, 16, 4, 4}, ClusterTile{3, 24, 8, 8}, ClusterTile{7, 72, 16, 32}}) {
        for (const bool gated : {false, true}) {
          const auto l = layout(t, dim, hidden, gated);
          EXPECT_GE(l.slice_chunks * 32 * t.blocks, hidden);
          EXPECT_GE(l.owned_units * 32 * t.blocks, dim);
          EXPECT_EQ(l.slice_chunks, l.down.rounds * l.down.chunks);
          EXPECT_GE(l.up.rounds * l.up.chunks * 32, dim);
          EXPECT_GE(l.up.batches / l.up.rounds * l.up.units * t.warps, 2 * l.slice_chunks);
          EXPECT_GE(l.down.batches / l.down.rounds * l.down.units * t.warps * 32, dim);
          EXPECT_EQ(l.x_pitch % 128, 64);
          EXPECT_GE(l.x_pitch, 2 * dim);
          EXPECT_EQ(l.barrier % 8, 0);
        }
      }
    }
  }
}

TEST(ClusterTile, WhyNot) {
  EXPECT_EQ(reject(few, seed), "");
  EXPECT_EQ(reject(few, geglu), "");
  MlpShape odd = seed;
  odd.dim = 260;
  EXPECT_EQ(reject(few, odd), "widths are multiples of 8");
  EXPECT_EQ(reject(ClusterTile{16, 8, 8, 16}, seed), "a cluster has at most 8 blocks");
  EXPECT_EQ(reject(ClusterTile{8, 12, 8, 16}, seed), "tokens of a tile are multiples of 8, at most 72");
  EXPECT_EQ(reject(ClusterTile{8, 8, 17, 16}, seed), "a block has at most 16 warps");
  EXPECT_EQ(reject(ClusterTile{8, 8, 8, 3}, seed), "4 to 32 pieces of weights are in flight");
  // 512 threads have 128 registers each: 16 pieces of both linears take all of them.
  EXPECT_EQ(reject(ClusterTile{8, 8, 16, 16}, geglu), "registers");
  EXPECT_EQ(reject(few, MlpShape{.dim = 256, .hidden = 248}), "every block has 32 hidden values");
  MlpShape wide = seed;
  wide.dim = 8192;
  EXPECT_NE(reject(few, wide), "");
  // A block alone holds all of hidden, for 64 tokens 64 x 3072 x 2 bytes, and 64 x 768 x 6 of x and sums.
  EXPECT_EQ(reject(ClusterTile{1, 64, 8, 4}, MlpShape{.dim = 256, .hidden = 3072}), "shared memory");
}

TEST(ClusterTile, ForecastsNeverFallWithMoreTokens) {
  for (const ClusterTile& tile : arch::sm90::cluster_frames) {
    for (const MlpShape& mlp : {seed, geglu}) {
      double before = 0;
      for (std::int64_t tokens = 1; tokens < 5000; ++tokens) {
        const double us = forecast_us(tile, mlp, tokens, {});
        EXPECT_GE(us, before) << tokens;
        before = us;
      }
    }
  }
}

class ClusterLaunchTest : public testing::Test {
 protected:
  ClusterLaunchTest()
      : device(gpu::Device::open(fake.driver(), 0).value()),
        modules(device, std::make_shared<test::FakeStore>()),
        current(*device) {}

  gpu::PreparedKernel prepare(const MlpSpec& mlp, const ClusterTile& tile, std::int64_t up_stride) {
    return gpu::prepare_kernel({.device = device,
                                .module = modules.get(mlp, tile).value(),
                                .mlp = mlp,
                                .first = {{FakeGpu::memory(up), up_stride, FakeGpu::memory(2)},
                                          {FakeGpu::memory(gate), up_stride, FakeGpu::memory(6)}},
                                .down = {FakeGpu::memory(down), 1032, FakeGpu::memory(10)}},
                               tile);
  }

  const std::size_t x = 0, y = std::size_t{1} << 36, up = std::size_t{1} << 37, gate = up + (1 << 24),
                    down = gate + (1 << 24);
  FakeGpu fake;
  std::shared_ptr<const gpu::Device> device;
  gpu::ModuleTable modules;
  gpu::CurrentContext current;
};

MlpSpec small_mlp() {
  MlpSpec mlp;
  mlp.dim = 256;
  mlp.hidden = 1024;
  mlp.activation = Activation::silu;
  mlp.gated = mlp.up_bias = mlp.down_bias = true;
  return mlp;
}

TEST_F(ClusterLaunchTest, AddressesAndStridesAsTheyAre) {
  const ClusterTile tile{4, 16, 8, 16};
  const auto kernel = prepare(small_mlp(), tile, 264);
  ASSERT_TRUE(kernel);
  const auto stream = reinterpret_cast<gpu::CuStream>(0x1230);
  ASSERT_TRUE((*kernel)->launch({FakeGpu::memory(x), std::int64_t{1} << 32}, {FakeGpu::memory(y), 272},
                                nullptr, 77, stream, gpu::Start::early));
  ASSERT_EQ(fake.launches(), 1);
  const test::Launch& l = fake.launch(0);
  EXPECT_EQ(l.grid, (std::array<std::uint32_t, 3>{20, 1, 1}));  // 77 tokens in 5 clusters of 4
  EXPECT_EQ(l.block, (std::array<std::uint32_t, 3>{256, 1, 1}));
  EXPECT_EQ(l.cluster, 4U);
  EXPECT_TRUE(l.dependent);
  EXPECT_EQ(l.stream, stream);
  EXPECT_EQ(l.shared_bytes, static_cast<std::uint32_t>(layout(tile, 256, 1024, true).total));
  const auto a = l.as<gpu::ClusterArguments>();
  EXPECT_EQ(a.x, FakeGpu::memory(x));
  EXPECT_EQ(a.x_stride, std::int64_t{1} << 32);
  EXPECT_EQ(a.up, FakeGpu::memory(up));
  EXPECT_EQ(a.gate, FakeGpu::memory(gate));
  EXPECT_EQ(a.up_stride, 264);
  EXPECT_EQ(a.gate_stride, 264);
  EXPECT_EQ(a.down, FakeGpu::memory(down));
  EXPECT_EQ(a.down_stride, 1032);
  EXPECT_EQ(a.tokens, 77);
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(2));
  EXPECT_EQ(a.epilogue.gate_bias, FakeGpu::memory(6));
  EXPECT_EQ(a.epilogue.down_bias, FakeGpu::memory(10));
  EXPECT_EQ(a.epilogue.y, FakeGpu::memory(y));
  EXPECT_EQ(a.epilogue.y_stride, 272);
}

TEST_F(ClusterLaunchTest, RowsTooFarApart) {
  EXPECT_TRUE(prepare(small_mlp(), few, std::int64_t{1} << 30));
  const auto refused = prepare(small_mlp(), few, std::int64_t{1} << 31);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace ingot
