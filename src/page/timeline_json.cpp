// SPDX-License-Identifier: Apache-2.0
#include "page/timeline_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "page/limits.h"

namespace ingot::page {

namespace {

constexpr std::size_t most_steps = 2000;
constexpr std::size_t most_mlps = 20'000;
constexpr std::size_t names_bytes = 600'000;  ///< of all names together; what comes later is not named

void append(std::string& out, std::int64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

/// "key":[value,…], with a comma behind it.
template <class Rows, class Value>
void append_column(std::string& out, std::string_view key, const Rows& rows, Value value) {
  out += '"';
  out += key;
  out += "\":[";
  for (const auto& row : rows) {
    append(out, value(row));
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  out += "],";
}

/// Differences between neighbours: small numbers, and the page adds them up.
class Difference {
 public:
  std::int64_t operator()(std::int64_t value) {
    const std::int64_t step = value - last_;
    last_ = value;
    return step;
  }

 private:
  std::int64_t last_ = 0;
};

std::int64_t or_minus_one(std::uint32_t index) {
  return index == timeline_none ? -1 : static_cast<std::int64_t>(index);
}

void append_lane(std::string& out, const TimelineLane& lane, std::uint32_t most_names) {
  out += "{\"label\":";
  append_string(out, cut(lane.label));
  out += fmt::format(",\"device\":{},\"rows\":{},", lane.device, lane.rows);
  const auto& events = lane.events;
  append_column(out, "start", events,
                [d = Difference()](const TimelineEvent& e) mutable { return d(e.start_ns); });
  append_column(out, "dur", events, [](const TimelineEvent& e) { return e.dur_ns; });
  append_column(out, "kind", events, [](const TimelineEvent& e) {
    return static_cast<std::int64_t>(e.row * 16 + static_cast<std::uint32_t>(e.kind));
  });
  append_column(out, "name", events, [&](const TimelineEvent& e) {
    const bool kernel_row = lane.device;
    return !kernel_row && e.name >= most_names ? -1 : static_cast<std::int64_t>(e.name);
  });
  if (lane.device) {
    append_column(out, "lane", events, [](const TimelineEvent& e) { return or_minus_one(e.call_lane); });
    append_column(out, "call", events,
                  [d = Difference()](const TimelineEvent& e) mutable { return d(or_minus_one(e.call)); });
    append_column(out, "mlp", events, [d = Difference()](const TimelineEvent& e) mutable {
      return d(e.mlp < most_mlps ? static_cast<std::int64_t>(e.mlp) : -1);
    });
  }
  out.back() = '}';
}

void describe_left_out(const Timeline& t, std::size_t names, std::vector<std::string>& left_out) {
  const auto dropped =
      std::count_if(t.steps.begin(), t.steps.end(), [](const TimelineStep& s) { return !s.kept; });
  if (t.events_left_out != 0) {
    left_out.push_back(
        fmt::format("{} events of the timeline: {} of {} steps are drawn, the typical and the longest "
                    "among them",
                    t.events_left_out, t.steps.size() - static_cast<std::size_t>(dropped), t.steps.size()));
  }
  if (t.short_left_out != 0) {
    left_out.push_back(fmt::format("{} events of the timeline shorter than {:.3f} us", t.short_left_out,
                                   static_cast<double>(t.shortest_ns) / 1000));
  }
  if (t.steps.size() > most_steps)
    left_out.push_back(fmt::format("{} steps in the list of steps", t.steps.size() - most_steps));
  if (t.mlps.size() > most_mlps)
    left_out.push_back(fmt::format("{} boxes of MLPs", t.mlps.size() - most_mlps));
  if (names < t.names.size())
    left_out.push_back(fmt::format("{} names of CPU events", t.names.size() - names));
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_timeline(std::string& out, const Timeline& t, std::vector<std::string>& left_out) {
  out += fmt::format("{{\"span\":{},\"typical\":{},\"names\":[", t.span_ns, or_minus_one(t.typical_step));
  std::uint32_t names = 0;
  for (const std::size_t begin = out.size(); names < t.names.size() && out.size() - begin < names_bytes;
       ++names) {
    if (names != 0) out += ',';
    append_string(out, cut(t.names[names]));
  }
  out += "],\"steps\":[";
  // The typical step is worth its place in a list that is cut short.
  const std::size_t steps = std::min(t.steps.size(), most_steps);
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    if (i >= steps && i != t.typical_step) continue;
    const TimelineStep& step = t.steps[i];
    if (i != 0) out += ',';
    out += '[';
    append_string(out, cut(step.name));
    out += fmt::format(",{},{},{}]", step.start_ns, step.end_ns, step.kept ? 1 : 0);
  }
  out += "],\"overview\":{";
  const auto percent = [](float share) {
    return static_cast<std::int64_t>(std::lround(100 * std::min(share, 1.0F)));
  };
  append_column(out, "busy", t.overview, [&](const TimelineShare& s) { return percent(s.busy); });
  append_column(out, "wait_launch", t.overview,
                [&](const TimelineShare& s) { return percent(s.wait_launch); });
  append_column(out, "wait_other", t.overview, [&](const TimelineShare& s) { return percent(s.wait_other); });
  out.back() = '}';
  out += ",\"kinds\":[";
  for (std::size_t kind = 0; kind < timeline_kind_count; ++kind)
    out += fmt::format("{}\"{}\"", kind == 0 ? "" : ",", to_string(static_cast<TimelineKind>(kind)));
  out += "],\"mlps\":[";
  for (std::size_t i = 0; i < std::min(t.mlps.size(), most_mlps); ++i) {
    const TimelineMlp& m = t.mlps[i];
    out += fmt::format("{}[{},{},{},{},{},{},{}]", i == 0 ? "" : ",", m.row, or_minus_one(m.lane),
                       m.cpu_start_ns, m.cpu_end_ns, or_minus_one(m.device_lane), m.start_ns, m.end_ns);
  }
  out += "],\"lanes\":[";
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    if (i != 0) out += ',';
    append_lane(out, t.lanes[i], names);
  }
  out += "]}";
  describe_left_out(t, names, left_out);
}

}  // namespace ingot::page
