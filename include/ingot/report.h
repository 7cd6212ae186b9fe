// SPDX-License-Identifier: Apache-2.0
//
// Results as text for people and as JSON for programs. Every function returns the whole document; none
// prints.
#pragma once

#include <string>
#include <vector>

#include "ingot/bench.h"
#include "ingot/cache.h"
#include "ingot/cost.h"
#include "ingot/diff.h"
#include "ingot/doctor.h"
#include "ingot/explain.h"
#include "ingot/mlp.h"
#include "ingot/plan.h"

namespace ingot::report {

struct TextOptions {
  bool color = false;  ///< ANSI colours; the caller knows whether a terminal reads
  int width = 110;     ///< columns to aim for
  bool all = false;    ///< every row of every table, not the top ones
};

std::string text(const Explanation& explanation, const TextOptions& options = {});
std::string text(const Diff& diff, const TextOptions& options = {});

/// schema "ingot.explain/1" and "ingot.diff/1"; ends with a newline.
std::string json(const Explanation& explanation);
std::string json(const Diff& diff);

/// The trace as Chrome-trace JSON, for Perfetto and other readers of the profiler's files: all that was read
/// of it (operators, calls, device work, annotations; no Python frames), and as a process "Ingot" the
/// findings, and from the explanation's timeline the MLPs and the device's idle time. The explanation must be
/// the trace's own.
std::string perfetto(const trace::Trace& trace, const Explanation& explanation);

std::string text(const Ladder& ladder, const TextOptions& options = {});
std::string text(const Plan& plan, const TextOptions& options = {});
std::string text(const std::vector<KnownModel>& models, const TextOptions& options = {});
std::string text(const Machine& machine, const TextOptions& options = {});

std::string text(const Cost& cost, const TextOptions& options = {});
/// One line a cost: the same with more and more videos at once.
std::string text(const std::vector<Cost>& sweep, const TextOptions& options = {});

std::string text(const CacheListing& listing, const TextOptions& options = {});
std::string text(const CacheCleared& cleared, const TextOptions& options = {});
std::string text(const CacheWarmed& warmed, const TextOptions& options = {});

/// schema "ingot.bench/1", "ingot.plan/1", "ingot.models/1" and "ingot.doctor/1".
std::string json(const Ladder& ladder);
std::string json(const Plan& plan);
std::string json(const std::vector<KnownModel>& models);
std::string json(const Machine& machine);
/// schema "ingot.cost/1"; several: a list `sweep` of what a single one has.
std::string json(const Cost& cost);
std::string json(const std::vector<Cost>& sweep);
/// schema "ingot.cache/1"; only the listing has `limit_bytes`, only what was removed has `removed`.
std::string json(const CacheListing& listing);
std::string json(const CacheCleared& cleared);
std::string json(const CacheWarmed& warmed);
/// Several ladders of one trace: schema "ingot.bench/1" with `trace` and a list `ladders` of what a single
/// one has.
std::string json(const std::string& trace, const std::vector<Ladder>& ladders);

}  // namespace ingot::report
