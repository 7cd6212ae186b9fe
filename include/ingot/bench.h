// SPDX-License-Identifier: Apache-2.0
//
// The ladder: one MLP run every way there is on one device, each checked against float64 before it is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ingot/engine.h"
#include "ingot/mlp.h"
#include "ingot/plan.h"
#include "ingot/status.h"

namespace ingot {

struct TimeStats {
  double median_us = 0, min_us = 0, max_us = 0;
  int samples = 0;
};

struct RungResult {
  Candidate candidate;                   ///< rung, tile, launches, bytes, forecast
  bool chosen = false;                   ///< what the planner picks
  std::vector<KernelPlan> kernels{};     ///< of two_kernel and one_kernel
  TimeStats time;                        ///< samples 0: not timed, because the result was wrong
  std::optional<double> sustained_us{};  ///< GPU: replayed back to back, when the card is hot
  std::optional<double> speedup;  ///< median of `unfused` / median of this; unset when either was not timed
  double error = 0;               ///< ||y - exact|| / ||exact|| against float64, on a slice of rows
  double framework_error = 0;     ///< of the unfused framework's roundings on the same rows
  double bound = 0;               ///< the error must not exceed this
  bool ok = false;
  std::string reason;  ///< why not ok
};

/// A rung that was not run, which is no failure.
struct SkippedRung {
  Rung rung = Rung::unfused;
  std::string reason;
};

/// What no fusion can go below, from the description's rates.
struct Floor {
  double flops = 0;
  double bytes = 0;  ///< inputs, weights and output once
  double compute_us = 0, memory_us = 0;
};

struct Ladder {
  DeviceDescription device;
  Mlp mlp;
  std::int64_t tokens = 0;
  Numerics numerics = Numerics::match;
  GateLayout layout = GateLayout::separate;
  std::uint64_t seed = 0;
  Floor floor;
  std::vector<RungResult> rungs;  ///< in the order of Rung
  std::vector<SkippedRung>
      skipped{};          ///< rungs of the device that need what is not here, or that this MLP has not
  std::string library{};  ///< GPU: the vendor's library, "cuBLASLt 13.1.0"; "" when it is not at hand
  int copies = 1;         ///< GPU: sets of weights and inputs taken in turn, so that the cache holds none

  bool ok() const;  ///< every rung is
};

struct BenchOptions {
  std::vector<Rung> rungs{};  ///< empty: all that the device has
  Numerics numerics = Numerics::match;
  GateLayout layout = GateLayout::separate;
  std::uint64_t seed = 1;                         ///< of weights and inputs
  int samples = 30;                               ///< per rung, at least, unless `most_seconds` end first
  double least_seconds = 0.25, most_seconds = 2;  ///< of measured time per rung
  double sustained_seconds = 0.2;                 ///< GPU: of back-to-back replay, three times per rung
  int copies =
      0;  ///< GPU: sets of weights and inputs; 0: as many as exceed three times the cache, at least 2
  std::function<void(double fraction, const std::string& what)> progress{};
};

/// Runs the ladder: prepares every rung, checks it, warms up, then times the rungs in turn, starting each
/// round with another one. On a GPU the time is that of a graph of calls, one for each set of weights and
/// inputs, by the device's clock, after a short idle; the order of the rungs is random. Errors
/// invalid_argument; out_of_memory: before anything is allocated when the machine has too little; device.
Result<Ladder> bench(const Engine& engine, const Mlp& mlp, std::int64_t tokens,
                     const BenchOptions& options = {});

/// What `tune` found.
struct Tuning {
  std::vector<KernelPlan> kernels;      ///< the fastest: two, or one of the whole MLP
  double time_us = 0, forecast_us = 0;  ///< measured: of the fastest, and of what was forecast to be
  int measured = 0;                     ///< ways, of two kernels and of one
};

/// Measures the tiles with the best forecasts for this MLP and number of tokens, as two kernels and as one
/// where there is one, checks them, and keeps the fastest in the cache folder for the number's class. Engines
/// opened from then on take it. Errors unsupported: the engine is not a GPU's, or no cache folder;
/// unreadable: it cannot be written; else as bench.
Result<Tuning> tune(const Engine& engine, const Mlp& mlp, std::int64_t tokens,
                    const BenchOptions& options = {});

struct DescribeOptions {
  int threads = 0;         ///< 0: one per processor
  bool remeasure = false;  ///< even when a stored measurement fits
  std::function<void(const std::string& warning)> warn{};
};

/// This machine's CPU with measured rates: the stored measurement if it is of this processor, library and
/// number of threads, else measured now (some seconds) and stored in the cache folder. A folder that cannot
/// be written is a warning. Errors invalid_argument: threads; out_of_memory.
Result<DeviceDescription> describe_cpu(const DescribeOptions& options = {});

}  // namespace ingot
