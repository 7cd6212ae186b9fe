// SPDX-License-Identifier: Apache-2.0
#include "trace/link.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

namespace ingot::trace {

namespace {

/// Rows that carry an id, found by it. Ids mostly rise with the row, so the sort is mostly a check.
class IdIndex {
 public:
  explicit IdIndex(std::span<const std::uint64_t> ids) {
    entries_.reserve(ids.size());
    for (std::uint32_t row = 0; row < ids.size(); ++row) {
      if (ids[row] != no_id) entries_.push_back({ids[row], row});
    }
    if (!std::is_sorted(entries_.begin(), entries_.end())) std::sort(entries_.begin(), entries_.end());
  }

  /// Of the rows with this id, the first that `accepts`, else the first; `none` where there is none.
  template <class Accepts>
  std::uint32_t find(std::uint64_t id, Accepts accepts) const {
    if (id == no_id) return none;
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), Entry{id, 0});
    if (first == entries_.end() || first->id != id) return none;
    for (auto at = first; at != entries_.end() && at->id == id; ++at) {
      if (accepts(at->row)) return at->row;
    }
    return first->row;
  }

 private:
  struct Entry {
    std::uint64_t id;
    std::uint32_t row;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries_;
};

bool holds(std::int64_t ts_ns, std::int64_t dur_ns, std::int64_t time_ns) {
  return ts_ns <= time_ns && time_ns <= ts_ns + dur_ns;
}

/// Finds the CPU annotation of device work that has no launch call: the one whose device lane holds it in
/// time.
class DeviceLanes {
 public:
  DeviceLanes(const Trace& trace, const IdIndex& annotation_ids)
      : trace_(trace),
        ids_(annotation_ids),
        nesting_(nest(trace.gpu_annotations.thread, trace.gpu_annotations.ts_ns, trace.gpu_annotations.dur_ns,
                      trace.threads.size())) {
    for (const std::uint32_t thread : trace.gpu_annotations.thread)
      thread_of_.emplace(trace.threads[thread].tid, thread);
  }

  std::uint32_t annotation_of(std::uint32_t activity) const {
    const auto& lanes = trace_.gpu_annotations;
    if (lanes.size() == 0) return none;
    const auto thread = thread_of_.find(std::to_string(trace_.gpu.stream[activity]));
    if (thread == thread_of_.end()) return none;
    const std::uint32_t lane =
        nesting_.innermost(thread->second, trace_.gpu.ts_ns[activity], lanes.ts_ns, lanes.dur_ns);
    if (lane == none) return none;
    const auto same_name = [&](std::uint32_t row) {
      return trace_.annotations.name[row] == lanes.name[lane];
    };
    const std::uint32_t row = ids_.find(lanes.external_id[lane], same_name);
    return row != none && same_name(row) ? row : none;
  }

 private:
  const Trace& trace_;
  const IdIndex& ids_;
  Nesting nesting_;
  std::unordered_map<std::string, std::uint32_t> thread_of_;  // stream number as text → thread
};

/// The annotation in force where and when an API call was made. Threads without any (autograd's, a library's
/// own) fall back to the profiler step of that moment.
class CallAnnotations {
 public:
  CallAnnotations(const Trace& trace, const Nesting& nesting) : rows_(trace.annotations), nesting_(nesting) {
    for (std::uint32_t row = 0; row < rows_.size(); ++row) {
      if (trace.strings[rows_.name[row]].starts_with("ProfilerStep")) steps_.push_back(row);
    }
    std::sort(steps_.begin(), steps_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return rows_.ts_ns[a] < rows_.ts_ns[b]; });
  }

  std::uint32_t at(std::uint32_t thread, std::int64_t time_ns) const {
    const std::uint32_t row = nesting_.innermost(thread, time_ns, rows_.ts_ns, rows_.dur_ns);
    if (row != none) return row;
    const auto after =
        std::upper_bound(steps_.begin(), steps_.end(), time_ns,
                         [&](std::int64_t time, std::uint32_t step) { return time < rows_.ts_ns[step]; });
    if (after == steps_.begin()) return none;
    const std::uint32_t step = *(after - 1);
    return holds(rows_.ts_ns[step], rows_.dur_ns[step], time_ns) ? step : none;
  }

