// SPDX-License-Identifier: Apache-2.0
//
// What reaches the driver for the kernel of a whole narrow MLP. Numbers are worked out by hand from the
// kernel's own description of its maps and memory (kernels/sm90/narrow.cuh).
#include <gtest/gtest.h>

#include "arch/sm90_narrow.h"
#include "fake/gpu_driver.h"

namespace ingot {
namespace {

using gpu::NarrowArguments;
using sm90::NarrowTile;
using test::FakeGpu;
using test::MapView;
using test::view;

constexpr int f16 = 6, bf16 = 9, swizzle_128 = 3;

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

class GpuLaunchNarrow : public testing::Test {
 protected:
  GpuLaunchNarrow()
      : device(gpu::Device::open(fake.driver(), 0).value()),
        modules(device, std::make_shared<test::FakeStore>()),
        current(*device) {}

  /// x is `x_stride` elements a row, y 400.
  const test::Launch& launch(const MlpSpec& mlp, const NarrowTile& tile, std::int64_t tokens) {
    gpu::MlpKernelParts parts;
    parts.device = device;
    parts.module = modules.get(mlp, tile).value();
    parts.mlp = mlp;
    parts.first = {{FakeGpu::memory(up), up_stride, FakeGpu::memory(2)},
                   {FakeGpu::memory(gate), up_stride, FakeGpu::memory(6)}};
    parts.down = {FakeGpu::memory(down), down_stride, FakeGpu::memory(10)};
    const auto kernel = gpu::prepare_kernel(std::move(parts), tile).value();
    const auto done = kernel->launch({FakeGpu::memory(x), x_stride}, {FakeGpu::memory(y), 400}, nullptr,
                                     tokens, stream, gpu::Start::ordinary);
    EXPECT_TRUE(done) << done.error().message;
    return fake.launch(fake.launches() - 1);
  }

