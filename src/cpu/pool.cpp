// SPDX-License-Identifier: Apache-2.0
#include "cpu/pool.h"

#include <fmt/format.h>

#include <system_error>

#include "cpu/gemm.h"

namespace ingot::cpu {

namespace {

// A worker that has just finished looks for the next phase this many times before it sleeps: about 20 µs, the
// cost of waking it. Longer would take the processor from others.
constexpr int looks_before_sleep = 500;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  try {
    std::unique_ptr<ThreadPool> pool(new ThreadPool);
    pool->workers_.reserve(static_cast<std::size_t>(threads > 0 ? threads - 1 : 0));
    for (int slot = 1; slot < threads; ++slot)
      pool->workers_.emplace_back([p = pool.get(), slot] { p->work(slot); });
    return pool;
  } catch (const std::system_error& error) {
    return Error{ErrorCode::out_of_memory, fmt::format("cannot start {} threads: {}", threads, error.what())};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, fmt::format("cannot start {} threads: out of memory", threads)};
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_tasks(int slot) {
  const Job job = job_;
  for (;;) {
    const std::int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= job.tasks) return;
    job.call(job.context, task, slot);
  }
}

void ThreadPool::run_job(const Job& job) {
  if (job.tasks <= 1 || workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t task = 0; task < job.tasks; ++task) job.call(job.context, task, 0);
    return;
  }
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  state_.store(open_bit, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  take_tasks(0);
  // No task is left: whoever has not come yet is not needed.
  std::uint32_t inside = state_.fetch_and(~open_bit, std::memory_order_acq_rel) & ~open_bit;
  for (int looks = 0; inside != 0; inside = state_.load(std::memory_order_acquire)) {
    if (++looks < looks_before_sleep) {
      pause();
    } else {
      state_.wait(inside, std::memory_order_acquire);
    }
  }
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::work(int slot) {
  const SingleThreaded single;
  std::uint32_t seen = 0;
  for (;;) {
    std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
    for (int looks = 0; epoch == seen; epoch = epoch_.load(std::memory_order_acquire)) {
      if (++looks < looks_before_sleep) {
        pause();
      } else {
        epoch_.wait(seen, std::memory_order_acquire);
      }
    }
    seen = epoch;
    if (stop_.load(std::memory_order_acquire)) return;
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    bool entered = false;
    while ((state & open_bit) != 0 && !entered) {
      entered = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                             std::memory_order_relaxed);
    }
    if (!entered) continue;
    take_tasks(slot);
    state_.fetch_sub(1, std::memory_order_acq_rel);
    state_.notify_all();
  }
}

}  // namespace ingot::cpu
