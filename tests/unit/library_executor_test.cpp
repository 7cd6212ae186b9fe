// SPDX-License-Identifier: Apache-2.0
//
// The rungs of the vendor's library, on a GPU and a library that are not there: which products and kernels
// run on what, in which order.
#include <gtest/gtest.h>

#include "fake/blas.h"
#include "fake/gpu_mlp.h"
#include "kernels/linear_args.cuh"
#include "plan/choose.h"

namespace ingot {
namespace {

using test::FakeBlas;
using test::FakeGpu;
using test::GpuMlp;
using test::Product;

// Of the library's interface.
constexpr int default_epilogue = 1, relu_epilogue = 2, bias_epilogue = 4, relu_bias = 6, gelu_bias = 36;

class LibraryExecutorTest : public testing::Test {
 protected:
  std::shared_ptr<const Executor> prepare(const GpuMlp& mlp, Rung rung) {
    auto made = gpu::prepare(gpu, mlp.mlp, mlp.weights, {.numerics = {}, .rung = rung});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }
  /// Runs once so that algorithms are chosen, then once more: what that one does is left in the fakes.
  RunArguments run(const GpuMlp& mlp, const Executor& executor, std::int64_t tokens = 128) {
    const RunArguments arguments = mlp.run(tokens, executor);
    EXPECT_TRUE(executor.run(arguments));
    first_launch = fake.launches();
    blas.products.clear();
    const auto again = executor.run(arguments);
    EXPECT_TRUE(again) << again.error().message;
    return arguments;
  }
  const test::Launch& launch(int n) const { return fake.launch(first_launch + n); }
  int launches() const { return fake.launches() - first_launch; }
  /// The step of a pointwise kernel, as its text names it.
  static bool does(const test::Launch& launch, std::string_view step) {
    return launch.text->find("pointwise.cuh") != std::string::npos &&
           launch.text->find(step) != std::string::npos;
  }

  FakeGpu fake;
  FakeBlas blas{fake};
  std::shared_ptr<test::FakeStore> store = std::make_shared<test::FakeStore>();
  std::shared_ptr<const gpu::Device> device = gpu::Device::open(fake.driver(), 0).value();
  std::shared_ptr<const gpu::Gpu> gpu =
      gpu::open(device, store,
                {.library = std::make_shared<gpu::LibrarySource>(std::make_shared<gpu::GemmChoices>(
                     device, gpu::Blas::make(blas.functions(), "fake").value()))})
          .value();
  int first_launch = 0;
};

const char* at(const void* base, std::int64_t elements, std::int64_t element = 2) {
  return static_cast<const char*>(base) + elements * element;
}

TEST_F(LibraryExecutorTest, UnfusedIsTwoProductsWithBiasAndTheActivationBetween) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::unfused);
  const RunArguments ran = run(mlp, *executor);
  ASSERT_EQ(blas.products.size(), 2U);
  ASSERT_EQ(launches(), 1);
  const Product &first = blas.products[0], &second = blas.products[1];
  EXPECT_EQ(first.rows, 3072U);
  EXPECT_EQ(first.columns, 128U);
  EXPECT_EQ(first.depth, 768U);
  EXPECT_EQ(first.transpose_a, 1);
  EXPECT_EQ(first.type, 14);     // bf16
  EXPECT_EQ(first.compute, 68);  // sums in f32
  EXPECT_EQ(first.epilogue, bias_epilogue);
  EXPECT_EQ(first.a, mlp.weights.up.weight);
  EXPECT_EQ(first.b, ran.x);
  EXPECT_EQ(first.bias, mlp.weights.up.bias);
  EXPECT_EQ(first.launches_before, first_launch);
  EXPECT_EQ(second.rows, 768U);
  EXPECT_EQ(second.depth, 3072U);
  EXPECT_EQ(second.a, mlp.weights.down.weight);
  EXPECT_EQ(second.b, first.d);
  EXPECT_EQ(second.d, ran.y);
  EXPECT_EQ(second.launches_before, first_launch + 1);
  EXPECT_TRUE(does(launch(0), "activation::gelu_tanh"));
  const auto arguments = launch(0).as<LinearArgs>();
  EXPECT_EQ(arguments.x, first.d);
  EXPECT_EQ(arguments.epilogue.y, first.d);
  EXPECT_EQ(arguments.tokens, 128);
  // 128 rows of 3072 columns, eight to a thread, 256 threads to a block.
  EXPECT_EQ(launch(0).grid[0], 128U * 3072 / 8 / 256);
  EXPECT_EQ(launch(0).block[0], 256U);
  EXPECT_FALSE(launch(0).dependent);
  EXPECT_EQ(blas.reduction, 2U) << "parts of sums are added in f32";
}

