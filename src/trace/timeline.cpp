// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "trace/timeline_steps.h"

namespace ingot {

std::string_view to_string(TimelineKind kind) {
  switch (kind) {
    case TimelineKind::region:
      return "region";
    case TimelineKind::op:
      return "op";
    case TimelineKind::quiet_op:
      return "quiet_op";
    case TimelineKind::call:
      return "call";
    case TimelineKind::kernel:
      return "kernel";
    case TimelineKind::memcpy:
      return "memcpy";
    case TimelineKind::memset:
      return "memset";
    case TimelineKind::wait_launch:
      return "wait_launch";
    case TimelineKind::wait_other:
      break;
  }
  return "wait_other";
}

namespace trace {

namespace {

constexpr std::uint32_t most_rows = 32;       ///< deeper nesting is drawn in the last row
constexpr std::size_t overview_parts = 1200;  ///< more than a wide screen shows apart

class Builder {
 public:
  Builder(const Context& context, std::size_t most_events)
      : context_(context),
        trace_(context.trace),
        steps_(find_steps(context)),
        filter_(context, steps_, most_events) {}

  Timeline take() {
    out_.span_ns = trace_.last_ns - trace_.first_ns;
    mark_launching();
    cpu_lanes();
    device_lanes();
    idle_lane();
    mlps();
    out_.typical_step = filter_.typical_step();
    out_.shortest_ns = filter_.shortest_ns();
    out_.steps = std::move(steps_);
    return std::move(out_);
  }

 private:
  struct Place {
    std::uint32_t lane = timeline_none, event = timeline_none;
  };

  /// Whether an event is to be drawn; counts what is not.
  bool keep(std::int64_t ts_ns, std::int64_t dur_ns) {
    switch (filter_.ask(ts_ns, dur_ns)) {
      case TimelineFilter::Answer::keep:
        return true;
      case TimelineFilter::Answer::outside:
        ++out_.events_left_out;
        return false;
      case TimelineFilter::Answer::too_short:
        break;
    }
    ++out_.short_left_out;
    return false;
  }

  std::uint32_t name(StringId id) {
    const auto [at, fresh] = names_.try_emplace(id, static_cast<std::uint32_t>(out_.names.size()));
    if (fresh) out_.names.emplace_back(trace_.strings[id]);
    return at->second;
  }

  TimelineEvent event(std::int64_t ts_ns, std::int64_t dur_ns, TimelineKind kind, std::uint32_t row,
                      std::uint32_t event_name) const {
    TimelineEvent made;
    made.start_ns = ts_ns - trace_.first_ns;
    made.dur_ns = dur_ns;
    made.kind = kind;
    made.row = row;
    made.name = event_name;
    return made;
  }

  void mark_launching() {
    launches_.assign(trace_.ops.size(), false);
    for (std::uint32_t op : context_.links.activity_op) {
      for (; op != none && !launches_[op]; op = context_.links.ops.parent[op]) launches_[op] = true;
    }
  }

  /// Adds the intervals of one thread, arranged by `nesting`, from row `first_row` on; returns the rows they
  /// take.
  template <class Table, class Kind>
  std::uint32_t add_nested(const Table& table, const Nesting& nesting, std::uint32_t thread,
                           std::uint32_t first_row, bool always, TimelineLane& lane, Kind kind) {
    std::uint32_t rows = 0;
    std::vector<std::uint32_t> ends;  // of the open rows' subtrees, as places
    for (std::uint32_t place = nesting.thread_begin[thread]; place < nesting.thread_begin[thread + 1];
         ++place) {
      while (!ends.empty() && ends.back() <= place) ends.pop_back();
      const std::uint32_t depth = std::min(static_cast<std::uint32_t>(ends.size()), most_rows - 1);
      ends.push_back(nesting.subtree_end[place]);
      const std::uint32_t row = nesting.order[place];
      if (!always && !keep(table.ts_ns[row], table.dur_ns[row])) continue;
      rows = std::max(rows, depth + 1);
      lane.events.push_back(
          event(table.ts_ns[row], table.dur_ns[row], kind(row), first_row + depth, name(table.name[row])));
    }
    return rows;
  }

