// SPDX-License-Identifier: Apache-2.0
//
// MLPs that run in one launch, on a GPU that is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/gpu_mlp.h"
#include "plan/choose.h"

namespace ingot {
namespace {

using test::FakeGpu;
using test::GpuMlp;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Tokens and epilogue of a launch of either kernel.
struct Seen {
  MlpEpilogueArgs epilogue;
  std::int64_t tokens = 0;
  std::int32_t early_weights = 0;
};
Seen seen(const test::Launch& launch) {
  if (has(*launch.text, "sm90/narrow.cuh")) {
    const auto arguments = launch.as<gpu::NarrowArguments>();
    return {arguments.epilogue, arguments.tokens, arguments.early_weights};
  }
  EXPECT_TRUE(has(*launch.text, "sm90/cluster.cuh")) << *launch.text;
  const auto arguments = launch.as<gpu::ClusterArguments>();
  return {arguments.epilogue, arguments.tokens};
}

class OneKernelTest : public testing::Test {
 protected:
  std::shared_ptr<const Executor> prepare(const GpuMlp& mlp, std::optional<Rung> rung = Rung::one_kernel) {
    return gpu::prepare(gpu, mlp.mlp, mlp.weights, {.numerics = {}, .rung = rung}).value();
  }
  /// The same GPU, on which this was measured for some tokens.
  std::shared_ptr<const gpu::Gpu> with(TunedChoices choices) {
    const auto tuned = std::make_shared<gpu::Gpu>(*gpu);
    tuned->tuned.replace(choices);
    return tuned;
  }
  const test::Launch& last(int before = 0) { return fake.launch(fake.launches() - 1 - before); }

  FakeGpu fake;
  std::shared_ptr<test::FakeStore> store = std::make_shared<test::FakeStore>();
  std::shared_ptr<const gpu::Gpu> gpu = test::open_gpu(fake, store);
  const GpuDescription& description = gpu->description.gpu;
};

TEST_F(OneKernelTest, OneLaunchThatWaitsForWhatIsBeforeIt) {
  for (const bool gated : {false, true}) {
    const GpuMlp mlp(gated ? 320 : 256, gated ? 1280 : 1024, gated);
    const auto executor = prepare(mlp);
    for (const std::int64_t tokens : {1, 64, 1000, 129024}) {
      RunArguments run = mlp.run(tokens, *executor);
      run.stream.handle = reinterpret_cast<void*>(0x99);
      const int before = fake.launches();
      const auto done = executor->run(run);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(fake.launches(), before + 1);
      const test::Launch& launch = last();
      const MlpPick pick = choose_mlp_kernel(mlp.mlp, tokens, description, {});
      // What is before it may write its weights: a kernel that asks for them at once is not set up early.
      EXPECT_EQ(launch.dependent, has(*launch.text, "sm90/narrow.cuh"));
      EXPECT_EQ(launch.stream, run.stream.handle);
      const MlpSpec spec = mlp_spec(mlp.mlp, false, Numerics::match);  // the fake's gate lies behind up
      const jit::KernelText text = jit::kernel_text(spec, pick.tile, {9, 0, true});
      EXPECT_EQ(*launch.text, text.text);
      EXPECT_EQ(launch.block[0], static_cast<unsigned>(text.threads));
      EXPECT_EQ(launch.shared_bytes, static_cast<unsigned>(text.shared_bytes));
      EXPECT_EQ(launch.cluster, text.cluster == 1 ? 0U : static_cast<unsigned>(text.cluster));
      EXPECT_GE(launch.grid[0], 1U);
      const Seen of = seen(launch);
      EXPECT_EQ(of.tokens, tokens);
      EXPECT_EQ(of.early_weights, 0);
      EXPECT_EQ(of.epilogue.y, run.y);
      EXPECT_EQ(of.epilogue.y_stride, mlp.mlp.dim);
      EXPECT_EQ(of.epilogue.up_bias, mlp.weights.up.bias);
      if (gated) {
        EXPECT_EQ(of.epilogue.gate_bias, mlp.weights.gate.bias);
      }
      EXPECT_EQ(of.epilogue.down_bias, mlp.weights.down.bias);
    }
  }
}

TEST_F(OneKernelTest, NeedsNoRoomForHidden) {
  const GpuMlp mlp(320, 1280, true);
  const auto executor = prepare(mlp);
  const MlpSpec spec = mlp_spec(mlp.mlp, true, Numerics::match);
  for (const std::int64_t tokens : {1, 64, 1000, 129024}) {
    const auto scratch = static_cast<std::size_t>(most_scratch_bytes(spec, tokens, description));
    EXPECT_EQ(executor->workspace_bytes(tokens), (scratch + 255) / 256 * 256);
  }
}

TEST_F(OneKernelTest, BiasesAsTheWeightsHaveThem) {
  GpuMlp mlp(256, 1024);
  mlp.weights.up.bias = nullptr;
  ASSERT_TRUE(prepare(mlp)->run(mlp.run(64, *prepare(mlp))));
  EXPECT_TRUE(has(*last().text, "256, 1024, false, true, false, true, ") ||
              has(*last().text, "256, 1024, false, false, true, "))
      << *last().text;
  GpuMlp half(320, 1280, true);
  half.weights.gate.bias = nullptr;  // zeros stand in
  const auto executor = prepare(half);
  EXPECT_EQ(executor->owned_bytes(), 2560U);
  ASSERT_TRUE(executor->run(half.run(64, *executor)));
  EXPECT_NE(seen(last()).epilogue.gate_bias, nullptr);
}

TEST_F(OneKernelTest, AskedForWhereItCannotBe) {
  const auto refused = [&](const GpuMlp& mlp, const std::shared_ptr<const gpu::Gpu>& on) {
    const auto made = gpu::prepare(on, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::one_kernel});
    EXPECT_FALSE(made);
    if (made) return std::string();
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    return made.error().message;
  };
  EXPECT_THAT(refused(GpuMlp(8192, 28672), gpu), testing::HasSubstr("narrow: "));
  EXPECT_THAT(refused(GpuMlp(256, 1024, false, DType::f32), gpu), testing::HasSubstr("16-bit"));
  GpuMlp off(256, 1024);
  off.weights.down.weight = static_cast<const char*>(off.weights.down.weight) + 2;
  EXPECT_THAT(refused(off, gpu), testing::HasSubstr("16 bytes"));
  FakeGpu ampere({.major = 8, .minor = 0});
  EXPECT_THAT(refused(GpuMlp(256, 1024), test::open_gpu(ampere, std::make_shared<test::FakeStore>())),
              testing::HasSubstr("compute capability 9.0 only"));
}

TEST_F(OneKernelTest, AskedForOnTensorsThatItCannotTake) {
  const GpuMlp mlp(256, 1024);
  const auto executor = prepare(mlp);
  RunArguments run = mlp.run(64, *executor);
  run.x = static_cast<const char*>(run.x) + 2;
  const auto done = executor->run(run);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unsupported);
  EXPECT_THAT(done.error().message, testing::HasSubstr("16 bytes"));
  EXPECT_FALSE(executor->warm(std::int64_t{1} << 31));
  EXPECT_EQ(fake.launches(), 0);
}

