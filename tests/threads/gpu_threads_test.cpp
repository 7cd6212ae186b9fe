// SPDX-License-Identifier: Apache-2.0
//
// Many threads run one prepared MLP, on a GPU that is not there: kernels are found, loaded and kept once.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "fake/gpu_mlp.h"

namespace ingot {
namespace {

TEST(GpuThreads, RunOneMlpAtOnce) {
  constexpr int threads = 4, rounds = 200;
  test::FakeGpu fake;
  fake.keeps_launches = false;
  const auto store = std::make_shared<test::FakeStore>();
  const auto gpu = test::open_gpu(fake, store);
  const test::GpuMlp mlp(768, 3072, true);
  const PrepareOptions options{.numerics = {}, .rung = Rung::two_kernel};
  const PreparedMlp prepared(gpu::prepare(gpu, mlp.mlp, mlp.weights, options).value());
  const auto executor = gpu::prepare(gpu, mlp.mlp, mlp.weights, options).value();
  std::atomic<int> failed{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        for (const std::int64_t tokens : {1, 64, 300, 8192}) {
          if (!prepared.run(mlp.run(tokens, *executor))) ++failed;
        }
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(fake.launches(), threads * rounds * 4 * 2);
  // Two threads may have loaded the same kernel at once; one of each stays.
  EXPECT_LE(fake.alive(), 1 + 8);
}

TEST(GpuThreads, AskForTheWorkspaceAndRunInOneLaunchAtOnce) {
  test::FakeGpu fake;
  fake.keeps_launches = false;
  const auto gpu = test::open_gpu(fake, std::make_shared<test::FakeStore>());
  const test::GpuMlp mlp(320, 1280, true);
  const auto whole =
      gpu::prepare(gpu, mlp.mlp, mlp.weights, {.numerics = {}, .rung = Rung::one_kernel}).value();
  const auto chosen = gpu::prepare(gpu, mlp.mlp, mlp.weights, {}).value();
  std::atomic<int> failed{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        for (const std::int64_t tokens : {64, 20000, 129024}) {
          if (!whole->run(mlp.run(tokens, *whole)) || !chosen->run(mlp.run(tokens, *chosen))) ++failed;
        }
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST(GpuThreads, PrepareAtOnce) {
  test::FakeGpu fake;
  fake.keeps_launches = false;
  const auto gpu = test::open_gpu(fake, std::make_shared<test::FakeStore>());
  std::atomic<int> failed{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const test::GpuMlp mlp(768, 3072);
        const auto executor = gpu::prepare(gpu, mlp.mlp, mlp.weights, {});
        if (!executor || !(*executor)->warm(64) || !(*executor)->run(mlp.run(300, **executor))) ++failed;
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace ingot