  void cpu_lanes() {
    const auto& calls = trace_.calls;
    std::vector<std::vector<std::uint32_t>> calls_of(trace_.threads.size());
    for (std::uint32_t call = 0; call < calls.size(); ++call) calls_of[calls.thread[call]].push_back(call);
    call_place_.resize(calls.size());
    lane_of_thread_.assign(trace_.threads.size(), timeline_none);
    for (std::uint32_t thread = 0; thread < trace_.threads.size(); ++thread) {
      TimelineLane lane;
      lane.rows = add_nested(trace_.annotations, context_.links.annotations, thread, 0, true, lane,
                             [](std::uint32_t) { return TimelineKind::region; });
      lane.rows += add_nested(
          trace_.ops, context_.links.ops, thread, lane.rows, false, lane,
          [&](std::uint32_t op) { return launches_[op] ? TimelineKind::op : TimelineKind::quiet_op; });
      std::vector<std::uint32_t>& own = calls_of[thread];
      std::stable_sort(own.begin(), own.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return calls.ts_ns[a] < calls.ts_ns[b]; });
      bool any = false;
      for (const std::uint32_t call : own) {
        if (!keep(calls.ts_ns[call], calls.dur_ns[call])) continue;
        any = true;
        call_place_[call] = {static_cast<std::uint32_t>(out_.lanes.size()),
                             static_cast<std::uint32_t>(lane.events.size())};
        lane.events.push_back(event(calls.ts_ns[call], calls.dur_ns[call], TimelineKind::call, lane.rows,
                                    name(calls.name[call])));
      }
      lane.rows += any ? 1 : 0;
      if (lane.events.empty()) continue;
      lane.label = "CPU thread " + trace_.threads[thread].tid;
      lane_of_thread_[thread] = static_cast<std::uint32_t>(out_.lanes.size());
      out_.lanes.push_back(std::move(lane));
    }
  }

  void device_lanes() {
    const auto& gpu = trace_.gpu;
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> streams;
    for (const std::uint32_t activity : context_.links.by_start) {
      if (keep(gpu.ts_ns[activity], gpu.dur_ns[activity]))
        streams[{gpu.device[activity], gpu.stream[activity]}].push_back(activity);
    }
    activity_place_.resize(gpu.size());
    for (const auto& [stream, activities] : streams) {
      TimelineLane lane;
      lane.device = true;
      lane.rows = 1;
      if (stream.first >= 0) lane.label = "GPU " + std::to_string(stream.first);
      if (stream.second >= 0)
        lane.label += (lane.label.empty() ? "stream " : ", stream ") + std::to_string(stream.second);
      if (lane.label.empty()) lane.label = "GPU";
      for (const std::uint32_t activity : activities) {
        const TimelineKind kind = gpu.kind[activity] == ActivityKind::kernel   ? TimelineKind::kernel
                                  : gpu.kind[activity] == ActivityKind::memcpy ? TimelineKind::memcpy
                                                                               : TimelineKind::memset;
        TimelineEvent made = event(gpu.ts_ns[activity], gpu.dur_ns[activity], kind, 0,
                                   context_.row_of[context_.group_of[activity]]);
        if (const std::uint32_t call = context_.links.activity_call[activity]; call != none) {
          made.call_lane = call_place_[call].lane;
          made.call = call_place_[call].event;
        }
        activity_place_[activity] = {static_cast<std::uint32_t>(out_.lanes.size()),
                                     static_cast<std::uint32_t>(lane.events.size())};
        lane.events.push_back(made);
      }
      out_.lanes.push_back(std::move(lane));
    }
  }

  /// Adds a stretch of the device's time, in nanoseconds since the first event, to the overview.
  void add_share(std::int64_t start_ns, std::int64_t end_ns, float TimelineShare::*what) {
    if (out_.span_ns <= 0 || out_.overview.empty()) return;
    const double part = static_cast<double>(out_.span_ns) / static_cast<double>(out_.overview.size());
    const double start = std::max(0.0, static_cast<double>(start_ns) / part);
    const double end =
        std::min(static_cast<double>(out_.overview.size()), static_cast<double>(end_ns) / part);
    for (double at = start; at < end;) {
      const double next = std::min(end, std::floor(at) + 1);
      out_.overview[static_cast<std::size_t>(at)].*what += static_cast<float>(next - at);
      at = next;
    }
  }

