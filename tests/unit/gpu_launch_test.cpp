// SPDX-License-Identifier: Apache-2.0
//
// What reaches the driver for one linear: grid, cluster, tensor maps, arguments. Numbers are worked out by
// hand from the kernels' own description of their maps (kernels/sm90/gemm_pipeline.cuh, few.cuh).
#include <gtest/gtest.h>

#include "fake/gpu_driver.h"

namespace ingot {
namespace {

using gpu::FewArguments;
using gpu::GemmArguments;
using test::FakeGpu;
using test::MapView;
using test::view;

constexpr int f16 = 6, bf16 = 9;

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

class GpuLaunchTest : public testing::Test {
 protected:
  GpuLaunchTest()
      : device(gpu::Device::open(fake.driver(), 0).value()),
        modules(device, std::make_shared<test::FakeStore>()),
        current(*device) {}

  /// Launches one linear; x 8192 bytes a row apart, y right behind the rows.
  const test::Launch& launch(const LinearSpec& linear, const KernelTile& tile, std::int64_t tokens,
                             gpu::Start start = gpu::Start::ordinary) {
    const auto module = modules.get(linear, tile).value();
    const gpu::LinearWeights weights{{FakeGpu::memory(up), up_stride, FakeGpu::memory(up_bias)},
                                     {FakeGpu::memory(gate), up_stride, FakeGpu::memory(gate_bias)}};
    const auto prepared = gpu::PreparedLinear::make(device, module, linear, tile, weights).value();
    const auto done = prepared.launch({FakeGpu::memory(x), 4096}, {FakeGpu::memory(y), y_stride}, tokens,
                                      stream, start);
    EXPECT_TRUE(done) << done.error().message;
    return fake.launch(fake.launches() - 1);
  }

