// SPDX-License-Identifier: Apache-2.0
//
// Prepared MLPs on a GPU that is not there: which kernels run on what, and what is refused.
#include <gtest/gtest.h>

#include "fake/gpu_mlp.h"

namespace ingot {
namespace {

using gpu::FewArguments;
using gpu::GemmArguments;
using test::FakeGpu;
using test::GpuMlp;
using test::view;

const PrepareOptions two_kernels{.numerics = {}, .rung = Rung::two_kernel};

class GpuExecutorTest : public testing::Test {
 protected:
  /// As two launches; one_kernel_executor_test.cpp has the others.
  std::shared_ptr<const Executor> prepare(const GpuMlp& mlp) {
    return gpu::prepare(gpu, mlp.mlp, mlp.weights, two_kernels).value();
  }
  const test::Launch& last(int before = 0) { return fake.launch(fake.launches() - 1 - before); }
  static std::string text(const test::Launch& launch) { return *launch.text; }

  FakeGpu fake;
  std::shared_ptr<test::FakeStore> store = std::make_shared<test::FakeStore>();
  std::shared_ptr<const gpu::Gpu> gpu = test::open_gpu(fake, store);
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(GpuExecutorTest, TwoLaunchesTheSecondReadsItsWeightsEarly) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  RunArguments run = mlp.run(8192, *executor);
  run.stream.handle = reinterpret_cast<void*>(0x99);
  ASSERT_TRUE(executor->run(run));
  ASSERT_EQ(fake.launches(), 2);
  const test::Launch &first = fake.launch(0), &second = fake.launch(1);
  // Both may be set up before what is before them has ended, but weights may be written just before an MLP.
  EXPECT_TRUE(first.dependent);
  EXPECT_TRUE(second.dependent);
  EXPECT_EQ(first.as<GemmArguments>().early_weights, 0);
  EXPECT_GT(second.as<GemmArguments>().early_weights, 0);
  EXPECT_EQ(first.stream, run.stream.handle);
  EXPECT_EQ(second.stream, run.stream.handle);
  EXPECT_TRUE(has(text(first), "sm90/gemm.cuh"));
  const auto a = first.as<GemmArguments>(), b = second.as<GemmArguments>();
  EXPECT_EQ(view(a.x).address, reinterpret_cast<std::uintptr_t>(run.x));
  EXPECT_EQ(a.epilogue.y, run.workspace);
  EXPECT_EQ(a.epilogue.y_stride, 3072);
  EXPECT_EQ(view(b.x).address, reinterpret_cast<std::uintptr_t>(run.workspace));
  EXPECT_EQ(b.epilogue.y, run.y);
  EXPECT_EQ(b.epilogue.y_stride, 768);
  EXPECT_EQ(a.epilogue.up_bias, mlp.weights.up.bias);
  EXPECT_EQ(b.epilogue.up_bias, mlp.weights.down.bias);
  EXPECT_EQ(view(b.w).address, reinterpret_cast<std::uintptr_t>(mlp.weights.down.weight));
}

TEST_F(GpuExecutorTest, FewTokensTakeTheirOwnKernel) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  ASSERT_TRUE(executor->run(mlp.run(16, *executor)));
  EXPECT_TRUE(has(text(last(1)), "sm90/few.cuh"));
  EXPECT_EQ(last(1).as<FewArguments>().tokens, 16);
}

TEST_F(GpuExecutorTest, CompilesEachKernelOnce) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
  EXPECT_EQ(store->asked, 2);
  // Another number of tokens of the class, and another MLP of the same shape: nothing new.
  ASSERT_TRUE(executor->run(mlp.run(8191, *executor)));
  EXPECT_EQ(store->asked, 2);
  ASSERT_TRUE(prepare(mlp)->run(mlp.run(8192, *executor)));
  EXPECT_EQ(store->asked, 2);
  EXPECT_EQ(fake.loads(), 2);
  EXPECT_EQ(fake.launches(), 10);
}

TEST_F(GpuExecutorTest, NoTokens) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  EXPECT_TRUE(executor->run({}));
  EXPECT_TRUE(executor->warm(0));
  EXPECT_EQ(fake.launches(), 0);
  EXPECT_EQ(store->asked, 0);
  EXPECT_EQ(executor->workspace_bytes(0), 0U);
  RunArguments negative;
  negative.tokens = -1;
  EXPECT_FALSE(executor->run(negative));
  EXPECT_FALSE(executor->warm(-1));
}