TEST_F(LibraryExecutorTest, MatmulAddAddsEachBiasInAPassOfItsOwn) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::matmul_add);
  const RunArguments ran = run(mlp, *executor);
  ASSERT_EQ(blas.products.size(), 2U);
  ASSERT_EQ(launches(), 3);
  for (const Product& product : blas.products) {
    EXPECT_EQ(product.epilogue, default_epilogue);
    EXPECT_EQ(product.bias, nullptr);
  }
  EXPECT_TRUE(does(launch(0), "AddBias"));
  EXPECT_EQ(launch(0).as<LinearArgs>().epilogue.up_bias, mlp.weights.up.bias);
  EXPECT_TRUE(does(launch(1), "activation::gelu_tanh"));
  EXPECT_TRUE(does(launch(2), "AddBias"));
  EXPECT_EQ(launch(2).as<LinearArgs>().epilogue.up_bias, mlp.weights.down.bias);
  EXPECT_EQ(launch(2).as<LinearArgs>().epilogue.y, ran.y);
  EXPECT_EQ(blas.products[1].launches_before, first_launch + 2);
}

TEST_F(LibraryExecutorTest, EpilogueIsTwoProductsAndNothingElse) {
  GpuMlp mlp(768, 3072);
  run(mlp, *prepare(mlp, Rung::epilogue));
  ASSERT_EQ(blas.products.size(), 2U);
  EXPECT_EQ(launches(), 0);
  EXPECT_EQ(blas.products[0].epilogue, gelu_bias);
  EXPECT_EQ(blas.products[1].epilogue, bias_epilogue);
  mlp.mlp.activation = Activation::relu;
  run(mlp, *prepare(mlp, Rung::epilogue));
  EXPECT_EQ(blas.products[0].epilogue, relu_bias);
  mlp.mlp.bias = false;
  mlp.weights.up.bias = mlp.weights.down.bias = nullptr;
  run(mlp, *prepare(mlp, Rung::epilogue));
  EXPECT_EQ(blas.products[0].epilogue, relu_epilogue);
  EXPECT_EQ(blas.products[1].epilogue, default_epilogue);
}

TEST_F(LibraryExecutorTest, EpilogueThatTheLibraryHasNotIsRefused) {
  GpuMlp mlp(768, 3072);
  mlp.mlp.activation = Activation::silu;
  const auto refused = gpu::prepare(gpu, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::epilogue});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("the library fuses relu and gelu_tanh only"), std::string::npos)
      << refused.error().message;
}

TEST_F(LibraryExecutorTest, GatedSeparateMultipliesThreeTimes) {
  const GpuMlp mlp(768, 3072, true);
  const auto executor = prepare(mlp, Rung::unfused);
  run(mlp, *executor);
  ASSERT_EQ(blas.products.size(), 3U);
  ASSERT_EQ(launches(), 2);
  const Product &gate = blas.products[0], &up = blas.products[1], &down = blas.products[2];
  EXPECT_EQ(gate.a, mlp.weights.gate.weight);
  EXPECT_EQ(up.a, mlp.weights.up.weight);
  EXPECT_NE(gate.d, up.d);
  EXPECT_TRUE(does(launch(0), "activation::gelu_tanh"));
  EXPECT_EQ(launch(0).as<LinearArgs>().x, gate.d);
  EXPECT_TRUE(does(launch(1), "Multiply"));
  const auto product = launch(1).as<LinearArgs>();
  EXPECT_EQ(product.x, up.d);
  EXPECT_EQ(product.gate, launch(0).as<LinearArgs>().epilogue.y);
  EXPECT_EQ(down.b, product.epilogue.y);
  EXPECT_EQ(down.stride_b, 3072);
}

TEST_F(LibraryExecutorTest, GatedPackedMultipliesTwice) {
  GpuMlp mlp(320, 1280, true);
  mlp.weights.gate = {};
  for (const GateLayout layout : {GateLayout::packed_value_first, GateLayout::packed_gate_first}) {
    mlp.weights.layout = layout;
    const auto executor = prepare(mlp, Rung::unfused);
    run(mlp, *executor);
    ASSERT_EQ(blas.products.size(), 2U);
    ASSERT_EQ(launches(), 2);
    const Product &both = blas.products[0], &down = blas.products[1];
    EXPECT_EQ(both.a, mlp.weights.up.weight);
    EXPECT_EQ(both.bias, mlp.weights.up.bias);
    EXPECT_EQ(both.rows, 2560U);
    EXPECT_EQ(both.stride_d, 2560);
    const bool value_first = layout == GateLayout::packed_value_first;
    const auto act = launch(0).as<LinearArgs>(), product = launch(1).as<LinearArgs>();
    EXPECT_EQ(act.x, at(both.d, value_first ? 1280 : 0));
    EXPECT_EQ(act.x_stride, 2560);
    EXPECT_EQ(act.epilogue.y_stride, 1280);
    EXPECT_EQ(product.x, at(both.d, value_first ? 0 : 1280));
    EXPECT_EQ(product.x_stride, 2560);
    EXPECT_EQ(product.gate, act.epilogue.y);
    EXPECT_EQ(product.gate_stride, 1280);
    EXPECT_EQ(down.b, product.epilogue.y);
    EXPECT_EQ(down.stride_b, 1280);
  }
}