 private:
  const Annotations& rows_;
  const Nesting& nesting_;
  std::vector<std::uint32_t> steps_;  // by start
};

}  // namespace

std::uint32_t Nesting::innermost(std::uint32_t thread, std::int64_t time_ns,
                                 std::span<const std::int64_t> ts_ns,
                                 std::span<const std::int64_t> dur_ns) const {
  const auto begin = order.begin() + thread_begin[thread];
  const auto end = order.begin() + thread_begin[thread + 1];
  const auto after = std::upper_bound(
      begin, end, time_ns, [&](std::int64_t time, std::uint32_t row) { return time < ts_ns[row]; });
  if (after == begin) return none;
  std::uint32_t row = *(after - 1);
  while (row != none && !holds(ts_ns[row], dur_ns[row], time_ns)) row = parent[row];
  return row;
}

Nesting nest(std::span<const std::uint32_t> thread, std::span<const std::int64_t> ts_ns,
             std::span<const std::int64_t> dur_ns, std::size_t threads, std::int64_t slack_ns) {
  const std::size_t rows = ts_ns.size();
  Nesting result;
  result.order.resize(rows);
  std::iota(result.order.begin(), result.order.end(), 0U);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (thread[a] != thread[b]) return thread[a] < thread[b];
    if (ts_ns[a] != ts_ns[b]) return ts_ns[a] < ts_ns[b];
    if (dur_ns[a] != dur_ns[b]) return dur_ns[a] > dur_ns[b];
    return a < b;
  };
  if (!std::is_sorted(result.order.begin(), result.order.end(), before)) {
    std::sort(result.order.begin(), result.order.end(), before);
  }

  result.position.resize(rows);
  result.parent.assign(rows, none);
  result.thread_begin.assign(threads + 1, static_cast<std::uint32_t>(rows));
  std::vector<std::uint32_t> open;  // enclosing rows of the current place, outermost first
  for (std::uint32_t place = 0; place < rows; ++place) {
    const std::uint32_t row = result.order[place];
    result.position[row] = place;
    if (place == 0 || thread[result.order[place - 1]] != thread[row]) open.clear();
    const std::int64_t end = ts_ns[row] + dur_ns[row];
    // Preorder needs every open row to enclose the next one, so a row that is merely overlapped is closed
    // here.
    while (!open.empty()) {
      const std::int64_t open_end = ts_ns[open.back()] + dur_ns[open.back()];
      if (open_end > ts_ns[row] && open_end + slack_ns >= end) break;
      open.pop_back();
    }
    if (!open.empty()) result.parent[row] = open.back();
    open.push_back(row);
  }

  std::uint32_t place = 0;
  for (std::uint32_t t = 0; t < threads; ++t) {
    result.thread_begin[t] = place;
    while (place < rows && thread[result.order[place]] == t) ++place;
  }

  result.subtree_end.resize(rows);
  for (std::uint32_t at = static_cast<std::uint32_t>(rows); at-- > 0;) {
    result.subtree_end[at] = std::max(result.subtree_end[at], at + 1);
    const std::uint32_t up = result.parent[result.order[at]];
    if (up != none) {
      std::uint32_t& up_end = result.subtree_end[result.position[up]];
      up_end = std::max(up_end, result.subtree_end[at]);
    }
  }
  return result;
}

std::span<const std::uint32_t> Links::launched_by(std::uint32_t op) const {
  const std::uint32_t first_place = ops.position[op];
  const std::uint32_t last_place = ops.subtree_end[first_place];
  const auto first = std::lower_bound(operator_places_.begin(), operator_places_.end(), first_place);
  const auto last = std::lower_bound(first, operator_places_.end(), last_place);
  const auto offset = static_cast<std::size_t>(first - operator_places_.begin());
  return std::span(by_operator).subspan(offset, static_cast<std::size_t>(last - first));
}