  std::size_t x = 0, y = std::size_t{1} << 36, up = std::size_t{1} << 37,
              gate = (std::size_t{1} << 37) + (1 << 24), up_bias = 2, gate_bias = 6;
  std::int64_t up_stride = 768, y_stride = 3072;
  gpu::CuStream stream = reinterpret_cast<gpu::CuStream>(0x1230);
  FakeGpu fake;
  std::shared_ptr<const gpu::Device> device;
  gpu::ModuleTable modules;
  gpu::CurrentContext current;
};

LinearSpec plain(std::int64_t out, std::int64_t in) {
  LinearSpec linear;
  linear.out = out;
  linear.in = in;
  linear.activation = Activation::gelu_tanh;
  linear.bias = true;
  return linear;
}
LinearSpec gated(std::int64_t out, std::int64_t in, bool gate_first) {
  LinearSpec linear = plain(out, in);
  linear.gated = true;
  linear.gate_first = gate_first;
  return linear;
}

TEST_F(GpuLaunchTest, PersistentKernelInClusters) {
  // Blocks of 128 x 256, pairs along rows: 8192 / 256 = 32 by 3072 / 256 = 12 clusters of work, 60 resident.
  const sm90::GemmTile tile{2, 1, 256, 3, 2, 1, 1, true, 0};
  const test::Launch& l = launch(plain(3072, 768), tile, 8192, gpu::Start::on_weights);
  EXPECT_EQ(l.grid, (std::array<std::uint32_t, 3>{120, 1, 1}));
  EXPECT_EQ(l.block, (std::array<std::uint32_t, 3>{384, 1, 1}));
  EXPECT_EQ(l.cluster, 2U);
  EXPECT_TRUE(l.dependent);
  EXPECT_EQ(l.stream, stream);
  // Ring 3 (128 + 256) 128, tile 128 x 256 x 2, biases 2 x 4 (256 + 16), barriers 8 (6 + 4 + 5).
  EXPECT_EQ(l.shared_bytes, 147456U + 65536 + 2176 + 120);
  const auto a = l.as<GemmArguments>();
  EXPECT_EQ(view(a.x), (MapView{address(FakeGpu::memory(x)), bf16, 2, 3, {768, 8192}, {8192}, {64, 128}}));
  EXPECT_EQ(view(a.w), (MapView{address(FakeGpu::memory(up)), bf16, 2, 3, {768, 3072}, {1536}, {64, 128}}));
  EXPECT_EQ(view(a.y), (MapView{address(FakeGpu::memory(y)), bf16, 2, 3, {3072, 8192}, {6144}, {64, 16}}));
  EXPECT_EQ(view(a.y_tail), view(a.y));
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(up_bias));
  EXPECT_EQ(a.epilogue.y, FakeGpu::memory(y));
  EXPECT_EQ(a.epilogue.y_stride, 3072);
  EXPECT_EQ(a.tokens, 8192);
  EXPECT_GE(a.group_rows, 1);
  EXPECT_EQ(a.early_weights, 2);
}

TEST_F(GpuLaunchTest, FewerTilesThanTheDeviceHolds) {
  // 300 tokens: 3 row tiles of 128; 512 / 128 = 4 column tiles.
  const test::Launch& l = launch(plain(512, 768), sm90::GemmTile{2, 1, 128, 4, 1, 1, 1, false, 0}, 300);
  EXPECT_EQ(l.grid[0], 12U);
  EXPECT_EQ(l.cluster, 0U);
  EXPECT_FALSE(l.dependent);
  // The kernel before need not be this MLP's: nothing is read ahead of it.
  EXPECT_EQ(l.as<GemmArguments>().early_weights, 0);
}

TEST_F(GpuLaunchTest, OneBlockAMultiprocessorWithoutClusters) {
  EXPECT_EQ(launch(plain(3072, 768), sm90::GemmTile{2, 1, 128, 4, 1, 1, 1, false, 0}, 100000).grid[0], 132U);
}

TEST_F(GpuLaunchTest, SplitTilesAreNotPersistent) {
  // 1024 tokens: 8 row tiles; 768 / 112 rounded up: 7 column tiles; 4 splits each. All of them at once.
  fake.resident_clusters = 3;
  const test::Launch& l = launch(plain(768, 8960), sm90::GemmTile{2, 1, 112, 4, 1, 1, 4, false, 0}, 1024);
  EXPECT_EQ(l.grid[0], 8U * 7 * 4);
  EXPECT_EQ(l.cluster, 4U);
}

TEST_F(GpuLaunchTest, GatedWeightsInterleaveAndTheTailIsNarrow) {
  // 80 output columns of 160: one whole unit of 64 and a tail of 16.
  const sm90::GemmTile tile{2, 2, 160, 3, 1, 2, 1, false, 0};
  const test::Launch& l = launch(gated(3072, 768, false), tile, 8192);
  const auto a = l.as<GemmArguments>();
  const std::uint64_t distance = gate - up;
  // up lies first; rows in turns of eight: 3072 / 8 = 384 groups, 160 / 16 = 10 in a box.
  EXPECT_EQ(view(a.w), (MapView{address(FakeGpu::memory(up)),
                                bf16,
                                4,
                                3,
                                {768, 8, 2, 384},
                                {1536, distance, 12288},
                                {64, 8, 2, 10}}));
  EXPECT_EQ(view(a.x).box, (std::array<std::uint32_t, 5>{64, 128}));
  EXPECT_EQ(view(a.y_tail).box, (std::array<std::uint32_t, 5>{16, 16}));
  EXPECT_EQ(view(a.y_tail).swizzle, 1);
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(up_bias));
  EXPECT_EQ(a.epilogue.gate_bias, FakeGpu::memory(gate_bias));
  // 8192 / 256 by 3072 / 160 rounded up.
  EXPECT_EQ(l.grid[0], 2U * 60);
}

TEST_F(GpuLaunchTest, TailsByWidth) {
  // Swizzle of the tail: 32 bytes for 16 columns, 64 for 32, none for 48, which is no such width.
  const auto tail = [&](int cols) {
    const auto a =
        launch(plain(512, 768), sm90::GemmTile{2, 1, cols, 4, 1, 1, 1, false, 0}, 500).as<GemmArguments>();
    return std::pair{view(a.y_tail).box[0], view(a.y_tail).swizzle};
  };
  EXPECT_EQ(tail(80), (std::pair{16U, 1}));
  EXPECT_EQ(tail(96), (std::pair{32U, 2}));
  EXPECT_EQ(tail(112), (std::pair{48U, 0}));
  EXPECT_EQ(tail(128), (std::pair{64U, 3}));
}

