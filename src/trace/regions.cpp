// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_map>

#include "base/units.h"
#include "trace/context.h"

namespace ingot::trace {

namespace {

/// One execution of a region: what the device did for it.
struct Instance {
  std::int64_t cpu_start_ns = 0, cpu_ns = 0;
  std::int64_t first_ns = 0, end_ns = 0;
  std::int64_t busy_ns = 0, wait_launch_ns = 0, wait_other_ns = 0;
  std::int64_t compute_ns = 0;  ///< summed time of matrix products, attention and convolutions
  std::int64_t total_ns = 0;    ///< summed time of all its device work
  std::uint64_t kernels = 0, memsets = 0, memcpys = 0, launches = 0;
  std::uint32_t last_call = none;
  bool any = false;
};

/// Adds device work to an instance, in order of start. `device_end_ns` is when the device last finished
/// anything before this: idle time before a first kernel counts from there, or from the start of the region.
void add(const Context& context, Instance& instance, std::uint32_t activity, std::int64_t device_end_ns) {
  const auto& gpu = context.trace.gpu;
  const std::int64_t start = gpu.ts_ns[activity];
  const std::int64_t end = start + gpu.dur_ns[activity];
  const std::uint32_t call = context.links.activity_call[activity];

  const std::int64_t free_since =
      instance.any ? instance.end_ns : std::max(instance.cpu_start_ns, device_end_ns);
  if (start > free_since && (instance.any || device_end_ns != 0 || instance.cpu_ns > 0)) {
    const Wait wait = wait_before(context, activity, free_since);
    instance.wait_launch_ns += wait.launch_ns;
    instance.wait_other_ns += wait.other_ns;
  }
  if (!instance.any) {
    instance.first_ns = start;
    instance.end_ns = start;
    instance.any = true;
  }
  instance.busy_ns += std::max<std::int64_t>(0, end - std::max(start, instance.end_ns));
  instance.end_ns = std::max(instance.end_ns, end);
  instance.total_ns += gpu.dur_ns[activity];
  if (context.groups[context.group_of[activity]].compute_heavy) instance.compute_ns += gpu.dur_ns[activity];
  switch (gpu.kind[activity]) {
    case ActivityKind::kernel:
      ++instance.kernels;
      break;
    case ActivityKind::memset:
      ++instance.memsets;
      break;
    case ActivityKind::memcpy:
      ++instance.memcpys;
      break;
  }
  if (call != none && call != instance.last_call) ++instance.launches;
  instance.last_call = call;
}

struct Shares {
  double busy_us = 0, wait_launch_us = 0, wait_other_us = 0, cpu_us = 0, compute_us = 0, total_us = 0;
};

/// The rule: a device that idles more than a third of its time is bound by what it waits for; one that does
/// not is bound by what it spends most of its time on.
Verdict judge(const Shares& s, std::string& reason) {
  const double all = s.busy_us + s.wait_launch_us + s.wait_other_us;
  if (s.total_us <= 0 || all <= 0) {
    reason = "no device work recorded";
    return Verdict::unknown;
  }
  constexpr double much = 1.0 / 3;
  const double launch_share = s.wait_launch_us / all;
  const double other_share = s.wait_other_us / all;
  if (launch_share + other_share > much) {
    const bool launch = launch_share >= other_share;
    reason = fmt::format(
        "GPU idle {:.0f} % of the time ({:.0f} % waiting for a launch, {:.0f} % for something else): "
        "{} of GPU work against {} on the CPU",
        100 * (launch_share + other_share), 100 * launch_share, 100 * other_share, duration_text(s.busy_us),
        duration_text(s.cpu_us));
    return launch ? Verdict::overhead_bound : Verdict::idle;
  }
  const double compute_share = s.compute_us / s.total_us;
  reason = fmt::format(
      "GPU busy {:.0f} % of the time; {:.0f} % of it in matrix products, attention and convolutions",
      100 * s.busy_us / all, 100 * compute_share);
  return compute_share >= 0.5 ? Verdict::compute_bound : Verdict::memory_bound;
}

Region make_region(std::string name, const std::vector<Instance>& instances) {
  Region region;
  region.name = std::move(name);
  region.calls = instances.size();
  std::vector<double> cpu, busy, span, launch, other;
  Shares sum;
  for (const Instance& i : instances) {
    const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / 1000.0; };
    cpu.push_back(us(i.cpu_ns));
    busy.push_back(us(i.busy_ns));
    span.push_back(i.any ? us(i.end_ns - i.first_ns) : 0);
    launch.push_back(us(i.wait_launch_ns));
    other.push_back(us(i.wait_other_ns));
    region.kernels_per_call += static_cast<double>(i.kernels);
    region.memsets_per_call += static_cast<double>(i.memsets);
    region.memcpys_per_call += static_cast<double>(i.memcpys);
    region.launches_per_call += static_cast<double>(i.launches);
    sum.compute_us += us(i.compute_ns);
    sum.total_us += us(i.total_ns);
  }
  const auto calls = static_cast<double>(instances.size());
  for (double* per_call : {&region.kernels_per_call, &region.memsets_per_call, &region.memcpys_per_call,
                           &region.launches_per_call}) {
    *per_call /= calls;
  }
  region.cpu_us = sum.cpu_us = median(std::move(cpu));
  region.gpu_busy_us = sum.busy_us = median(std::move(busy));
  region.gpu_span_us = median(std::move(span));
  region.wait_launch_us = sum.wait_launch_us = median(std::move(launch));
  region.wait_other_us = sum.wait_other_us = median(std::move(other));
  region.verdict = judge(sum, region.verdict_reason);
  return region;
}

/// The whole trace as one instance.
Instance whole_trace(const Context& context) {
  Instance instance;
  const auto& ops = context.trace.ops;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    if (op == 0 || ops.ts_ns[op] < first) first = ops.ts_ns[op];
    last = std::max(last, ops.ts_ns[op] + ops.dur_ns[op]);
  }
  if (ops.size() != 0) {
    instance.cpu_start_ns = first;
    instance.cpu_ns = last - first;
  }
  for (const std::uint32_t activity : context.links.by_start) add(context, instance, activity, 0);
  return instance;
}

}  // namespace