TEST_F(LibraryExecutorTest, LaunchesAreThoseThatTheLadderCounts) {
  for (const Rung rung : {Rung::matmul_add, Rung::unfused}) {
    for (const bool gated : {false, true}) {
      for (const bool packed : {false, true}) {
        for (const Activation activation : {Activation::silu, Activation::identity}) {
          if (packed && !gated) continue;
          GpuMlp mlp(320, 1280, gated);
          mlp.mlp.activation = activation;
          if (packed) {
            mlp.weights.gate = {};
            mlp.weights.layout = GateLayout::packed_gate_first;
          }
          const auto executor = prepare(mlp, rung);
          run(mlp, *executor);
          EXPECT_EQ(launches() + static_cast<int>(blas.products.size()),
                    traffic(mlp.mlp, 128, rung, packed).launches)
              << to_string(rung) << gated << packed << to_string(activation);
        }
      }
    }
  }
}

TEST_F(LibraryExecutorTest, BuffersLieInTheWorkspaceAndDoNotMeet) {
  const GpuMlp mlp(320, 1280, true);
  const auto executor = prepare(mlp, Rung::unfused);
  RunArguments ran = mlp.run(100, *executor);
  ran.workspace = test::FakeGpu::memory(GpuMlp::apart * 30 + 64);  // no more than is promised
  ASSERT_TRUE(executor->run(ran));
  blas.products.clear();
  ASSERT_TRUE(executor->run(ran));
  const auto first = reinterpret_cast<std::uintptr_t>(blas.products[0].d),
             second = reinterpret_cast<std::uintptr_t>(blas.products[1].d),
             own = reinterpret_cast<std::uintptr_t>(blas.products[0].workspace),
             start = reinterpret_cast<std::uintptr_t>(ran.workspace);
  const std::uintptr_t bytes = 100 * 1280 * 2;
  EXPECT_GE(first, start);
  EXPECT_GE(second, first + bytes);
  EXPECT_GE(own, second + bytes);
  EXPECT_LE(own + (std::uintptr_t{32} << 20), start + ran.workspace_bytes);
  for (const std::uintptr_t address : {first, second, own}) EXPECT_EQ(address % 256, 0U);
}

TEST_F(LibraryExecutorTest, MisalignedInputsAreToldToTheLibraryAndLoadedOneByOne) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::matmul_add);
  RunArguments ran = mlp.run(16, *executor);
  ran.y = test::FakeGpu::memory(GpuMlp::apart * 20 + 2);
  ASSERT_TRUE(executor->run(ran));
  EXPECT_EQ(blas.alignments, (std::vector<std::uint32_t>{2, 2, 2, 2}));
  const std::string& last = *fake.launch(fake.launches() - 1).text;  // the bias of y
  EXPECT_NE(last.find("768, false, false>"), std::string::npos) << last;
}

TEST_F(LibraryExecutorTest, TakesTheFastestAlgorithmAndMeasuresOnce) {
  blas.seconds = {{1, 9e-6}, {2, 5e-6}, {3, 7e-6}};
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::unfused);
  run(mlp, *executor);
  for (const Product& product : blas.products) EXPECT_EQ(product.algorithm, 2U);
  // Another one of the same shape: nothing is measured again.
  const auto other = prepare(mlp, Rung::unfused);
  blas.products.clear();
  ASSERT_TRUE(other->run(mlp.run(128, *other)));
  EXPECT_EQ(blas.products.size(), 2U);
}

TEST_F(LibraryExecutorTest, AnAlgorithmThatIsRefusedIsLeftOut) {
  blas.seconds = {{1, 9e-6}, {2, 5e-6}, {3, 7e-6}};
  blas.refused = {2};
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::unfused);
  run(mlp, *executor);
  for (const Product& product : blas.products) EXPECT_EQ(product.algorithm, 3U);
  blas.refused = {1, 2, 3};
  const auto none = executor->run(mlp.run(256, *executor));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "cublasLtMatmul: not supported (15)");
}