  std::size_t x = std::size_t{1} << 35, y = std::size_t{1} << 36, up = std::size_t{1} << 37,
              gate = (std::size_t{1} << 37) + (1 << 24), down = std::size_t{1} << 38;
  std::int64_t x_stride = 512, up_stride = 320, down_stride = 1280;
  gpu::CuStream stream = reinterpret_cast<gpu::CuStream>(0x1230);
  FakeGpu fake;
  std::shared_ptr<const gpu::Device> device;
  gpu::ModuleTable modules;
  gpu::CurrentContext current;
};

MlpSpec spec(std::int64_t dim, std::int64_t hidden, bool gated, bool gate_first) {
  MlpSpec mlp;
  mlp.dim = dim;
  mlp.hidden = hidden;
  mlp.activation = Activation::gelu_erf;
  mlp.gated = gated;
  mlp.gate_first = gate_first;
  mlp.up_bias = mlp.down_bias = true;
  return mlp;
}

TEST_F(GpuLaunchNarrow, GatedInWholeBlocksOfDim) {
  const test::Launch& l = launch(spec(320, 1280, true, false), NarrowTile{2, 64, 1, 2}, 129024);
  // More tiles of 128 tokens than the device holds blocks.
  EXPECT_EQ(l.grid, (std::array<std::uint32_t, 3>{132, 1, 1}));
  EXPECT_EQ(l.block, (std::array<std::uint32_t, 3>{256, 1, 1}));
  EXPECT_EQ(l.cluster, 0U);
  EXPECT_FALSE(l.dependent);
  EXPECT_EQ(l.stream, stream);
  // x 128 x 320, a chunk of W1 128 x 320 and of W2 320 x 64 in 16 bits; biases in 32; barriers of three parts
  // and of two warpgroups' x, filled and read.
  EXPECT_EQ(l.shared_bytes, 81920U + 81920 + 40960 + 4 * (2 * 1280 + 320) + 8 * (2 * 3 + 4));
  const auto a = l.as<NarrowArguments>();
  EXPECT_EQ(
      view(a.x),
      (MapView{
          address(FakeGpu::memory(x)), bf16, 3, swizzle_128, {64, 129024, 5}, {1024, 128}, {64, 64, 5}}));
  // Two and three of five blocks of dim; up lies first.
  const std::uint64_t distance = gate - up;
  MapView part{address(FakeGpu::memory(up)), bf16,          4, swizzle_128, {64, 1280, 2, 5},
               {640, distance, 128},         {64, 64, 2, 2}};
  EXPECT_EQ(view(a.up_first), part);
  part.box[3] = 3;
  EXPECT_EQ(view(a.up_rest), part);
  EXPECT_EQ(view(a.down), (MapView{address(FakeGpu::memory(down)),
                                   bf16,
                                   5,
                                   swizzle_128,
                                   {1280, 2, 4, 4, 10},
                                   {2560, 8 * 2560, 2 * 2560, 32 * 2560},
                                   {64, 2, 4, 4, 10}}));
  EXPECT_EQ(view(a.down_tail), view(a.down));
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(2));
  EXPECT_EQ(a.epilogue.gate_bias, FakeGpu::memory(6));
  EXPECT_EQ(a.epilogue.down_bias, FakeGpu::memory(10));
  EXPECT_EQ(a.epilogue.y, FakeGpu::memory(y));
  EXPECT_EQ(a.epilogue.y_stride, 400);
  EXPECT_EQ(a.tokens, 129024);
  EXPECT_EQ(a.early_weights, 0);
}

TEST_F(GpuLaunchNarrow, TailsOfDimAreFilledUp) {
  // 72 = 64 + 8 columns of x and W1, 2 x 32 + 8 rows of W2. 300 tokens: two tiles of 192.
  up_stride = 72;
  down_stride = 200;
  MlpSpec mlp = spec(72, 200, false, true);
  mlp.dtype = DType::f16;
  const test::Launch& l = launch(mlp, NarrowTile{3, 64, 2, 0}, 300);
  EXPECT_EQ(l.grid[0], 2U);
  EXPECT_EQ(l.block[0], 384U);
  const auto a = l.as<NarrowArguments>();
  EXPECT_EQ(
      view(a.x),
      (MapView{address(FakeGpu::memory(x)), f16, 3, swizzle_128, {72, 300, 1}, {1024, 128}, {64, 64, 1}}));
  // One matrix: its distance to the next is never gone.
  EXPECT_EQ(view(a.up_first), (MapView{address(FakeGpu::memory(up)),
                                       f16,
                                       4,
                                       swizzle_128,
                                       {72, 200, 1, 1},
                                       {144, 144, 128},
                                       {64, 64, 1, 1}}));
  EXPECT_EQ(view(a.up_rest), view(a.up_first));
  EXPECT_EQ(view(a.down).box, (std::array<std::uint32_t, 5>{64, 2, 4, 4, 2}));
  EXPECT_EQ(view(a.down_tail),
            (MapView{address(FakeGpu::memory(down)), f16, 2, swizzle_128, {200, 72}, {400}, {64, 8}}));
}

TEST_F(GpuLaunchNarrow, TheMatrixThatLiesFirstComesFirst) {
  gate = (std::size_t{1} << 37) - (1 << 24);
  const auto a = launch(spec(320, 1280, true, true), NarrowTile{2, 64, 1, 2}, 1).as<NarrowArguments>();
  EXPECT_EQ(view(a.up_first).address, address(FakeGpu::memory(gate)));
  EXPECT_EQ(view(a.up_first).strides[1], std::uint64_t{1} << 24);
  EXPECT_EQ(a.epilogue.up_bias, FakeGpu::memory(2));
  EXPECT_EQ(a.epilogue.gate_bias, FakeGpu::memory(6));
}

TEST(NarrowTiles, EveryWidthHasOneAndWiderOnesSayWhy) {
  const auto any = [](const arch::sm90::MlpShape& m) {
    bool found = false;
    for (const NarrowTile& t : arch::sm90::narrow_frames) found = found || arch::sm90::reject(t, m).empty();
    return found;
  };
  for (std::int64_t dim = 64; dim <= 320; dim += 8) {
    for (const bool gated : {false, true}) {
      arch::sm90::MlpShape m{
          .dim = dim, .hidden = 4 * dim, .gated = gated, .up_bias = true, .down_bias = true};
      EXPECT_TRUE(any(m)) << dim << gated;
      m.hidden = 8;
      EXPECT_TRUE(any(m)) << dim << gated;
    }
  }
  const NarrowTile tile{2, 64, 1, 0};
  arch::sm90::MlpShape m{.dim = 328, .hidden = 1280, .gated = true, .up_bias = true, .down_bias = true};
  EXPECT_EQ(arch::sm90::reject(tile, m), "dim is at most 320");
  m.dim = 56;
  EXPECT_EQ(arch::sm90::reject(tile, m), "dim is at least 64");
  // 232448 - 204800 - 1280 - 80 bytes for biases of 8 bytes a hidden column, in chunks of 64.
  m.dim = 320;
  m.hidden = 3264;
  EXPECT_EQ(arch::sm90::reject(tile, m), "");
  m.hidden = 3288;
  EXPECT_EQ(arch::sm90::reject(tile, m), "shared memory");
  m.up_bias = false;
  EXPECT_EQ(arch::sm90::reject(tile, m), "");
}

TEST(NarrowTiles, ForecastsGrowWithTokensAndKeepAbove) {
  for (const NarrowTile& t : arch::sm90::narrow_frames) {
    const arch::sm90::MlpShape m{
        .dim = 128, .hidden = 512, .up_bias = true, .activated = true, .rounds = true};
    if (!arch::sm90::reject(t, m).empty()) continue;
    double before = 0;
    for (const std::int64_t tokens : {1, 64, 128, 129, 5000, 131072, 131073}) {
      const double us = arch::sm90::forecast_us(t, m, tokens, {});
      EXPECT_GE(us, before);
      EXPECT_GE(us, 1e6 * 2 * arch::sm90::multiply_adds(m, tokens) / 989e12);
      before = us;
    }
  }
}

}  // namespace
}  // namespace ingot