TEST_F(GpuLaunchTest, FewTokens) {
  // 768 features in tiles of 64: 12; 77 tokens in tiles of 64: 2; 4 splits.
  up_stride = 3072;
  y_stride = 768;
  LinearSpec linear = plain(768, 3072);
  linear.dtype = DType::f16;
  const test::Launch& l = launch(linear, sm90::FewTile{1, 1, 64, 8, 1, 4}, 77, gpu::Start::on_weights);
  EXPECT_EQ(l.grid[0], 96U);
  EXPECT_EQ(l.block[0], 160U);
  EXPECT_EQ(l.cluster, 4U);
  const auto a = l.as<FewArguments>();
  // 48 blocks of K, 12 a split, fill a ring of 8 in pairs.
  EXPECT_EQ(view(a.w),
            (MapView{address(FakeGpu::memory(up)), f16, 3, 3, {64, 768, 48}, {6144, 128}, {64, 64, 2}}));
  EXPECT_EQ(view(a.x),
            (MapView{address(FakeGpu::memory(x)), f16, 3, 3, {64, 77, 48}, {8192, 128}, {64, 64, 2}}));
  EXPECT_EQ(a.epilogue.y, FakeGpu::memory(y));
  EXPECT_EQ(a.tokens, 77);
  EXPECT_GE(a.early_weights, 8);
}

TEST_F(GpuLaunchTest, FewTokensWhereKOrTheRingHasNoPairs) {
  up_stride = 4096;
  const MapView single{address(FakeGpu::memory(up)), bf16, 2, 3, {3080, 768}, {8192}, {64, 64}};
  EXPECT_EQ(view(launch(plain(768, 3080), sm90::FewTile{1, 1, 64, 8, 1, 1}, 77).as<FewArguments>().w), single);
  // 49 blocks of K; 48 in a ring of 7; 48 in eight splits of three pairs.
  EXPECT_EQ(view(launch(plain(768, 3136), sm90::FewTile{1, 1, 64, 8, 1, 1}, 77).as<FewArguments>().w).rank, 2);
  EXPECT_EQ(view(launch(plain(768, 3072), sm90::FewTile{1, 1, 64, 7, 1, 1}, 77).as<FewArguments>().w).rank, 2);
  EXPECT_EQ(view(launch(plain(768, 3072), sm90::FewTile{1, 1, 64, 8, 1, 8}, 77).as<FewArguments>().w).rank, 3);
}

TEST_F(GpuLaunchTest, FewTokensGatedInPairsOfBlocks) {
  gate = (std::size_t{1} << 37) - (1 << 24);
  const test::Launch& l = launch(gated(1024, 768, true), sm90::FewTile{1, 1, 128, 6, 1, 1}, 100);
  const auto a = l.as<FewArguments>();
  EXPECT_EQ(view(a.x), (MapView{address(FakeGpu::memory(x)), bf16, 3, 3, {64, 100, 12}, {8192, 128}, {64, 128, 2}}));
  EXPECT_EQ(view(a.w), (MapView{address(FakeGpu::memory(gate)),
                                bf16,
                                5,
                                3,
                                {64, 8, 2, 128, 12},
                                {1536, std::uint64_t{1} << 24, 12288, 128},
                                {64, 8, 2, 4, 2}}));
}

TEST_F(GpuLaunchTest, FewTokensGatedSharingX) {
  // A tile holds 32 outputs of each: 1024 / 32 = 32 tiles, in clusters of 4; 100 tokens in one tile of 128,
  // each block loads a quarter of it. The gate lies after up here, so its weights are not first.
  gate = (std::size_t{1} << 37) - (1 << 24);
  const test::Launch& l = launch(gated(1024, 768, true), sm90::FewTile{1, 1, 128, 6, 4, 1}, 100);
  EXPECT_EQ(l.grid[0], 32U);
  EXPECT_EQ(l.cluster, 4U);
  const auto a = l.as<FewArguments>();
  EXPECT_EQ(view(a.x).box, (std::array<std::uint32_t, 5>{64, 32}));
  EXPECT_EQ(view(a.w), (MapView{address(FakeGpu::memory(gate)),
                                bf16,
                                4,
                                3,
                                {768, 8, 2, 128},
                                {1536, std::uint64_t{1} << 24, 12288},
                                {64, 8, 2, 4}}));
}

TEST_F(GpuLaunchTest, EarlyIsSetUpAheadButReadsNothing) {
  const test::Launch& gemm = launch(plain(3072, 768), sm90::GemmTile{2, 1, 128, 4, 1, 1, 1, false, 0}, 8192,
                                    gpu::Start::early);
  EXPECT_TRUE(gemm.dependent);
  EXPECT_EQ(gemm.as<GemmArguments>().early_weights, 0);
  const test::Launch& few =
      launch(plain(3072, 768), sm90::FewTile{1, 1, 64, 8, 1, 1}, 77, gpu::Start::early);
  EXPECT_TRUE(few.dependent);
  EXPECT_EQ(few.as<FewArguments>().early_weights, 0);
  // A portable kernel would read its weights.
  EXPECT_FALSE(launch(plain(3072, 768), sm80::Tile{128, 128, 32, 4, 2, 2}, 300, gpu::Start::early).dependent);
}

