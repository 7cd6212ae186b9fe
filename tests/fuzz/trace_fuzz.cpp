// SPDX-License-Identifier: Apache-2.0
//
// Any text, plain or gzip, through everything that works on a trace. Nothing may crash, hang, or break the
// promises of a Trace: rows of equal length, ids that exist, a span that holds every row.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/diff.h"
#include "ingot/explain.h"
#include "ingot/page.h"
#include "ingot/report.h"
#include "ingot/trace.h"

namespace {

using namespace ingot::trace;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Rows>
void require_rows(const Trace& trace, const Rows& rows) {
  require(rows.dur_ns.size() == rows.size() && rows.name.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require(rows.dur_ns[i] >= 0 && rows.ts_ns[i] >= trace.first_ns &&
            rows.ts_ns[i] + rows.dur_ns[i] <= trace.last_ns);
    require(rows.name[i] < trace.strings.size());
  }
}

void require_below(const std::vector<std::uint32_t>& column, std::size_t rows, std::size_t limit) {
  require(column.size() == rows);
  for (const std::uint32_t value : column) require(value < limit);
}

void require_sound(const Trace& trace) {
  require_rows(trace, trace.ops);
  require_rows(trace, trace.calls);
  require_rows(trace, trace.gpu);
  require_rows(trace, trace.annotations);
  require_rows(trace, trace.gpu_annotations);
  require_rows(trace, trace.overheads);
  require_below(trace.ops.thread, trace.ops.size(), trace.threads.size());
  require_below(trace.ops.dims, trace.ops.size(), trace.strings.size());
  require_below(trace.ops.types, trace.ops.size(), trace.strings.size());
  require_below(trace.ops.concrete, trace.ops.size(), trace.strings.size());
  require_below(trace.calls.thread, trace.calls.size(), trace.threads.size());
  require_below(trace.gpu.shape, trace.gpu.size(), trace.launch_shapes.size());
  require(trace.ops.external_id.size() == trace.ops.size() &&
          trace.calls.correlation.size() == trace.calls.size());
  require(trace.gpu.stream.size() == trace.gpu.size() && trace.gpu.bytes.size() == trace.gpu.size());
  std::uint64_t counted = 0;
  for (const auto& [name, count] : trace.categories) counted += count;
  require(counted == trace.events);
  require((trace.skipped_events == 0) == (trace.first_skipped_offset == no_id));
  require(trace.skipped_events == 0 || trace.first_skipped_offset < trace.bytes);
}

/// The timeline's indices lead somewhere, and its lanes are in order.
void require_sound(const ingot::Timeline& timeline, const ingot::Explanation& explanation) {
  for (const ingot::TimelineLane& lane : timeline.lanes) {
    require(!lane.events.empty());
    for (const ingot::TimelineEvent& event : lane.events) {
      require(event.start_ns >= 0 && event.dur_ns >= 0 && event.start_ns + event.dur_ns <= timeline.span_ns);
      require(event.row < lane.rows);
      const bool idle = event.kind >= ingot::TimelineKind::wait_launch;
      require(idle || event.name < (lane.device ? explanation.kernels.size() : timeline.names.size()));
      require(event.call_lane == ingot::timeline_none ||
              event.call < timeline.lanes[event.call_lane].events.size());
      require(event.mlp == ingot::timeline_none || event.mlp < timeline.mlps.size());
    }
  }
  require(timeline.steps.empty() || timeline.typical_step < timeline.steps.size());
  for (const ingot::TimelineMlp& mlp : timeline.mlps) {
    require(mlp.row < explanation.mlps.size() && mlp.device_lane < timeline.lanes.size());
    require(mlp.lane == ingot::timeline_none || mlp.lane < timeline.lanes.size());
  }
}

/// The page, with a timeline of all events and of a few, and the trace written anew.
void draw(const ingot::trace::Trace& trace) {
  for (const std::size_t most : {std::size_t{150'000}, std::size_t{4}}) {
    ingot::ExplainOptions options;
    options.timeline = true;
    options.timeline_events = most;
    const auto explanation = ingot::explain(trace, options);
    require(explanation.ok() && explanation->timeline.has_value());
    require_sound(*explanation->timeline, *explanation);
    const std::string page = ingot::page::html(*explanation);
    const std::string_view end = "</script>";
    const auto first = page.find(end);
    const auto second = page.find(end, first + 1);
    require(second != std::string::npos && page.find(end, second + 1) == std::string::npos);
    require(read_text(ingot::report::perfetto(trace, *explanation)).ok());
  }
}

/// Every stage that works on a trace, one after the other.
void run(std::string_view text) {
  const auto trace = read_text(text);
  if (!trace.ok()) {
    const std::string& message = trace.error().message;
    require(!message.empty() && message.find('\n') == std::string::npos);
    return;
  }
  require_sound(*trace);
  ingot::ExplainOptions options;
  options.expect = "1 linear";
  const auto explanation = ingot::explain(*trace, options);
  require(explanation.ok() && !explanation->regions.empty() && explanation->expectation.has_value());
  for (const ingot::MlpRow& mlp : explanation->mlps) require(mlp.calls > 0 && !mlp.activation.empty());
  require(!ingot::report::text(*explanation).empty() && !ingot::report::json(*explanation).empty());
  if (text.size() % 8 == 0) draw(*trace);  // a page is a hundred kilobytes: every eighth, to keep the pace
  const auto itself = ingot::diff(*trace, *trace);
  require(itself.ok() && itself->ops_gone.empty() && itself->ops_new.empty() &&
          itself->kernels_gone.empty() && itself->kernels_new.empty());
  require(!ingot::report::text(*itself).empty() && !ingot::report::json(*itself).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}