Links link(const Trace& trace) {
  Links links;
  const auto& ops = trace.ops;
  const auto& calls = trace.calls;
  const auto& gpu = trace.gpu;
  const auto& annotations = trace.annotations;
  links.ops = nest(ops.thread, ops.ts_ns, ops.dur_ns, trace.threads.size());
  links.annotations = nest(annotations.thread, annotations.ts_ns, annotations.dur_ns, trace.threads.size());

  // External ids name operators and annotations alike, and files exist that use one twice: an operator whose
  // interval holds the call is preferred, and an id that only an annotation has leads to no operator.
  const IdIndex op_ids(ops.external_id);
  const IdIndex annotation_ids(annotations.external_id);
  links.call_op.resize(calls.size());
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    const auto around = [&](std::uint32_t op) {
      return ops.thread[op] == calls.thread[call] && holds(ops.ts_ns[op], ops.dur_ns[op], calls.ts_ns[call]);
    };
    std::uint32_t op = op_ids.find(calls.external_id[call], around);
    if (op == none) op = links.ops.innermost(calls.thread[call], calls.ts_ns[call], ops.ts_ns, ops.dur_ns);
    links.call_op[call] = op;
  }

  const IdIndex correlations(calls.correlation);
  links.activity_call.resize(gpu.size());
  links.activity_op.resize(gpu.size());
  links.activity_annotation.resize(gpu.size());
  const CallAnnotations call_annotations(trace, links.annotations);
  const DeviceLanes lanes(trace, annotation_ids);
  for (std::uint32_t activity = 0; activity < gpu.size(); ++activity) {
    const auto earlier = [&](std::uint32_t call) { return calls.ts_ns[call] <= gpu.ts_ns[activity]; };
    const std::uint32_t call = correlations.find(gpu.correlation[activity], earlier);
    links.activity_call[activity] = call;
    std::uint32_t op = none;
    std::uint32_t annotation = none;
    if (call != none) {
      if (gpu.ts_ns[activity] < calls.ts_ns[call]) ++links.late_activities;
      op = links.call_op[call];
      annotation = call_annotations.at(calls.thread[call], calls.ts_ns[call]);
    } else {
      if (gpu.correlation[activity] != no_id) ++links.unlinked_activities;
      op = op_ids.find(gpu.external_id[activity], [](std::uint32_t) { return true; });
      annotation =
          op != none ? call_annotations.at(ops.thread[op], ops.ts_ns[op]) : lanes.annotation_of(activity);
    }
    links.activity_op[activity] = op;
    links.activity_annotation[activity] = annotation;
  }

  links.by_start.resize(gpu.size());
  std::iota(links.by_start.begin(), links.by_start.end(), 0U);
  const auto starts_before = [&](std::uint32_t a, std::uint32_t b) {
    if (gpu.ts_ns[a] != gpu.ts_ns[b]) return gpu.ts_ns[a] < gpu.ts_ns[b];
    return a < b;
  };
  if (!std::is_sorted(links.by_start.begin(), links.by_start.end(), starts_before)) {
    std::sort(links.by_start.begin(), links.by_start.end(), starts_before);
  }
  for (const std::uint32_t activity : links.by_start) {
    if (links.activity_op[activity] != none) links.by_operator.push_back(activity);
  }
  std::stable_sort(links.by_operator.begin(), links.by_operator.end(), [&](std::uint32_t a, std::uint32_t b) {
    return links.ops.position[links.activity_op[a]] < links.ops.position[links.activity_op[b]];
  });
  links.operator_places_.reserve(links.by_operator.size());
  for (const std::uint32_t activity : links.by_operator) {
    links.operator_places_.push_back(links.ops.position[links.activity_op[activity]]);
  }
  return links;
}

}  // namespace ingot::trace