TEST_F(OneKernelTest, RunsTheWayThatIsPlanned) {
  for (const auto& [dim, hidden, gated] :
       {std::tuple{256, 1024, false}, {320, 1280, true}, {768, 3072, true}}) {
    const GpuMlp mlp(dim, hidden, gated);
    const auto executor = prepare(mlp, {});
    for (const std::int64_t tokens : {1, 64, 300, 1000, 16384, 129024}) {
      const int before = fake.launches();
      ASSERT_TRUE(executor->run(mlp.run(tokens, *executor)));
      const auto plan = executor->plan(tokens);
      EXPECT_EQ(fake.launches() - before, plan->chosen.launches);
      EXPECT_EQ(plan->chosen.rung, choose_route(mlp.mlp, tokens, description, {}).takes_one
                                       ? Rung::one_kernel
                                       : Rung::two_kernel);
    }
  }
}

TEST_F(OneKernelTest, WorkspaceNeverShrinksWithMoreTokensAndHoldsWhatRunNeeds) {
  // Two kernels for 20000 tokens, one for 8000 and 40000.
  const GpuMlp mlp(320, 1280, true);
  const MlpSpec spec = mlp_spec(mlp.mlp, true, Numerics::match);
  const auto tile = rank_mlp_kernels(spec, 8000, description, 1).at(0);
  TunedChoices choices;
  for (std::int64_t tokens = 4096; tokens < 100000; tokens = token_class(tokens).next) {
    const std::int64_t of_class = token_class(tokens).representative;
    const bool pair = of_class == token_class(20000).representative;
    choices.mlps.push_back({spec, of_class, pair ? std::nullopt : std::optional(tile), 1});
  }
  const auto executor = gpu::prepare(with(choices), mlp.mlp, mlp.weights, {}).value();
  std::size_t before = 0;
  for (std::int64_t tokens = 1; tokens < 100000; tokens += 499) {
    EXPECT_GE(executor->workspace_bytes(tokens), before) << tokens;
    before = executor->workspace_bytes(tokens);
  }
  constexpr std::size_t row = 1280 * 2;
  const auto scratch = static_cast<std::size_t>(most_scratch_bytes(spec, 20000, description));
  EXPECT_EQ(executor->workspace_bytes(20000), std::max(20000 * row, scratch));
  EXPECT_EQ(executor->workspace_bytes(8000), std::max(4096 * row, scratch));
  EXPECT_GE(executor->workspace_bytes(40000), executor->workspace_bytes(token_class(20000).representative));
  EXPECT_LT(executor->workspace_bytes(99000), 99000 * row);
}

