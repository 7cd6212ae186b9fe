// SPDX-License-Identifier: Apache-2.0
//
// A trace as lanes of boxes, for drawing: who called what on the CPU, what ran on the device, why it did
// nothing in between, and which of it was one MLP. Times are nanoseconds since the first event of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

enum class TimelineKind : std::uint8_t {
  region,    ///< annotation: a profiler step, a record_function name
  op,        ///< operator that launches device work, or calls one that does
  quiet_op,  ///< operator that launches nothing
  call,      ///< API call
  kernel,
  memcpy,
  memset,
  wait_launch,  ///< the device idles because its launch has not come yet
  wait_other,   ///< the device idles otherwise
};
inline constexpr std::size_t timeline_kind_count = 9;
std::string_view to_string(TimelineKind kind);

inline constexpr std::uint32_t timeline_none = 0xffffffffU;  ///< "no such entry"

struct TimelineEvent {
  std::int64_t start_ns = 0, dur_ns = 0;
  TimelineKind kind = TimelineKind::op;
  std::uint32_t row = 0;   ///< in its lane, 0 on top
  std::uint32_t name = 0;  ///< index into Timeline::names; of device work: of Explanation::kernels
  std::uint32_t call_lane = timeline_none, call = timeline_none;  ///< device work: the call that launched it
  std::uint32_t mlp = timeline_none;                              ///< device work: index into Timeline::mlps
};

/// One thread of the CPU, one stream of a device, or the device's idle time. In each row the events are in
/// order of start.
struct TimelineLane {
  std::string label;
  bool device = false;
  std::uint32_t rows = 0;
  std::vector<TimelineEvent> events;
};

/// A stretch worth looking at on its own: a profiler step, or where there is none one call of the outermost
/// region.
struct TimelineStep {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;  ///< on the CPU, and on the device until its work is done
  std::uint64_t activities = 0;           ///< of the device
  bool kept = true;                       ///< its events are in the lanes
};

/// One execution of one MLP.
struct TimelineMlp {
  std::uint32_t row = 0;               ///< index into Explanation::mlps
  std::uint32_t lane = timeline_none;  ///< CPU lane that launched it
  std::int64_t cpu_start_ns = 0, cpu_end_ns = 0;
  std::uint32_t device_lane = timeline_none;
  std::int64_t start_ns = 0, end_ns = 0;  ///< on the device
};

/// How the device spent one of equal parts of the whole trace; what is missing to a whole lies outside its
/// work.
struct TimelineShare {
  float busy = 0, wait_launch = 0, wait_other = 0;
};

struct Timeline {
  std::int64_t span_ns = 0;
  std::vector<std::string> names;
  std::vector<TimelineLane> lanes;  ///< CPU threads, then device streams, then idle time
  std::vector<TimelineStep> steps;
  std::uint32_t typical_step = timeline_none;  ///< of the steps with device work the one of median length
  std::vector<TimelineMlp> mlps;
  std::vector<TimelineShare> overview;
  std::uint64_t events_left_out = 0;  ///< in steps that are not kept, or outside of all steps
  std::uint64_t short_left_out = 0;   ///< in kept steps, because they are shorter than `shortest_ns`
  std::int64_t shortest_ns = 0;
};

}  // namespace ingot
