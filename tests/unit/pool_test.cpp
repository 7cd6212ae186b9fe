// SPDX-License-Identifier: Apache-2.0
#include "cpu/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>

namespace ingot::cpu {
namespace {

TEST(ThreadPool, DoesEveryTaskOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool);
    EXPECT_EQ((*pool)->threads(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(tasks));
      std::atomic<bool> slots_fit{true};
      (*pool)->run(tasks, [&](std::int64_t task, int slot) {
        done[static_cast<std::size_t>(task)].fetch_add(1);
        if (slot < 0 || slot >= threads) slots_fit = false;
      });
      for (const auto& count : done) ASSERT_EQ(count.load(), 1);
      EXPECT_TRUE(slots_fit.load());
    }
  }
}

TEST(ThreadPool, TheThreadsReallyWorkSideBySide) {
  const auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool);
  // Each of two tasks waits until the other has begun: one thread alone would wait forever.
  std::atomic<int> begun{0};
  std::atomic<bool> met{true};
  (*pool)->run(2, [&](std::int64_t, int) {
    begun.fetch_add(1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun.load() < 2) {
      if (std::chrono::steady_clock::now() > until) {
        met = false;
        return;
      }
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(met.load());
}

TEST(ThreadPool, ManyPhasesInARow) {
  const auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool);
  std::vector<std::int64_t> values(64);
  for (int phase = 0; phase < 2000; ++phase) {
    (*pool)->run(64, [&](std::int64_t task, int) { values[static_cast<std::size_t>(task)] += task; });
  }
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 2000 * i);
}

}  // namespace
}  // namespace ingot::cpu
