// SPDX-License-Identifier: Apache-2.0
//
// Which part of a trace a timeline keeps: whole steps, the typical one first, as many as the number of events
// allows.
#pragma once

#include <cstdint>
#include <vector>

#include "ingot/timeline.h"
#include "trace/context.h"

namespace ingot::trace {

/// Profiler steps; without them the calls of the outermost region that takes the most CPU time; without any
/// annotation the whole trace as one.
std::vector<TimelineStep> find_steps(const Context& context);

/// What is kept of a trace with too many events: those that overlap a kept step and are not too short.
class TimelineFilter {
 public:
  /// Marks steps as kept until `most_events` are reached. One step is always kept; where that one alone has
  /// too many, its shortest operators, calls and device activities are left out.
  TimelineFilter(const Context& context, std::vector<TimelineStep>& steps, std::size_t most_events);

  std::uint32_t typical_step() const { return typical_; }
  std::int64_t shortest_ns() const { return shortest_ns_; }

  enum class Answer { keep, outside, too_short };
  /// Of an event in the trace's own clock.
  Answer ask(std::int64_t ts_ns, std::int64_t dur_ns) const;

 private:
  struct Window {
    std::int64_t start_ns, end_ns;
  };
  void merge(const std::vector<TimelineStep>& steps);
  void drop_shortest(const Context& context, std::size_t most_events);

  bool all_ = true;
  std::int64_t first_ns_ = 0;    ///< of the trace: steps count from it
  std::vector<Window> windows_;  ///< in order, apart
  std::int64_t shortest_ns_ = 0;
  std::uint32_t typical_ = timeline_none;
};

}  // namespace ingot::trace