TEST_F(GpuExecutorTest, WorkspaceHoldsTheHiddenTensor) {
  const GpuMlp mlp(64, 100);
  const auto executor = prepare(mlp);
  EXPECT_EQ(executor->workspace_bytes(1), 256U);  // 200 bytes
  EXPECT_EQ(executor->workspace_bytes(128), 25600U);
  EXPECT_EQ(executor->workspace_bytes(std::int64_t{1} << 33), std::size_t{200} << 33U);
  std::size_t before = 0;
  for (std::int64_t tokens = 1; tokens < 5000; tokens += 7) {
    EXPECT_GE(executor->workspace_bytes(tokens), before);
    before = executor->workspace_bytes(tokens);
  }
}

TEST_F(GpuExecutorTest, NotWhileCapturing) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  fake.capturing = 1;
  const auto refused = executor->run(mlp.run(8192, *executor));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(has(refused.error().message, "warm(8192)")) << refused.error().message;
  EXPECT_EQ(store->asked, 0);
  EXPECT_EQ(fake.launches(), 0);
  ASSERT_TRUE(executor->warm(8192));
  EXPECT_EQ(fake.launches(), 0);
  EXPECT_TRUE(executor->run(mlp.run(8192, *executor)));
  EXPECT_EQ(store->asked, 2);
}

TEST_F(GpuExecutorTest, PointersOfTheHostOrAnotherDevice) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  alignas(64) std::array<char, 64> host{};
  const auto refused = [&](RunArguments run) {
    const auto done = executor->run(run);
    EXPECT_FALSE(done);
    if (done) return std::string();
    EXPECT_EQ(done.error().code, ErrorCode::invalid_argument);
    return done.error().message;
  };
  RunArguments run = mlp.run(1, *executor);
  run.x = host.data();
  EXPECT_EQ(refused(run), "x: host memory, give memory of device 0");
  run = mlp.run(1, *executor);
  run.y = host.data();
  EXPECT_EQ(refused(run), "y: host memory, give memory of device 0");
  run = mlp.run(1, *executor);
  run.workspace = FakeGpu::memory(0, 1);
  EXPECT_EQ(refused(run), "workspace: memory of device 1, give memory of device 0");
  EXPECT_EQ(fake.launches(), 0);

  for (auto [weight, name] : {std::pair{&Weights::up, "up"}, {&Weights::down, "down"}}) {
    Weights weights = mlp.weights;
    (weights.*weight).weight = host.data();
    const auto bad = gpu::prepare(gpu, mlp.mlp, weights, {});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().message, std::string(name) + " weight: host memory, give memory of device 0");
    weights = mlp.weights;
    (weights.*weight).bias = host.data();
    const auto bad_bias = gpu::prepare(gpu, mlp.mlp, weights, {});
    ASSERT_FALSE(bad_bias);
    EXPECT_EQ(bad_bias.error().message, std::string(name) + " bias: host memory, give memory of device 0");
  }
}

TEST_F(GpuExecutorTest, MisalignedTensorsTakeThePortableKernels) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  const auto portable = [&](RunArguments run) {
    const auto done = executor->run(run);
    EXPECT_TRUE(done) << done.error().message;
    return has(text(last()), "sm80/linear.cuh") && has(text(last(1)), "sm80/linear.cuh");
  };
  EXPECT_FALSE(portable(mlp.run(300, *executor)));
  RunArguments run = mlp.run(300, *executor);
  run.x = static_cast<const char*>(run.x) + 2;
  EXPECT_TRUE(portable(run));
  EXPECT_EQ(last(1).as<LinearArgs>().x, run.x);
  run = mlp.run(300, *executor);
  run.y = static_cast<char*>(run.y) + 8;
  EXPECT_TRUE(portable(run));
  run = mlp.run(300, *executor);
  run.x_row_stride = 771;
  EXPECT_TRUE(portable(run));
  EXPECT_EQ(last(1).as<LinearArgs>().x_stride, 771);
  run = mlp.run(300, *executor);
  run.y_row_stride = 772;
  EXPECT_TRUE(portable(run));
  // 16-byte strides are as good as none.
  run = mlp.run(300, *executor);
  run.x_row_stride = 776;
  run.y_row_stride = 784;
  EXPECT_FALSE(portable(run));

  Weights weights = mlp.weights;
  weights.down.weight = static_cast<const char*>(weights.down.weight) + 2;
  ASSERT_TRUE(gpu::prepare(gpu, mlp.mlp, weights, two_kernels).value()->run(mlp.run(300, *executor)));
  EXPECT_TRUE(has(text(last()), "sm80/linear.cuh"));
}

