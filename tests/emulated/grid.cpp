// SPDX-License-Identifier: Apache-2.0
#include "emulated/grid.h"

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define INGOT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INGOT_ADDRESS_SANITIZER
#endif
#endif
#if defined(INGOT_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace ingot::emulated {
namespace {

constexpr int warp_lanes = 32;
constexpr std::size_t stack_bytes = 256U << 10U;

struct Copy {
  void* to;
  const void* from;
  unsigned valid_bytes;
};

/// A stack of its own, and where it was left. AddressSanitizer is told of every switch.
struct Coroutine {
  ucontext_t context{};
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;
};

enum class State { ready, waiting, done };

struct Thread {
  Coroutine coroutine;
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
  State state = State::done;
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
};

struct Warp {
  std::array<void*, warp_lanes> lanes{};
  int arrived = 0;
  WarpOperation operation = nullptr;
};

struct FreeBytes {
  void operator()(unsigned char* p) const { ::operator delete (p, std::align_val_t{128}); }
};

class Grid {
 public:
  Grid(int threads, std::size_t shared_bytes, const std::function<void()>& body)
      : body_(body),
        threads_(static_cast<std::size_t>(threads)),
        warps_(static_cast<std::size_t>(threads / warp_lanes)),
        shared_bytes_(shared_bytes),
        shared_(static_cast<unsigned char*>(::operator new (shared_bytes, std::align_val_t{128}))) {}

  void run_block(unsigned block) {
    block_ = block;
    at_barrier_ = 0;
    std::memset(shared_.get(), 0xff, shared_bytes_);
    for (Warp& warp : warps_) warp = Warp{};
    for (Thread& thread : threads_) start(thread);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < threads_.size() && !failure_; ++i) {
        if (threads_[i].state != State::ready) continue;
        moved = true;
        switch_to(scheduler_, static_cast<int>(i));
      }
      if (failure_) std::rethrow_exception(failure_);
    }
    for (const Thread& thread : threads_) {
      if (thread.state != State::done) throw std::logic_error("threads wait for others that have ended");
    }
  }

  void barrier() {
    if (++at_barrier_ == static_cast<int>(threads_.size())) {
      at_barrier_ = 0;
      for (Thread& thread : threads_) {
        if (thread.state == State::waiting) thread.state = State::ready;
      }
      return;
    }
    wait();
  }

  void together(void* mine, WarpOperation run) {
    Warp& warp = warps_[static_cast<std::size_t>(running_ / warp_lanes)];
    if (warp.arrived > 0 && warp.operation != run) {
      throw std::logic_error("lanes of a warp make different operations");
    }
    warp.operation = run;
    warp.lanes[static_cast<std::size_t>(running_ % warp_lanes)] = mine;
    if (++warp.arrived == warp_lanes) {
      warp.arrived = 0;
      run(warp.lanes.data());
      const int first = running_ / warp_lanes * warp_lanes;
      for (int i = first; i < first + warp_lanes; ++i) {
        if (i != running_) thread(i).state = State::ready;
      }
      return;
    }
    wait();
  }

  Thread& self() { return thread(running_); }
  int running() const { return running_; }
  unsigned block() const { return block_; }
  unsigned char* shared() const { return shared_.get(); }

 private:
  Thread& thread(int i) { return threads_[static_cast<std::size_t>(i)]; }

  void start(Thread& thread) {
    thread.state = State::ready;
    thread.open.clear();
    thread.groups.clear();
    thread.coroutine = Coroutine{};
    thread.coroutine.bottom = thread.stack.get();
    thread.coroutine.bytes = stack_bytes;
    getcontext(&thread.coroutine.context);
    thread.coroutine.context.uc_stack.ss_sp = thread.stack.get();
    thread.coroutine.context.uc_stack.ss_size = stack_bytes;
    thread.coroutine.context.uc_link = nullptr;
    makecontext(&thread.coroutine.context, &Grid::enter, 0);
  }

  static void enter();

  void run_thread() {
    try {
      body_();
    } catch (...) {
      failure_ = std::current_exception();
    }
    self().state = State::done;
    leave_for_good();
  }

  /// Until another thread makes this one ready: the next ready lane of the warp runs, or the scheduler.
  void wait() {
    self().state = State::waiting;
    const int first = running_ / warp_lanes * warp_lanes, lane = running_ - first;
    int next = scheduler;
    for (int step = 1; step < warp_lanes && next == scheduler; ++step) {
      const int other = first + (lane + step) % warp_lanes;
      if (thread(other).state == State::ready) next = other;
    }
    switch_to(self().coroutine, next);
  }

  void switch_to(Coroutine& from, int next) {
    Coroutine& to = next == scheduler ? scheduler_ : thread(next).coroutine;
    running_ = next;
#if defined(INGOT_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
    swapcontext(&from.context, &to.context);
#if defined(INGOT_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
  }
  void leave_for_good() {
    running_ = scheduler;
#if defined(INGOT_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(nullptr, scheduler_.bottom, scheduler_.bytes);
#endif
    setcontext(&scheduler_.context);
  }

  static constexpr int scheduler = -1;

  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::size_t shared_bytes_;
  std::unique_ptr<unsigned char, FreeBytes> shared_;
  Coroutine scheduler_;
  std::exception_ptr failure_;
  unsigned block_ = 0;
  int running_ = scheduler, at_barrier_ = 0;
};

// Device code asks "which thread am I" of no object: the running grid is found here.
thread_local Grid* playing = nullptr;

void Grid::enter() {
  Grid& grid = *playing;
#if defined(INGOT_ADDRESS_SANITIZER)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (grid.scheduler_.bottom == nullptr) {  // the first thread is entered from the scheduler's stack
    grid.scheduler_.bottom = bottom;
    grid.scheduler_.bytes = bytes;
  }
#endif
  grid.run_thread();
}

}  // namespace

void run_grid(long long blocks, int threads, std::size_t shared_bytes, const std::function<void()>& body) {
  Grid grid(threads, shared_bytes, body);
  playing = &grid;
  const std::unique_ptr<Grid*, void (*)(Grid**)> reset(&playing, [](Grid** p) { *p = nullptr; });
  for (long long block = 0; block < blocks; ++block) grid.run_block(static_cast<unsigned>(block));
}

unsigned thread_index() {
  return static_cast<unsigned>(playing->running());
}
unsigned block_index() {
  return playing->block();
}
unsigned char* shared_memory() {
  return playing->shared();
}
void barrier() {
  playing->barrier();
}
void together(void* mine, WarpOperation run) {
  playing->together(mine, run);
}

void start_copy(void* to, const void* from, unsigned valid_bytes) {
  check_aligned(to);
  check_aligned(from);
  playing->self().open.push_back({to, from, valid_bytes});
}
void close_copies() {
  Thread& self = playing->self();
  self.groups.push_back(std::move(self.open));
  self.open.clear();
}
void wait_for_copies(std::size_t pending_groups) {
  Thread& self = playing->self();
  while (self.groups.size() > pending_groups) {
    for (const Copy& copy : self.groups.front()) {
      std::memset(copy.to, 0, 16);
      std::memcpy(copy.to, copy.from, copy.valid_bytes);
    }
    self.groups.pop_front();
  }
}

void check_aligned(const void* at) {
  if (reinterpret_cast<std::uintptr_t>(at) % 16 != 0) {
    throw std::logic_error("an address is not a multiple of 16 bytes");
  }
}

}  // namespace ingot::emulated
