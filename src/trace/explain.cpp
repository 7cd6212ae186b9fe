// SPDX-License-Identifier: Apache-2.0
#include "ingot/explain.h"

#include <algorithm>
#include <map>
#include <new>

#include "trace/context.h"
#include "trace/timeline.h"

namespace ingot {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::overhead_bound:
      return "overhead-bound";
    case Verdict::memory_bound:
      return "memory-bound";
    case Verdict::compute_bound:
      return "compute-bound";
    case Verdict::idle:
      return "idle";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

namespace trace {

namespace {

/// CPU time that shares are taken of: the outermost annotations, or where there are none the span of the
/// operators.
double cpu_total_us(const Context& context) {
  const auto& annotations = context.trace.annotations;
  std::int64_t total = 0;
  for (std::uint32_t row = 0; row < annotations.size(); ++row) {
    if (context.links.annotations.parent[row] == none) total += annotations.dur_ns[row];
  }
  if (total > 0) return context.us(total);
  const auto& ops = context.trace.ops;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    if (op == 0 || ops.ts_ns[op] < first) first = ops.ts_ns[op];
    last = std::max(last, ops.ts_ns[op] + ops.dur_ns[op]);
  }
  return context.us(last - first);
}

const Device* used_device(const Trace& trace) {
  if (trace.devices.empty()) return nullptr;
  if (trace.gpu.size() == 0) return &trace.devices.front();
  // One process mostly drives one device; the first activity with a number names it.
  for (const std::int32_t id : trace.gpu.device) {
    if (id < 0) continue;
    for (const Device& device : trace.devices) {
      if (device.id == id) return &device;
    }
    break;
  }
  return &trace.devices.front();
}

}  // namespace

std::vector<ZeroLaunchOp> zero_launch_ops(const Context& context, const std::vector<Region>& regions) {
  std::vector<ZeroLaunchOp> rows;
  if (context.trace.gpu.size() == 0 || regions.empty())
    return rows;  // with no device work recorded, nothing launches
  const auto& ops = context.trace.ops;
  const Nesting& nesting = context.links.ops;
  std::vector<bool> launches(ops.size(), false);
  const auto mark = [&](std::uint32_t op) {
    for (; op != none && !launches[op]; op = nesting.parent[op]) launches[op] = true;
  };
  for (const std::uint32_t op : context.links.activity_op) mark(op);
  std::vector<std::int64_t> self_ns(ops.dur_ns);
  for (std::uint32_t op = 0; op < ops.size(); ++op) {
    if (nesting.parent[op] != none) self_ns[nesting.parent[op]] -= ops.dur_ns[op];
  }
  std::map<StringId, ZeroLaunchOp> by_name;
  for (std::uint32_t op = 0; op < ops.size(); ++op) {
    if (launches[op]) continue;
    ZeroLaunchOp& row = by_name[ops.name[op]];
    ++row.calls;
    row.cpu_us += context.us(std::max<std::int64_t>(0, self_ns[op]));
  }
  const double total = cpu_total_us(context);
  for (auto& [name, row] : by_name) {
    row.name = context.trace.strings[name];
    row.cpu_share = total > 0 ? row.cpu_us / total : 0;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ZeroLaunchOp& a, const ZeroLaunchOp& b) { return a.cpu_us > b.cpu_us; });
  return rows;
}

}  // namespace trace

namespace {

Result<Explanation> explain_trace(const trace::Trace& trace, const ExplainOptions& options) {
  trace::Context context(trace);
  Explanation result;
  result.file = trace.file;
  result.bytes = trace.bytes;
  result.events = trace.events;
  result.skipped_events = trace.skipped_events;
  if (trace.skipped_events != 0) result.first_skipped_offset = trace.first_skipped_offset;
  result.warnings = trace.warnings;
  if (const trace::Device* device = trace::used_device(trace); device != nullptr && !device->name.empty()) {
    result.device = device->name;
    context.card = find_card(device->name);
    if (context.card != nullptr) result.card = *context.card;
  }
  result.span_us = context.us(trace.last_ns - trace.first_ns);
  if (context.links.late_activities != 0) {
    result.warnings.push_back(
        std::to_string(context.links.late_activities) +
        " device activities start before their launch call (clocks of CPU and GPU differ)");
  }

  trace::group_kernels(context);
  result.summary = trace::summarize(context);
  result.regions = trace::find_regions(context);
  result.kernels = trace::kernel_rows(context);
  result.zero_launch_ops = trace::zero_launch_ops(context, result.regions);
  result.mlps = trace::mlp_rows(context, result.regions);
  result.findings = trace::find_findings(context, result);
  if (!options.expect.empty()) {
    Result<Expectation> expectation = trace::check_expectation(context, options.expect, result.regions);
    if (!expectation) return expectation.error();
    result.expectation = *std::move(expectation);
  }
  if (options.timeline) result.timeline = trace::make_timeline(context, options.timeline_events);
  return result;
}

}  // namespace

Result<Explanation> explain(const trace::Trace& trace, const ExplainOptions& options) {
  try {
    return explain_trace(trace, options);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to explain " + trace.file};
  }
}

}  // namespace ingot