TEST_F(GpuLaunchTest, PortableKernel) {
  LinearSpec linear = gated(77, 33, true);
  linear.aligned = false;
  up_stride = 35;
  // 300 tokens in tiles of 128: 3; a tile of 128 columns holds 64 outputs: 2.
  const test::Launch& l = launch(linear, sm80::Tile{128, 128, 32, 4, 2, 2}, 300, gpu::Start::on_weights);
  EXPECT_EQ(l.grid[0], 6U);
  EXPECT_EQ(l.block[0], 128U);
  EXPECT_EQ(l.cluster, 0U);
  EXPECT_TRUE(l.dependent);
  const auto a = l.as<LinearArgs>();
  EXPECT_EQ(a.x, FakeGpu::memory(x));
  EXPECT_EQ(a.x_stride, 4096);
  EXPECT_EQ(a.up, FakeGpu::memory(up));
  EXPECT_EQ(a.gate, FakeGpu::memory(gate));
  EXPECT_EQ(a.up_stride, 35);
  EXPECT_EQ(a.gate_stride, 35);
  EXPECT_EQ(a.tokens, 300);
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(up_bias));
  EXPECT_EQ(a.epilogue.gate_bias, FakeGpu::memory(gate_bias));
  EXPECT_EQ(a.epilogue.y, FakeGpu::memory(y));
}

TEST_F(GpuLaunchTest, TooManyBlocks) {
  const LinearSpec linear = plain(3072, 768);
  const sm80::Tile tile{16, 64, 64, 4, 1, 4};
  const auto module = modules.get(linear, tile).value();
  const auto prepared =
      gpu::PreparedLinear::make(device, module, linear, tile, {{FakeGpu::memory(up), 768, nullptr}, {}})
          .value();
  // 48 column tiles times 2^26 row tiles.
  const auto done = prepared.launch({FakeGpu::memory(x), 768}, {FakeGpu::memory(y), 3072},
                                    std::int64_t{1} << 30, stream, gpu::Start::ordinary);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unsupported);
}

TEST_F(GpuLaunchTest, NoClusterFits) {
  fake.resident_clusters = 0;
  const auto module = modules.get(plain(3072, 768), sm90::GemmTile{2, 1, 256, 3, 2, 1, 1, true, 0});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::unsupported);
}

TEST_F(GpuLaunchTest, OneModuleForOneText) {
  const sm90::GemmTile tile{2, 1, 128, 4, 1, 1, 1, false, 0};
  const auto one = modules.get(plain(512, 768), tile).value(),
             two = modules.get(plain(512, 768), tile).value();
  EXPECT_EQ(one, two);
  EXPECT_NE(one, modules.get(plain(512, 776), tile).value());
  EXPECT_EQ(fake.loads(), 2);
}

TEST(GpuTensorMaps, WeightsThatFit) {
  const auto at = [](std::size_t offset) { return FakeGpu::memory(offset); };
  const auto fits = [](const void* up, std::int64_t up_stride, const void* gate, std::int64_t gate_stride) {
    return gpu::fit_tensor_maps({{up, up_stride, nullptr}, {gate, gate_stride, nullptr}}, DType::bf16,
                                gate != nullptr);
  };
  EXPECT_TRUE(fits(at(16), 64, nullptr, 0));
  EXPECT_FALSE(fits(at(8), 64, nullptr, 0));
  EXPECT_FALSE(fits(at(16), 68, nullptr, 0));
  EXPECT_TRUE(fits(at(16), 64, at(1 << 20), 64));
  EXPECT_TRUE(fits(at(1 << 20), 64, at(16), 64));
  EXPECT_FALSE(fits(at(16), 64, at(1 << 20), 72));
  EXPECT_FALSE(fits(at(16), 64, at((1 << 20) + 8), 64));
  EXPECT_FALSE(fits(at(16), 64, at(16), 64));
  EXPECT_FALSE(fits(at(16), 64, at(16 + (std::size_t{1} << 40)), 64));
  EXPECT_TRUE(fits(at(16), 64, at(std::size_t{1} << 40), 64));
}

}  // namespace
}  // namespace ingot