TEST_F(GpuExecutorTest, OddWidthsAndFloatTakeThePortableKernels) {
  const GpuMlp odd(77, 33);
  const auto executor = prepare(odd);
  ASSERT_TRUE(executor->run(odd.run(5, *executor)));
  EXPECT_TRUE(has(text(last(1)), "sm80/linear.cuh"));
  const GpuMlp wide(64, 128, false, DType::f32);
  const auto f32 = prepare(wide);
  ASSERT_TRUE(f32->run(wide.run(5, *f32)));
  EXPECT_TRUE(has(text(last(1)), "f32/linear.cuh"));
}

TEST_F(GpuExecutorTest, GateAndUpInEitherOrder) {
  for (const bool gate_first : {true, false}) {
    GpuMlp mlp(768, 3072, true);
    if (gate_first) std::swap(mlp.weights.up, mlp.weights.gate);  // the fake's gate lies behind up
    const auto executor = prepare(mlp);
    ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
    const auto a = last(1).as<GemmArguments>();
    const void* const lower = gate_first ? mlp.weights.gate.weight : mlp.weights.up.weight;
    EXPECT_EQ(view(a.w).address, reinterpret_cast<std::uintptr_t>(lower));
    EXPECT_EQ(view(a.w).strides[1], std::uint64_t{GpuMlp::apart});
    EXPECT_EQ(a.epilogue.up_bias, mlp.weights.up.bias);
    EXPECT_EQ(a.epilogue.gate_bias, mlp.weights.gate.bias);
    // Out, in, gated, gate first, bias.
    EXPECT_TRUE(
        has(text(last(1)), gate_first ? "3072, 768, true, true, true" : "3072, 768, true, false, true"))
        << text(last(1));
  }
}

TEST_F(GpuExecutorTest, PackedWeights) {
  for (const GateLayout layout : {GateLayout::packed_value_first, GateLayout::packed_gate_first}) {
    GpuMlp mlp(768, 3072, true);
    mlp.weights.gate = {};
    mlp.weights.layout = layout;
    const auto executor = prepare(mlp);
    ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
    const auto a = last(1).as<GemmArguments>();
    EXPECT_EQ(view(a.w).address, reinterpret_cast<std::uintptr_t>(mlp.weights.up.weight));
    EXPECT_EQ(view(a.w).strides[1], std::uint64_t{3072} * 768 * 2);
    const auto* const bias = static_cast<const char*>(mlp.weights.up.bias);
    const bool gate_first = layout == GateLayout::packed_gate_first;
    EXPECT_EQ(a.epilogue.gate_bias, bias + (gate_first ? 0 : 3072 * 2));
    EXPECT_EQ(a.epilogue.up_bias, bias + (gate_first ? 3072 * 2 : 0));
  }
}

TEST_F(GpuExecutorTest, GateAndUpOfDifferentStrides) {
  GpuMlp mlp(768, 3072, true);
  mlp.weights.gate.row_stride = 776;
  const auto executor = prepare(mlp);
  ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
  EXPECT_TRUE(has(text(last(1)), "sm80/linear.cuh"));
  EXPECT_EQ(last(1).as<LinearArgs>().gate_stride, 776);
  EXPECT_EQ(last(1).as<LinearArgs>().up_stride, 768);
}

TEST_F(GpuExecutorTest, LinearsWithoutBias) {
  GpuMlp mlp(768, 3072);
  mlp.weights.down.bias = nullptr;
  const auto executor = prepare(mlp);
  ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
  EXPECT_TRUE(has(text(last(1)), "3072, 768, false, true, true")) << text(last(1));
  EXPECT_TRUE(has(text(last()), "768, 3072, false, true, false")) << text(last());
  EXPECT_EQ(executor->owned_bytes(), 0U);

  // One of gate and up alone: zeros for the other.
  GpuMlp half(768, 3072, true);
  half.weights.gate.bias = nullptr;
  const int alive = fake.alive();
  {
    const auto one = prepare(half);
    EXPECT_EQ(one->owned_bytes(), 6144U);
    ASSERT_TRUE(one->run(half.run(8192, *one)));
    const auto a = last(1).as<GemmArguments>();
    EXPECT_EQ(a.epilogue.up_bias, half.weights.up.bias);
    EXPECT_NE(a.epilogue.gate_bias, nullptr);
  }
  EXPECT_LE(fake.alive(), alive + 2);  // kernels stay loaded
}