  void idle_lane() {
    const auto& gpu = trace_.gpu;
    if (gpu.size() == 0) return;
    out_.overview.resize(overview_parts);
    TimelineLane lane;
    lane.label = "GPU idle";
    lane.device = true;
    lane.rows = 1;
    // Before its first work the device waits since the first operator ran.
    std::int64_t end = gpu.ts_ns[context_.links.by_start.front()];
    for (std::uint32_t op = 0; op < trace_.ops.size(); ++op) end = std::min(end, trace_.ops.ts_ns[op]);
    const auto idle = [&](std::int64_t start_ns, std::int64_t dur_ns, TimelineKind kind,
                          float TimelineShare::*what) {
      if (dur_ns <= 0) return;
      add_share(start_ns - trace_.first_ns, start_ns + dur_ns - trace_.first_ns, what);
      if (filter_.ask(start_ns, dur_ns) == TimelineFilter::Answer::keep)
        lane.events.push_back(event(start_ns, dur_ns, kind, 0, 0));
    };
    for (const std::uint32_t activity : context_.links.by_start) {
      const std::int64_t start = gpu.ts_ns[activity];
      const std::int64_t own_end = start + gpu.dur_ns[activity];
      const Wait wait = wait_before(context_, activity, end);
      idle(end, wait.launch_ns, TimelineKind::wait_launch, &TimelineShare::wait_launch);
      idle(end + wait.launch_ns, wait.other_ns, TimelineKind::wait_other, &TimelineShare::wait_other);
      const std::int64_t busy_from = std::max(start, end);
      if (own_end > busy_from)
        add_share(busy_from - trace_.first_ns, own_end - trace_.first_ns, &TimelineShare::busy);
      end = std::max(end, own_end);
    }
    if (!lane.events.empty()) out_.lanes.push_back(std::move(lane));
  }

  /// The outermost operator around an activity's launch that launches nothing but the MLP's own work.
  std::uint32_t own_operator(std::uint32_t activity, const std::vector<std::uint32_t>& sorted) const {
    const auto own = [&](std::uint32_t op) {
      const auto launched = context_.links.launched_by(op);
      return launched.size() <= sorted.size() &&
             std::all_of(launched.begin(), launched.end(), [&](std::uint32_t a) {
               return std::binary_search(sorted.begin(), sorted.end(), a);
             });
    };
    std::uint32_t op = context_.links.activity_op[activity];
    if (op == none || !own(op)) return none;
    for (std::uint32_t parent = context_.links.ops.parent[op]; parent != none && own(parent);
         parent = context_.links.ops.parent[op]) {
      op = parent;
    }
    return op;
  }

  void mlps() {
    const auto& gpu = trace_.gpu;
    std::vector<std::uint32_t> sorted;
    for (const FoundMlp& found : context_.mlps) {
      TimelineMlp mlp;
      mlp.row = found.row;
      sorted = found.activities;
      std::sort(sorted.begin(), sorted.end());
      const auto cover = [](std::int64_t& start, std::int64_t& end, bool first, std::int64_t ts,
                            std::int64_t dur) {
        start = first ? ts : std::min(start, ts);
        end = first ? ts + dur : std::max(end, ts + dur);
      };
      for (const std::uint32_t activity : found.activities) {
        const Place place = activity_place_[activity];
        if (place.lane == timeline_none) continue;
        cover(mlp.start_ns, mlp.end_ns, mlp.device_lane == timeline_none,
              gpu.ts_ns[activity] - trace_.first_ns, gpu.dur_ns[activity]);
        if (mlp.device_lane == timeline_none) mlp.device_lane = place.lane;
        out_.lanes[place.lane].events[place.event].mlp = static_cast<std::uint32_t>(out_.mlps.size());
        const std::uint32_t call = context_.links.activity_call[activity];
        if (call == none) continue;
        const std::uint32_t lane = lane_of_thread_[trace_.calls.thread[call]];
        if (mlp.lane != timeline_none && mlp.lane != lane) continue;
        cover(mlp.cpu_start_ns, mlp.cpu_end_ns, mlp.lane == timeline_none,
              trace_.calls.ts_ns[call] - trace_.first_ns, trace_.calls.dur_ns[call]);
        mlp.lane = lane;
        if (const std::uint32_t op = own_operator(activity, sorted); op != none) {
          cover(mlp.cpu_start_ns, mlp.cpu_end_ns, false, trace_.ops.ts_ns[op] - trace_.first_ns,
                trace_.ops.dur_ns[op]);
        }
      }
      if (mlp.device_lane != timeline_none) out_.mlps.push_back(mlp);
    }
  }

  const Context& context_;
  const Trace& trace_;
  std::vector<TimelineStep> steps_;
  TimelineFilter filter_;
  Timeline out_;
  std::unordered_map<StringId, std::uint32_t> names_;
  std::vector<bool> launches_;
  std::vector<Place> call_place_, activity_place_;
  std::vector<std::uint32_t> lane_of_thread_;
};

}  // namespace

Timeline make_timeline(const Context& context, std::size_t most_events) {
  return Builder(context, most_events).take();
}

}  // namespace trace

}  // namespace ingot
