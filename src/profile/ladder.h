// SPDX-License-Identifier: Apache-2.0
//
// The ladder's inside, with the rungs and the timer handed in.
#pragma once

#include <vector>

#include "ingot/bench.h"
#include "profile/timer.h"

namespace ingot::profile {

/// One rung, prepared.
struct Subject {
  Rung rung = Rung::unfused;
  PreparedMlp prepared;
};

/// Weights and inputs of a ladder: random, the same for a seed on every machine.
class Problem {
 public:
  /// Error out_of_memory.
  static Result<Problem> make(const Mlp& mlp, std::int64_t tokens, GateLayout layout, std::uint64_t seed);

  const Mlp& mlp() const { return mlp_; }
  std::int64_t tokens() const { return tokens_; }
  GateLayout layout() const { return layout_; }
  Weights weights() const;
  const void* x() const { return x_.get(); }

  /// Bytes make() will allocate.
  static double bytes(const Mlp& mlp, std::int64_t tokens);

 private:
  struct Free {
    void operator()(void* pointer) const;
  };
  using Memory = std::unique_ptr<void, Free>;
  Problem() = default;

  Mlp mlp_;
  std::int64_t tokens_ = 0;
  GateLayout layout_ = GateLayout::separate;
  Memory up_, gate_, down_, up_bias_, gate_bias_, down_bias_, x_;
};

/// Checks, then times, then checks that the result is still the same to the bit. Errors: of a rung that
/// cannot run, out_of_memory.
Result<Ladder> run_ladder(const Problem& problem, const std::vector<Subject>& subjects,
                          const DeviceDescription& device, const BenchOptions& options, Timer& timer);

}  // namespace ingot::profile
