// SPDX-License-Identifier: Apache-2.0
//
// How a prepared MLP runs, by class of tokens.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <variant>

#include "gpu/mlp_launch.h"
#include "plan/linear.h"

namespace ingot::gpu {

/// Both linears of the MLP with the kernels of one class of tokens.
struct LinearPair {
  PreparedLinear first, second;
};
/// How the tokens of one class run.
using Route = std::variant<LinearPair, std::unique_ptr<const PreparedMlpKernel>>;

/// Routes found so far, by class of tokens and alignment of x and y. Reading takes no lock; a route stays
/// until the table goes.
class RouteTable {
 public:
  const Route* find(int token_class, bool aligned) const {
    return slots_[slot(token_class, aligned)].load(std::memory_order_acquire);
  }
  /// The route of that place, which another thread may have filled first.
  const Route* insert(int token_class, bool aligned, std::unique_ptr<const Route> route) {
    const Route* expected = nullptr;
    if (slots_[slot(token_class, aligned)].compare_exchange_strong(
            expected, route.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return route.release();
    }
    return expected;
  }
  RouteTable() = default;
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;
  ~RouteTable() {
    for (auto& place : slots_) delete place.load(std::memory_order_relaxed);
  }

 private:
  static std::size_t slot(int token_class, bool aligned) {
    return 2 * static_cast<std::size_t>(token_class) + (aligned ? 1 : 0);
  }
  std::array<std::atomic<const Route*>, 2 * std::size_t{token_classes}> slots_{};
};

}  // namespace ingot::gpu
