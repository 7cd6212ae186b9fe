// SPDX-License-Identifier: Apache-2.0
#include "profile/sampling.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace ingot::profile {

Result<double> SteadyTimer::seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  if (auto done = work(); !done) return done.error();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

namespace {

struct Tally {
  std::vector<double> samples;
  double total = 0;

  bool done(const SamplingLimits& limits) const {
    if (total >= limits.most_seconds) return true;
    return static_cast<int>(samples.size()) >= limits.samples && total >= limits.least_seconds;
  }
  double fraction(const SamplingLimits& limits) const {
    if (done(limits)) return 1;
    const double counted = static_cast<double>(samples.size()) / std::max(1, limits.samples);
    const double least = limits.least_seconds > 0 ? total / limits.least_seconds : 1;
    return std::max(total / limits.most_seconds, std::min({counted, least, 1.0}));
  }
};

}  // namespace

Result<std::vector<std::vector<double>>> sample(std::span<const Work> contenders, Timer& timer,
                                                const SamplingLimits& limits,
                                                const std::function<void(double fraction)>& progress) {
  for (const Work& work : contenders) {
    double total = 0;
    for (int run = 0; run < limits.warm_up_runs && (run == 0 || total < limits.warm_up_seconds); ++run) {
      const auto took = timer.seconds(work);
      if (!took) return took.error();
      total += *took;
    }
  }
  std::vector<Tally> tallies(contenders.size());
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(limits.shuffle);
  const auto unfinished = [&](const Tally& tally) { return !tally.done(limits); };
  for (std::size_t round = 0; std::any_of(tallies.begin(), tallies.end(), unfinished); ++round) {
    if (limits.shuffle != 0) {
      std::shuffle(order.begin(), order.end(), random);  // no one always behind the same other
    } else if (round > 0) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
    for (const std::size_t turn : order) {
      Tally& tally = tallies[turn];
      if (tally.done(limits)) continue;
      const auto took = timer.seconds(contenders[turn]);
      if (!took) return took.error();
      tally.samples.push_back(*took);
      tally.total += *took;
    }
    if (progress) {
      double sum = 0;
      for (const Tally& tally : tallies) sum += tally.fraction(limits);
      progress(sum / static_cast<double>(tallies.size()));
    }
  }
  std::vector<std::vector<double>> all;
  all.reserve(tallies.size());
  for (Tally& tally : tallies) all.push_back(std::move(tally.samples));
  return all;
}

TimeStats summarize(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size(), middle = n / 2;
  const double median = n % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  return {1e6 * median, 1e6 * seconds.front(), 1e6 * seconds.back(), static_cast<int>(n)};
}

}  // namespace ingot::profile
