// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "fake/compiler.h"
#include "jit/store.h"

namespace ingot::jit {
namespace {

using test::fake_kernel;
using test::FakeCompiler;

template <class Work>
void run_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(KernelStoreThreads, OneKernelIsCompiledOnce) {
  const test::TemporaryFolder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  compiler->takes = std::chrono::milliseconds(30);
  CachedKernelStore store(compiler, DiskCache(folder.path()), {});
  std::vector<std::shared_ptr<const Cubin>> got(16);
  run_threads(16, [&](int i) {
    auto cubin = store.get(fake_kernel(i % 2));
    if (cubin) got[static_cast<std::size_t>(i)] = *cubin;
  });
  EXPECT_EQ(compiler->compiled, 2);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], got[i % 2]);
  ASSERT_TRUE(got[0] && got[1]);
  EXPECT_NE(got[0]->image, got[1]->image);
}

TEST(KernelStoreThreads, KernelsAreCompiledSideBySide) {
  const auto compiler = std::make_shared<FakeCompiler>();
  compiler->takes = std::chrono::milliseconds(200);
  CachedKernelStore store(compiler, std::nullopt, {});
  const auto start = std::chrono::steady_clock::now();
  run_threads(8, [&](int i) { EXPECT_TRUE(store.get(fake_kernel(i))); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(8 * 200))
      << "one after another";
  EXPECT_EQ(compiler->compiled, 8);
}

TEST(KernelStoreThreads, AnErrorReachesAllWhoWaitAndIsForgotten) {
  const test::TemporaryFolder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  compiler->takes = std::chrono::milliseconds(30);
  compiler->fails = true;
  CachedKernelStore store(compiler, DiskCache(folder.path()), {});
  run_threads(8, [&](int) {
    const auto cubin = store.get(fake_kernel(1));
    ASSERT_FALSE(cubin);
    EXPECT_EQ(cubin.error().code, ErrorCode::device);
  });
  compiler->fails = false;
  run_threads(8, [&](int) { EXPECT_TRUE(store.get(fake_kernel(1))); });
}

TEST(KernelStoreThreads, ManyStoresOverOneSmallFolder) {
  const test::TemporaryFolder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  run_threads(4, [&](int) {
    for (int round = 0; round < 60; ++round) {
      // Room for a few kernels only, so that files vanish under the others' hands.
      CachedKernelStore store(compiler, DiskCache(folder.path(), 2000), {});
      const auto cubin = store.get(fake_kernel(round % 7));
      ASSERT_TRUE(cubin);
      EXPECT_EQ((*cubin)->image, FakeCompiler::code_of(fake_kernel(round % 7)).image);
    }
  });
}

}  // namespace
}  // namespace ingot::jit
