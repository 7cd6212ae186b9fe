// SPDX-License-Identifier: Apache-2.0
//
// Threads for parallel phases that last from tens of microseconds up. Plain std::thread and atomics: the GEMM
// library is only ever called single-threaded from here, so that `threads` means what it says, nothing spins
// between calls for long, several callers may run at once, and ThreadSanitizer sees every synchronisation (it
// cannot see into OpenMP).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "ingot/status.h"

namespace ingot::cpu {

class ThreadPool {
 public:
  /// `threads` counts the caller: threads - 1 are started. Error out_of_memory when the system refuses.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, slot) for every task in [0, tasks) and returns when all are done. `slot` is in [0,
  /// threads()), and no two calls of one run have the same slot at the same time. Tasks start in order. May
  /// be called by several threads at once: while the workers serve one, the others do their own tasks alone.
  /// Allocates nothing.
  template <class Body>
  void run(std::int64_t tasks, const Body& body) {
    run_job({tasks, &body, [](const void* context, std::int64_t task, int slot) {
               (*static_cast<const Body*>(context))(task, slot);
             }});
  }

 private:
  struct Job {
    std::int64_t tasks = 0;
    const void* context = nullptr;
    void (*call)(const void* context, std::int64_t task, int slot) = nullptr;
  };

  ThreadPool() = default;
  void run_job(const Job& job);
  void take_tasks(int slot);
  void work(int slot);

  // state_: bit 31 open (a job takes helpers), below it the number of helpers inside. Helpers enter by adding
  // one to an open state; the owner closes it and waits for zero, so that no one touches the job after
  // run_job returns.
  static constexpr std::uint32_t open_bit = 1U << 31;
  std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> epoch_{0};  // counts jobs and the stop: what idle workers wait on
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> next_{0};
  Job job_;
  std::vector<std::thread> workers_;
};

}  // namespace ingot::cpu
