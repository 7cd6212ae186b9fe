// SPDX-License-Identifier: Apache-2.0
//
// run() allocates nothing. This program is linked so that every allocation Ingot's own code asks for comes
// through the counters below; the GEMM library, a shared one, keeps its own buffers out of sight and out of
// the claim.
#include <atomic>
#include <cstdlib>
#include <new>

#include "fake/gpu_mlp.h"
#include "numeric/mlp_case.h"
#include "plan/choose.h"
#include "plan/tuning.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}

extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __real_realloc(void* old, std::size_t bytes);
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
void* __real__Znwm(std::size_t bytes);
void* __real__Znam(std::size_t bytes);

void* __wrap_malloc(std::size_t bytes) {
  allocations.fetch_add(1);
  return __real_malloc(bytes);
}
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  allocations.fetch_add(1);
  return __real_calloc(count, bytes);
}
void* __wrap_realloc(void* old, std::size_t bytes) {
  allocations.fetch_add(1);
  return __real_realloc(old, bytes);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1);
  return __real_aligned_alloc(alignment, bytes);
}
void* __wrap__Znwm(std::size_t bytes) {
  allocations.fetch_add(1);
  return __real__Znwm(bytes);
}
void* __wrap__Znam(std::size_t bytes) {
  allocations.fetch_add(1);
  return __real__Znam(bytes);
}
}

namespace ingot {
namespace {

TEST(Allocations, AreCounted) {
  const std::int64_t before = allocations.load();
  const auto made = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocations.load() - before, 2);
  const auto buffer = cpu::Buffer<float>::allocate(10);
  EXPECT_EQ(allocations.load() - before, 3);
  // Code of the library, compiled apart, is counted too.
  test::MlpCase c({8, 8, Activation::relu, false, true, DType::f32}, 1);
  const Engine engine = test::open_engine(1);
  const std::int64_t opened = allocations.load();
  EXPECT_TRUE(engine.prepare(c.mlp, c.weights(GateLayout::separate)));
  EXPECT_GT(allocations.load(), opened);
}

TEST(Allocations, RunMakesNone) {
  const Engine engine = test::open_engine(3);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const GateLayout layout : {GateLayout::separate, GateLayout::packed_value_first}) {
      test::MlpCase c({48, 112, Activation::gelu_erf, true, true, dtype}, 700);
      for (std::size_t r = 0; r <= rung_count; ++r) {  // the last: the planner's own choice
        PrepareOptions options;
        if (is_compiled_rung(static_cast<Rung>(r))) continue;  // no CPU has it
        if (r < rung_count) options.rung = static_cast<Rung>(r);
        const PreparedMlp prepared = engine.prepare(c.mlp, c.weights(layout), options).value();
        for (const std::int64_t tokens : {1, 5, 64, 700}) {
          const std::size_t bytes = prepared.workspace_bytes(tokens);
          const auto workspace = cpu::Buffer<char>::allocate(bytes);
          const auto y = cpu::Buffer<char>::allocate(static_cast<std::size_t>(tokens * 48) * size_of(dtype));
          const RunArguments arguments{.tokens = tokens,
                                       .x = c.x_data(),
                                       .x_row_stride = c.x_stride,
                                       .y = y.data(),
                                       .y_row_stride = 48,
                                       .workspace = workspace.data(),
                                       .workspace_bytes = bytes,
                                       .stream = {}};
          // The GEMM library generates its code at first use, with templates it shares with this program.
          const bool warm = prepared.run(arguments).ok();
          const std::int64_t before = allocations.load();
          const bool first = prepared.run(arguments).ok();
          const bool second = prepared.run(arguments).ok();
          EXPECT_EQ(allocations.load(), before) << to_string(c.mlp) << " rung " << r << " tokens " << tokens;
          EXPECT_TRUE(warm && first && second);
        }
      }
    }
  }
}

TEST(Allocations, RunOnAGpuMakesNone) {
  test::FakeGpu fake;
  const auto gpu = test::open_gpu(fake, std::make_shared<test::FakeStore>());
  for (const std::int64_t hidden : {3072, 3077}) {  // the kernels of this chip, and the portable ones
    const test::GpuMlp mlp(768, hidden, true);
    const PreparedMlp prepared(gpu::prepare(gpu, mlp.mlp, mlp.weights, {}).value());
    for (const std::int64_t tokens : {1, 77, 8192}) {
      ASSERT_TRUE(prepared.warm(tokens));
      RunArguments run = mlp.run(tokens, *gpu::prepare(gpu, mlp.mlp, mlp.weights, {}).value());
      const std::int64_t before = allocations.load();
      const bool first = prepared.run(run).ok();
      const bool second = prepared.run(run).ok();
      EXPECT_EQ(allocations.load(), before) << hidden << " tokens " << tokens;
      EXPECT_TRUE(first && second);
    }
  }
}

TEST(Allocations, ChoosingForAGpuMakesNone) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  const Mlp mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  TuningTable tuned("NVIDIA H200", "");
  tuned.add({second_linear(mlp, Numerics::match), 256, parse_tile("g2x1x128s6c11k4").value(), 20});
  double us = 0;
  const std::int64_t before = allocations.load();
  for (const std::int64_t tokens : {1, 256, 32760}) {
    us += choose(mlp, tokens, h200, {}, &tuned).chosen().forecast_us;
    us += choose_kernels(mlp, token_class(tokens).representative, h200.gpu, {}).first_us;
  }
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(us, 0);
}

}  // namespace
}  // namespace ingot