TEST_F(OneKernelTest, OtherTensorsGoThroughTheWorkspaceInParts) {
  const GpuMlp mlp(320, 1280, true);
  const MlpSpec spec = mlp_spec(mlp.mlp, true, Numerics::match);
  constexpr std::int64_t tokens = 10000;
  TunedChoices choices;
  for (std::int64_t t = 4096; t <= tokens; t = token_class(t).next)
    choices.mlps.push_back(
        {spec, token_class(t).representative, rank_mlp_kernels(spec, t, description, 1).at(0), 1});
  const auto executor = gpu::prepare(with(choices), mlp.mlp, mlp.weights, {}).value();
  RunArguments run = mlp.run(tokens, *executor);
  run.x = static_cast<const char*>(run.x) + 2;
  run.y_row_stride = 323;
  ASSERT_TRUE(executor->run(run));
  // 4096 rows of hidden: three parts of at most 3334 tokens, each a pair.
  ASSERT_EQ(fake.launches(), 6);
  std::int64_t done = 0;
  for (int part = 0; part < 3; ++part) {
    const auto first = fake.launch(2 * part).as<LinearArgs>(),
               second = fake.launch(2 * part + 1).as<LinearArgs>();
    EXPECT_TRUE(has(*fake.launch(2 * part).text, "sm80/linear.cuh"));
    EXPECT_FALSE(fake.launch(2 * part).dependent) << "hidden is still being read";
    EXPECT_TRUE(fake.launch(2 * part + 1).dependent);
    EXPECT_EQ(first.tokens, second.tokens);
    EXPECT_LE(first.tokens * 1280 * 2, static_cast<std::int64_t>(run.workspace_bytes));
    EXPECT_EQ(first.x, static_cast<const char*>(run.x) + done * 320 * 2);
    EXPECT_EQ(first.epilogue.y, run.workspace);
    EXPECT_EQ(second.x, run.workspace);
    EXPECT_EQ(second.epilogue.y, static_cast<char*>(run.y) + done * 323 * 2);
    done += first.tokens;
  }
  EXPECT_EQ(done, tokens);
  EXPECT_EQ(fake.launch(0).as<LinearArgs>().tokens, 3334);
  EXPECT_EQ(store->asked, 2) << "one pair of kernels for all parts";
}

TEST_F(OneKernelTest, NotCompiledWhileCapturing) {
  const GpuMlp mlp(256, 1024);
  const auto executor = prepare(mlp);
  fake.capturing = 1;
  const auto refused = executor->run(mlp.run(64, *executor));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  ASSERT_TRUE(executor->warm(64));
  EXPECT_EQ(store->asked, 1);
  EXPECT_TRUE(executor->run(mlp.run(64, *executor)));
  EXPECT_EQ(store->asked, 1);
  EXPECT_EQ(fake.launches(), 1);
}

TEST_F(OneKernelTest, OtherWeightsOfAWarmShapeMayBeCaptured) {
  const GpuMlp mlp(256, 1024);
  for (const Rung rung : {Rung::one_kernel, Rung::two_kernel}) {
    fake.capturing = 0;
    ASSERT_TRUE(prepare(mlp, rung)->warm(64));
    const int asked = store->asked, before = fake.launches();
    fake.capturing = 1;
    const auto other = prepare(mlp, rung);
    EXPECT_TRUE(other->run(mlp.run(64, *other)));
    EXPECT_EQ(store->asked, asked);
    EXPECT_EQ(fake.launches(), before + (rung == Rung::one_kernel ? 1 : 2));
    EXPECT_FALSE(other->run(mlp.run(5000, *other))) << "of many tokens, whose kernels are others";
  }
}

TEST_F(OneKernelTest, EveryCallOfTheDriverThatFailsIsAnError) {
  const GpuMlp mlp(320, 1280, true);
  int failures = 0;
  for (int call = 1; call < 200; ++call) {
    const auto own = test::open_gpu(fake, std::make_shared<test::FakeStore>());
    const auto executor =
        gpu::prepare(own, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::one_kernel}).value();
    const RunArguments run = mlp.run(129024, *executor);
    fake.fail_at = call;
    const auto done = executor->run(run);
    if (fake.fail_at.exchange(0) > 0) {
      EXPECT_TRUE(done);
      break;
    }
    ASSERT_FALSE(done) << call;
    EXPECT_EQ(done.error().code, ErrorCode::device);
    ++failures;
  }
  EXPECT_GT(failures, 5);
}

}  // namespace
}  // namespace ingot
