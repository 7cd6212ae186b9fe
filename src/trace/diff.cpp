// SPDX-License-Identifier: Apache-2.0
#include "ingot/diff.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>

#include "trace/context.h"

namespace ingot {

namespace trace {

namespace {

struct Sum {
  std::uint64_t count = 0;
  double us = 0;
};

/// Operators and kernels of one trace inside a region (or all of them), summed by name.
struct Side {
  double calls = 1;
  std::map<std::string, Sum, std::less<>> ops, kernels;
  std::map<std::string, KernelName, std::less<>> decoded;
};

bool in_region(const Context& context, std::uint32_t annotation, std::string_view region) {
  for (; annotation != none; annotation = context.links.annotations.parent[annotation]) {
    if (region_name(context.trace.strings[context.trace.annotations.name[annotation]]) == region) return true;
  }
  return false;
}

Side collect(Context& context, const std::vector<Region>& regions, const std::string& basis) {
  Side side;
  const Trace& trace = context.trace;
  const bool whole = basis == "trace";
  for (const Region& region : regions) {
    if (region.name == basis && !whole) side.calls = static_cast<double>(region.calls);
  }
  std::vector<std::int64_t> self_ns(trace.ops.dur_ns);
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    const std::uint32_t parent = context.links.ops.parent[op];
    if (parent != none) self_ns[parent] -= trace.ops.dur_ns[op];
  }
  const auto& annotations = trace.annotations;
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    const std::uint32_t annotation = context.links.annotations.innermost(
        trace.ops.thread[op], trace.ops.ts_ns[op], annotations.ts_ns, annotations.dur_ns);
    if (!whole && !in_region(context, annotation, basis)) continue;
    Sum& sum = side.ops[std::string(trace.strings[trace.ops.name[op]])];
    ++sum.count;
    sum.us += context.us(std::max<std::int64_t>(0, self_ns[op]));
  }
  for (std::uint32_t activity = 0; activity < trace.gpu.size(); ++activity) {
    if (!whole && !in_region(context, context.links.activity_annotation[activity], basis)) continue;
    const std::string name = demangle(trace.strings[trace.gpu.name[activity]]);
    Sum& sum = side.kernels[name];
    ++sum.count;
    sum.us += context.duration_us(activity);
    if (sum.count == 1) {
      side.decoded[name] = context.names.of(trace.gpu.name[activity]);
      if (trace.gpu.kind[activity] != ActivityKind::kernel) {
        side.decoded[name].kind = KernelKind::copy;
        side.decoded[name].short_name = name;
      }
    }
  }
  return side;
}

DiffCount count(const std::string& name, const Side& before, const Side& after,
                const std::map<std::string, Sum, std::less<>> Side::*table) {
  DiffCount result;
  result.name = result.short_name = name;
  for (const Side* side : {&before, &after}) {
    if (const auto at = side->decoded.find(name); at != side->decoded.end())
      result.short_name = at->second.short_name;
  }
  if (const auto at = (before.*table).find(name); at != (before.*table).end()) {
    result.before = static_cast<double>(at->second.count) / before.calls;
    result.before_us = at->second.us / before.calls;
  }
  if (const auto at = (after.*table).find(name); at != (after.*table).end()) {
    result.after = static_cast<double>(at->second.count) / after.calls;
    result.after_us = at->second.us / after.calls;
  }
  return result;
}

/// Words that say what a kernel computes: its fused operators, or its kind.
std::set<std::string> purpose(const KernelName& name) {
  std::set<std::string> words;
  for (const std::string& word : name.fused) words.insert(word.starts_with("gelu") ? "gelu" : word);
  if (words.empty()) words.insert(std::string(to_string(name.kind)));
  return words;
}

void pair_replacements(const Side& before, const Side& after, Diff& diff) {
  std::set<std::string> used;
  for (const DiffCount& fresh : diff.kernels_new) {
    const KernelName& name = after.decoded.at(fresh.name);
    const std::set<std::string> words = purpose(name);
    DiffReplacement replacement;
    for (const DiffCount& gone : diff.kernels_gone) {
      const KernelName& old = before.decoded.at(gone.name);
      const std::set<std::string> old_words = purpose(old);
      if (used.contains(gone.name) ||
          !std::includes(words.begin(), words.end(), old_words.begin(), old_words.end()))
        continue;
      used.insert(gone.name);
      replacement.before.push_back(old.short_name);
    }
    if (replacement.before.empty()) continue;
    replacement.after.push_back(name.short_name);
    replacement.what = replacement.before.size() > 1 ? "fused" : "replaced";
    diff.replacements.push_back(std::move(replacement));
  }
}

}  // namespace

}  // namespace trace

namespace {

Diff diff_traces(const trace::Trace& before, const trace::Trace& after) {
  trace::Context b(before);
  trace::Context a(after);
  trace::group_kernels(b);
  trace::group_kernels(a);
  const std::vector<Region> before_regions = trace::find_regions(b);
  const std::vector<Region> after_regions = trace::find_regions(a);

  Diff result;
  result.before_file = before.file;
  result.after_file = after.file;
  result.basis = "trace";
  for (const Region& x : before_regions) {
    for (const Region& y : after_regions) {
      if (x.name != y.name) continue;
      // Counts are per profiler step where both have steps, else per call of the first region they share.
      if (result.basis == "trace" || x.name == "ProfilerStep") result.basis = x.name;
      result.regions.push_back({.name = x.name,
                                .calls_before = x.calls,
                                .calls_after = y.calls,
                                .launches_before = x.launches_per_call,
                                .launches_after = y.launches_per_call,
                                .kernels_before = x.kernels_per_call,
                                .kernels_after = y.kernels_per_call,
                                .cpu_us_before = x.cpu_us,
                                .cpu_us_after = y.cpu_us,
                                .gpu_busy_us_before = x.gpu_busy_us,
                                .gpu_busy_us_after = y.gpu_busy_us});
    }
  }

  const trace::Side old_side = trace::collect(b, before_regions, result.basis);
  const trace::Side new_side = trace::collect(a, after_regions, result.basis);
  for (const auto& [name, sum] : old_side.ops) {
    if (!new_side.ops.contains(name))
      result.ops_gone.push_back(trace::count(name, old_side, new_side, &trace::Side::ops));
  }
  for (const auto& [name, sum] : new_side.ops) {
    if (!old_side.ops.contains(name))
      result.ops_new.push_back(trace::count(name, old_side, new_side, &trace::Side::ops));
  }
  for (const auto& [name, sum] : old_side.kernels) {
    auto& list = new_side.kernels.contains(name) ? result.kernels_identical : result.kernels_gone;
    list.push_back(trace::count(name, old_side, new_side, &trace::Side::kernels));
  }
  for (const auto& [name, sum] : new_side.kernels) {
    if (!old_side.kernels.contains(name)) {
      result.kernels_new.push_back(trace::count(name, old_side, new_side, &trace::Side::kernels));
    }
  }
  const auto heavier = [](const DiffCount& x, const DiffCount& y) {
    return x.before_us + x.after_us > y.before_us + y.after_us;
  };
  for (auto* list : {&result.ops_gone, &result.ops_new, &result.kernels_identical, &result.kernels_gone,
                     &result.kernels_new}) {
    std::stable_sort(list->begin(), list->end(), heavier);
  }
  trace::pair_replacements(old_side, new_side, result);
  return result;
}

}  // namespace

Result<Diff> diff(const trace::Trace& before, const trace::Trace& after) {
  try {
    return diff_traces(before, after);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 "not enough memory to compare " + before.file + " with " + after.file};
  }
}

}  // namespace ingot
