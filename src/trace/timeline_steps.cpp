// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline_steps.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ingot::trace {

namespace {

constexpr std::string_view profiler_step = "ProfilerStep";

/// The region whose calls are the steps; "" where there is no annotation.
std::string_view step_region(const Context& context) {
  const auto& annotations = context.trace.annotations;
  std::map<std::string_view, double> cpu;
  std::string_view most;
  for (std::uint32_t row = 0; row < annotations.size(); ++row) {
    const std::string_view name = region_name(context.trace.strings[annotations.name[row]]);
    if (name == profiler_step) return name;
    if (name.empty() || context.links.annotations.parent[row] != none) continue;
    if ((cpu[name] += context.us(annotations.dur_ns[row])) >= cpu[most]) most = name;
  }
  return most;
}

/// Calls `each(ts_ns, dur_ns)` for every event that a timeline may leave out.
template <class Each>
void for_each_event(const Trace& trace, Each each) {
  const auto columns = [&](const auto& table) {
    for (std::size_t i = 0; i < table.size(); ++i) each(table.ts_ns[i], table.dur_ns[i]);
  };
  columns(trace.ops);
  columns(trace.calls);
  columns(trace.gpu);
}

}  // namespace

std::vector<TimelineStep> find_steps(const Context& context) {
  const Trace& trace = context.trace;
  const std::string_view region = step_region(context);
  if (region.empty()) {
    return {{.name = "trace",
             .start_ns = 0,
             .end_ns = trace.last_ns - trace.first_ns,
             .activities = trace.gpu.size()}};
  }
  const auto& annotations = trace.annotations;
  std::vector<std::uint32_t> step_of(annotations.size(), none);
  std::vector<TimelineStep> steps;
  for (const std::uint32_t row : context.links.annotations.order) {
    const std::string_view name = trace.strings[annotations.name[row]];
    const std::uint32_t parent = context.links.annotations.parent[row];
    const std::uint32_t outer = parent == none ? none : step_of[parent];
    const bool is_step =
        region_name(name) == region && outer == none && (parent == none || region == profiler_step);
    step_of[row] = is_step ? static_cast<std::uint32_t>(steps.size()) : outer;
    if (!is_step) continue;
    const std::int64_t start = annotations.ts_ns[row] - trace.first_ns;
    steps.push_back(
        {.name = std::string(name), .start_ns = start, .end_ns = start + annotations.dur_ns[row]});
  }
  for (std::uint32_t activity = 0; activity < trace.gpu.size(); ++activity) {
    const std::uint32_t annotation = context.links.activity_annotation[activity];
    if (annotation == none || step_of[annotation] == none) continue;
    TimelineStep& step = steps[step_of[annotation]];
    const std::int64_t start = trace.gpu.ts_ns[activity] - trace.first_ns;
    ++step.activities;
    step.start_ns = std::min(step.start_ns, start);
    step.end_ns = std::max(step.end_ns, start + trace.gpu.dur_ns[activity]);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const TimelineStep& a, const TimelineStep& b) { return a.start_ns < b.start_ns; });
  return steps;
}

TimelineFilter::TimelineFilter(const Context& context, std::vector<TimelineStep>& steps,
                               std::size_t most_events)
    : first_ns_(context.trace.first_ns) {
  // By length: the median is what a step usually takes, and the longest what to look into.
  std::vector<std::uint32_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return steps[a].end_ns - steps[a].start_ns < steps[b].end_ns - steps[b].start_ns;
  });
  std::vector<std::uint32_t> working;
  for (const std::uint32_t step : order) {
    if (steps[step].activities != 0) working.push_back(step);
  }
  const std::vector<std::uint32_t>& usual = working.empty() ? order : working;
  if (!usual.empty()) typical_ = usual[(usual.size() - 1) / 2];

  const Trace& trace = context.trace;
  if (trace.ops.size() + trace.calls.size() + trace.gpu.size() <= most_events || steps.empty()) return;
  all_ = false;
  const std::uint32_t longest = order.back();
  std::sort(order.begin(), order.end());
  std::erase_if(order, [&](std::uint32_t step) { return step == typical_ || step == longest; });
  order.insert(order.begin(), {typical_, longest});
  std::vector<std::int64_t> starts;
  for_each_event(trace, [&](std::int64_t ts_ns, std::int64_t) { starts.push_back(ts_ns - first_ns_); });
  std::sort(starts.begin(), starts.end());
  std::size_t used = 0;
  bool first = true;
  for (TimelineStep& step : steps) step.kept = false;
  for (const std::uint32_t index : order) {
    TimelineStep& step = steps[index];
    if (step.kept) continue;
    const auto begin = std::lower_bound(starts.begin(), starts.end(), step.start_ns);
    const auto events = static_cast<std::size_t>(std::lower_bound(begin, starts.end(), step.end_ns) - begin);
    step.kept = first || used + events <= most_events;
    if (!step.kept) break;
    used += events;
    first = false;
  }
  merge(steps);
  if (used > most_events) drop_shortest(context, most_events);
}

void TimelineFilter::merge(const std::vector<TimelineStep>& steps) {
  for (const TimelineStep& step : steps) {  // in order of start
    if (!step.kept) continue;
    const Window window{step.start_ns + first_ns_, step.end_ns + first_ns_};
    if (!windows_.empty() && window.start_ns <= windows_.back().end_ns) {
      windows_.back().end_ns = std::max(windows_.back().end_ns, window.end_ns);
    } else {
      windows_.push_back(window);
    }
  }
}

void TimelineFilter::drop_shortest(const Context& context, std::size_t most_events) {
  std::vector<std::int64_t> durations;
  for_each_event(context.trace, [&](std::int64_t ts_ns, std::int64_t dur_ns) {
    if (ask(ts_ns, dur_ns) == Answer::keep) durations.push_back(dur_ns);
  });
  if (durations.size() <= most_events) return;
  const auto cut = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() - most_events - 1);
  std::nth_element(durations.begin(), cut, durations.end());
  shortest_ns_ = *cut + 1;  // what is as short as the longest of those that must go goes too
}

TimelineFilter::Answer TimelineFilter::ask(std::int64_t ts_ns, std::int64_t dur_ns) const {
  if (all_) return Answer::keep;
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), ts_ns + dur_ns,
                                      [](std::int64_t end, const Window& w) { return end < w.start_ns; });
  if (after == windows_.begin() || std::prev(after)->end_ns <= ts_ns) return Answer::outside;
  return dur_ns < shortest_ns_ ? Answer::too_short : Answer::keep;
}

}  // namespace ingot::trace