Wait wait_before(const Context& context, std::uint32_t activity, std::int64_t free_since_ns) {
  // The launch came after the device had run dry: it waited for the CPU, until the call was made and a
  // little longer. Anything else it waited for (another stream, work the trace does not hold, the
  // hardware's hand-over).
  constexpr std::int64_t launch_latency_ns = 20'000;
  const std::int64_t idle_ns = context.trace.gpu.ts_ns[activity] - free_since_ns;
  const std::uint32_t call = context.links.activity_call[activity];
  if (idle_ns <= 0) return {};
  Wait wait;
  if (call != none) {
    const std::int64_t call_end = context.trace.calls.ts_ns[call] + context.trace.calls.dur_ns[call];
    if (call_end > free_since_ns)
      wait.launch_ns = std::min(idle_ns, call_end - free_since_ns + launch_latency_ns);
  }
  wait.other_ns = idle_ns - wait.launch_ns;
  return wait;
}

std::string_view region_name(std::string_view annotation) {
  if (annotation.starts_with("ProfilerStep#")) return "ProfilerStep";
  if (annotation.starts_with("## Call CompiledFxGraph")) return "";
  return annotation;
}

std::uint32_t region_annotation(const Context& context, std::uint32_t activity) {
  std::uint32_t row = context.links.activity_annotation[activity];
  while (row != none && region_name(context.trace.strings[context.trace.annotations.name[row]]).empty()) {
    row = context.links.annotations.parent[row];
  }
  return row;
}

std::vector<Region> find_regions(const Context& context) {
  const auto& annotations = context.trace.annotations;
  std::map<std::string_view, std::vector<std::uint32_t>> by_name;
  std::vector<std::string_view> names;  // in order of first appearance in time
  for (const std::uint32_t row : context.links.annotations.order) {
    const std::string_view name = region_name(context.trace.strings[annotations.name[row]]);
    if (name.empty()) continue;
    std::vector<std::uint32_t>& rows = by_name[name];
    if (rows.empty()) names.push_back(name);
    rows.push_back(row);
  }
  if (names.empty()) return {make_region("trace", {whole_trace(context)})};

  std::vector<Instance> instances(annotations.size());
  for (std::size_t row = 0; row < annotations.size(); ++row) {
    instances[row].cpu_start_ns = annotations.ts_ns[row];
    instances[row].cpu_ns = annotations.dur_ns[row];
  }
  std::int64_t device_end_ns = 0;
  for (const std::uint32_t activity : context.links.by_start) {
    for (std::uint32_t row = context.links.activity_annotation[activity]; row != none;
         row = context.links.annotations.parent[row]) {
      add(context, instances[row], activity, device_end_ns);
    }
    device_end_ns =
        std::max(device_end_ns, context.trace.gpu.ts_ns[activity] + context.trace.gpu.dur_ns[activity]);
  }
  std::vector<Region> regions;
  for (const std::string_view name : names) {
    std::vector<Instance> of_name;
    for (const std::uint32_t row : by_name[name]) of_name.push_back(instances[row]);
    regions.push_back(make_region(std::string(name), of_name));
  }
  return regions;
}

Summary summarize(const Context& context) {
  Summary summary;
  const Instance all = whole_trace(context);
  std::set<std::uint32_t> launching;
  for (const std::uint32_t call : context.links.activity_call) {
    if (call != none) launching.insert(call);
  }
  summary.launches = launching.size();
  summary.kernels = all.kernels;
  summary.memcpys = all.memcpys;
  summary.memsets = all.memsets;
  Shares shares;
  shares.busy_us = summary.gpu_busy_us = context.us(all.busy_ns);
  summary.span_us = all.any ? context.us(all.end_ns - all.first_ns) : 0;
  summary.gpu_idle_us = std::max(0.0, summary.span_us - summary.gpu_busy_us);
  shares.wait_launch_us = context.us(all.wait_launch_ns);
  shares.wait_other_us = context.us(all.wait_other_ns);
  shares.cpu_us = context.us(all.cpu_ns);
  shares.compute_us = context.us(all.compute_ns);
  shares.total_us = context.us(all.total_ns);
  summary.verdict = judge(shares, summary.verdict_reason);
  return summary;
}

}  // namespace ingot::trace
