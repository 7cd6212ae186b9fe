// SPDX-License-Identifier: Apache-2.0
//
// One MLP on one engine, every rung ready to be timed, each checked against float64 when it is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpu/buffer.h"
#include "ingot/bench.h"
#include "profile/ladder.h"
#include "profile/sampling.h"

namespace ingot::bench_mlp {

/// Seconds of every round, for each contender in its place.
using Samples = std::vector<std::vector<double>>;

double middle(std::vector<double> values);
/// The middle of the ratios of runs that followed each other, which the drift of a machine's speed does not
/// reach.
double over(const std::vector<double>& a, const std::vector<double>& b);

struct Contender {
  std::string name;
  profile::Work work;
  double forecast_us = 0;
  bool right = true;  ///< its result is within its bound
};

class Contenders {
 public:
  /// Prints what is wrong and returns null when a rung cannot be made.
  static std::unique_ptr<Contenders> make(const Engine& engine, const Mlp& mlp, std::int64_t tokens,
                                          GateLayout layout, const std::vector<Rung>& rungs);

  std::vector<Contender>& all() { return all_; }
  Contender& named(const std::string& name);
  const profile::Problem& problem() const { return problem_; }

  /// Times them in turn.
  Samples samples(const profile::SamplingLimits& limits) const;

 private:
  explicit Contenders(profile::Problem problem) : problem_(std::move(problem)) {}
  bool add(const Engine& engine, Rung rung);

  profile::Problem problem_;
  std::vector<Contender> all_;
  std::vector<std::unique_ptr<cpu::Buffer<char>>> memory_;
};

/// Two decimals beside the figure it is held against: "1.42 (at least 1.35)", with MISSED when it is not met.
std::string at_least(double value, double figure);
std::string at_most(double value, double figure);

}  // namespace ingot::bench_mlp