TEST_F(GpuExecutorTest, PlansTwoKernels) {
  const GpuMlp mlp(768, 3072);
  const auto plan = prepare(mlp)->plan(8192);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->chosen.rung, Rung::two_kernel);
  EXPECT_EQ(plan->chosen.launches, 2);
  EXPECT_EQ(plan->device.name, "Fake GPU");
  PrepareOptions one_pass;
  one_pass.rung = Rung::one_pass;
  const auto other = gpu::prepare(gpu, mlp.mlp, mlp.weights, one_pass);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
}

TEST_F(GpuExecutorTest, CompilerErrorsAreHandedOnAndNotKept) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  store->fails = true;
  const auto failed = executor->run(mlp.run(8192, *executor));
  ASSERT_FALSE(failed);
  EXPECT_TRUE(has(failed.error().message, "fake compiler refuses"));
  store->fails = false;
  EXPECT_TRUE(executor->run(mlp.run(8192, *executor)));
}

TEST_F(GpuExecutorTest, AKernelThatFailedIsReportedByTheNextRun) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp);
  ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
  fake.fail_with = 700;
  fake.fail_at = 1;
  const auto failed = executor->run(mlp.run(8192, *executor));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::device);
  EXPECT_TRUE(has(failed.error().message, "ILLEGAL_ADDRESS"));
  EXPECT_TRUE(has(failed.error().message, "results are lost"));
}

TEST_F(GpuExecutorTest, LeavesTheCallersContext) {
  const GpuMlp mlp(768, 3072);
  FakeGpu::set_current(FakeGpu::context_of(1));
  const auto executor = prepare(mlp);
  EXPECT_EQ(FakeGpu::current(), FakeGpu::context_of(1));
  ASSERT_TRUE(executor->run(mlp.run(8192, *executor)));
  EXPECT_EQ(FakeGpu::current(), FakeGpu::context_of(1));
  ASSERT_TRUE(executor->warm(5));
  EXPECT_EQ(FakeGpu::current(), FakeGpu::context_of(1));
  FakeGpu::set_current(nullptr);
}

TEST_F(GpuExecutorTest, AnotherDevicesKernels) {
  for (const auto& [major, minor, dependent] :
       {std::tuple{8, 0, false}, {8, 9, false}, {10, 0, true}, {12, 0, true}}) {
    FakeGpu other({.major = major, .minor = minor});
    const auto on = test::open_gpu(other, std::make_shared<test::FakeStore>());
    const GpuMlp mlp(768, 3072);
    const auto executor = gpu::prepare(on, mlp.mlp, mlp.weights, two_kernels).value();
    ASSERT_TRUE(executor->run(mlp.run(300, *executor)));
    EXPECT_TRUE(has(*other.launch(0).text, "sm80/linear.cuh"));
    EXPECT_FALSE(other.launch(0).dependent);
    EXPECT_EQ(other.launch(1).dependent, dependent);
  }
}

/// Everything from opening to running, with the n-th call of the driver failing; `left`: calls short of n.
Result<void> all(FakeGpu& fake, int& left) {
  left = 0;
  auto device = gpu::Device::open(fake.driver(), 0);
  if (!device) return device.error();
  auto gpu = gpu::open(*device, std::make_shared<test::FakeStore>());
  if (!gpu) return gpu.error();
  GpuMlp mlp(768, 3072, true);
  mlp.weights.gate.bias = nullptr;
  auto executor = gpu::prepare(*gpu, mlp.mlp, mlp.weights, two_kernels);
  if (!executor) return executor.error();
  auto done = (*executor)->run(mlp.run(8192, **executor));
  left = fake.fail_at.exchange(0);  // giving back is not counted: nobody could be told
  return done;
}

TEST(GpuFailures, EveryCallOfTheDriverThatFailsIsAnErrorAndLeaksNothing) {
  FakeGpu fake;
  int failures = 0;
  for (int call = 1; call < 1000; ++call) {
    fake.fail_at = call;
    int left = 0;
    const auto done = all(fake, left);
    EXPECT_EQ(fake.alive(), 0) << "call " << call;
    EXPECT_EQ(FakeGpu::current(), nullptr) << "call " << call;
    if (left > 0) {  // fewer calls than that
      EXPECT_TRUE(done);
      break;
    }
    ASSERT_FALSE(done) << "call " << call;
    ++failures;
    const std::string& message = done.error().message;
    EXPECT_TRUE(done.error().code == ErrorCode::device) << message;
    EXPECT_TRUE(has(message, "CUDA_ERROR_UNKNOWN (999)")) << message;
    EXPECT_FALSE(has(message, "\n"));
  }
  EXPECT_GT(failures, 40);
}

}  // namespace
}  // namespace ingot