TEST_F(LibraryExecutorTest, TheFirstRunIsNotForACapture) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::unfused);
  fake.capturing = 1;
  const auto refused = executor->run(mlp.run(128, *executor));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  fake.capturing = 0;
  ASSERT_TRUE(executor->run(mlp.run(128, *executor)));
  fake.capturing = 1;
  EXPECT_TRUE(executor->run(mlp.run(128, *executor)));
}

TEST_F(LibraryExecutorTest, WarmLeavesNothingToDoInACapture) {
  const GpuMlp mlp(768, 3072);
  const auto executor = prepare(mlp, Rung::unfused);
  const int before = fake.alive();
  ASSERT_TRUE(executor->warm(128));
  EXPECT_EQ(fake.alive(), before + 1) << "beside the module of the activation";
  fake.capturing = 1;
  EXPECT_TRUE(executor->run(mlp.run(128, *executor)));
}

TEST_F(LibraryExecutorTest, TheEngineItselfNeverTakesTheLibrary) {
  const GpuMlp mlp(768, 3072);
  const auto executor = gpu::prepare(gpu, mlp.mlp, mlp.weights, {}).value();
  for (const std::int64_t tokens : {1, 64, 1024, 32768}) {
    ASSERT_TRUE(executor->run(mlp.run(tokens, *executor)));
    EXPECT_EQ(executor->plan(tokens)->chosen.rung, Rung::two_kernel);
  }
  EXPECT_TRUE(blas.products.empty());
}

TEST_F(LibraryExecutorTest, PlansOfTheRungsHaveForecasts) {
  const GpuMlp mlp(768, 3072);
  const auto plan = prepare(mlp, Rung::epilogue)->plan(1024);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->chosen.rung, Rung::epilogue);
  EXPECT_EQ(plan->chosen.launches, 2);
  EXPECT_GT(plan->chosen.forecast_us, 0);
}

TEST_F(LibraryExecutorTest, WithoutTheLibraryTheRungsSaySo) {
  const auto bare = test::open_gpu(fake, store);
  const GpuMlp mlp(768, 3072);
  const auto refused = gpu::prepare(bare, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::unfused});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST(Blas, EveryCallMayFailAndNothingIsLeft) {
  FakeGpu fake;
  FakeBlas blas(fake);
  const GpuMlp mlp(768, 3072);
  bool succeeded = false;
  int failures = 0;
  for (int call = 1; !succeeded && call < 500; ++call) {
    auto device = gpu::Device::open(fake.driver(), 0).value();
    blas.fail_at = call;
    const auto library = gpu::Blas::make(blas.functions(), "libcublasLt.so.13");
    if (library) {
      const auto source =
          std::make_shared<gpu::LibrarySource>(std::make_shared<gpu::GemmChoices>(device, *library));
      const auto gpu = gpu::open(device, std::make_shared<test::FakeStore>(), {.library = source}).value();
      const auto executor =
          gpu::prepare(gpu, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::matmul_add}).value();
      const auto ran = executor->run(mlp.run(64, *executor));
      succeeded = ran.ok() && blas.fail_at != 0;
      if (!ran) {
        ++failures;
        EXPECT_EQ(ran.error().message.find('\n'), std::string::npos);
        EXPECT_EQ(ran.error().message.substr(0, 8), "cublasLt") << ran.error().message;
      }
    } else {
      ++failures;
      EXPECT_EQ(library.error().message, "libcublasLt.so.13: cublasLtCreate: error (14)");
      EXPECT_EQ(library.error().code, ErrorCode::unsupported) << "so that its rungs are skipped";
    }
  }
  EXPECT_TRUE(succeeded);
  EXPECT_GT(failures, 20);
  EXPECT_EQ(blas.alive, 0);
  EXPECT_EQ(fake.alive(), 0);
}

TEST(Blas, IsNamedByItsVersion) {
  FakeGpu fake;
  FakeBlas blas(fake);
  EXPECT_EQ(gpu::Blas::make(blas.functions(), "x").value()->name(), "cuBLASLt 13.1.0");
  blas.version = 120805;
  EXPECT_EQ(gpu::Blas::make(blas.functions(), "x").value()->name(), "cuBLASLt 12.8.5");
}

TEST(Blas, IsLookedForWhereItIsSaidToBeAndNowhereElse) {
  base::Environment environment;
  environment.ingot_cublaslt = "/nowhere/libcublasLt.so.13";
  EXPECT_EQ(gpu::blas_candidates(environment), std::vector<std::string>{"/nowhere/libcublasLt.so.13"});
  const auto opened = gpu::Blas::open(environment);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
  EXPECT_NE(opened.error().message.find("pip install nvidia-cublas"), std::string::npos);
}

}  // namespace
}  // namespace ingot
