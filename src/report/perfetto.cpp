// SPDX-License-Identifier: Apache-2.0
//
// The trace again in the profiler's own format, as far as it was read, with what Ingot found as tracks of its
// own. Written anew rather than copied: what was damaged in the file is whole here, and what could not be
// read is left out.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ingot/report.h"

namespace ingot::report {

namespace {

using trace::no_id;
using trace::StringId;
using trace::Trace;

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A process or thread as a number where it is one, else as text.
std::string lane_id(const std::string& text) {
  const bool number =
      !text.empty() && text.size() < 18 && (text.size() == 1 || text[0] != '0') &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? text : json_string(text);
}

class Writer {
 public:
  Writer(const Trace& trace, const Explanation& explanation) : trace_(trace), explanation_(explanation) {}

  std::string take() {
    head();
    operators();
    calls();
    annotations(trace_.annotations, "user_annotation");
    annotations(trace_.gpu_annotations, "gpu_user_annotation");
    activities();
    for (std::size_t i = 0; i < trace_.overheads.size(); ++i)
      event("overhead", name(trace_.overheads.name[i]), "-1", "0", trace_.overheads.ts_ns[i],
            trace_.overheads.dur_ns[i], "");
    ingot_tracks();
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  const std::string& name(StringId id) {
    const auto [at, fresh] = names_.try_emplace(id);
    if (fresh) at->second = json_string(trace_.strings[id]);
    return at->second;
  }

  /// Recorded arguments are JSON already; what a damaged file made of them is not taken over.
  bool is_json(StringId id) {
    const auto [at, fresh] = json_.try_emplace(id, false);
    if (fresh) at->second = nlohmann::json::accept(trace_.strings[id]);
    return at->second;
  }

  void separate() {
    if (!first_) out_ += ",\n";
    first_ = false;
  }

  /// Nanoseconds as microseconds with three decimals, exactly.
  static std::string time(std::int64_t ns) {
    const bool negative = ns < 0;
    const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    return fmt::format("{}{}.{:03}", negative ? "-" : "", size / 1000, size % 1000);
  }

  /// `args` is the inside of an object, "" for none.
  void event(std::string_view category, std::string_view quoted_name, std::string_view pid,
             std::string_view tid, std::int64_t ts_ns, std::int64_t dur_ns, std::string_view args) {
    separate();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                   category, quoted_name, pid, tid, time(ts_ns), time(dur_ns), args);
  }

  void head() {
    out_ += "{\"schemaVersion\":1,\n\"deviceProperties\":[";
    for (std::size_t i = 0; i < trace_.devices.size(); ++i) {
      const trace::Device& d = trace_.devices[i];
      out_ += fmt::format(
          R"({}{{"id":{},"name":{},"totalGlobalMem":{},"computeMajor":{},"computeMinor":{},"maxThreadsPerMultiprocessor":{},)"
          R"("regsPerMultiprocessor":{},"sharedMemPerMultiprocessor":{},"warpSize":{},"numSms":{}}})",
          i == 0 ? "" : ",", d.id, json_string(d.name), d.memory_bytes, d.compute_major, d.compute_minor,
          d.max_threads_per_sm, d.registers_per_sm, d.shared_memory_per_sm, d.warp_size, d.sms);
    }
    out_ += "],\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n";
  }

  std::string ids(std::uint64_t external, std::uint64_t correlation) const {
    std::string args;
    if (external != no_id) args += fmt::format(R"("External id":{})", external);
    if (correlation != no_id)
      args += fmt::format(R"({}"correlation":{})", args.empty() ? "" : ",", correlation);
    return args;
  }

  void lanes(std::uint32_t thread) {
    if (pids_.empty()) {
      for (const trace::Thread& t : trace_.threads) {
        pids_.push_back(lane_id(t.pid));
        tids_.push_back(lane_id(t.tid));
      }
    }
    pid_ = pids_[thread];
    tid_ = tids_[thread];
  }

  void operators() {
    const auto& ops = trace_.ops;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      std::string args = ids(ops.external_id[op], no_id);
      const auto add = [&](std::string_view key, StringId value) {
        if (value == 0 || !is_json(value)) return;
        args += fmt::format(R"({}"{}":{})", args.empty() ? "" : ",", key, trace_.strings[value]);
      };
      add("Input Dims", ops.dims[op]);
      add("Input type", ops.types[op]);
      add("Concrete Inputs", ops.concrete[op]);
      lanes(ops.thread[op]);
      event("cpu_op", name(ops.name[op]), pid_, tid_, ops.ts_ns[op], ops.dur_ns[op], args);
    }
  }

  void calls() {
    const auto& calls = trace_.calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string_view text = trace_.strings[calls.name[i]];
      const bool driver =
          text.starts_with("cu") && text.size() > 2 && std::isupper(static_cast<unsigned char>(text[2])) != 0;
      lanes(calls.thread[i]);
      event(driver ? "cuda_driver" : "cuda_runtime", name(calls.name[i]), pid_, tid_, calls.ts_ns[i],
            calls.dur_ns[i], ids(calls.external_id[i], calls.correlation[i]));
      flow('s', calls.correlation[i], pid_, tid_, calls.ts_ns[i]);
    }
  }

  /// One end of the arrow from a launch to its kernel.
  void flow(char phase, std::uint64_t correlation, std::string_view pid, std::string_view tid,
            std::int64_t ts_ns) {
    if (correlation == no_id || correlation == 0) return;
    separate();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"{}","id":{},"cat":"ac2g","name":"ac2g","pid":{},"tid":{},"ts":{}{}}})", phase,
                   correlation, pid, tid, time(ts_ns), phase == 'f' ? R"(,"bp":"e")" : "");
  }

  void annotations(const trace::Annotations& rows, std::string_view category) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lanes(rows.thread[i]);
      event(category, name(rows.name[i]), pid_, tid_, rows.ts_ns[i], rows.dur_ns[i],
            ids(rows.external_id[i], no_id));
    }
  }

  void activities() {
    const auto& gpu = trace_.gpu;
    for (std::size_t i = 0; i < gpu.size(); ++i) {
      std::string args = ids(gpu.external_id[i], gpu.correlation[i]);
      const auto add = [&](const std::string& text) {
        if (!args.empty()) args += ',';
        args += text;
      };
      if (gpu.device[i] >= 0) add(fmt::format(R"("device":{})", gpu.device[i]));
      if (gpu.stream[i] >= 0) add(fmt::format(R"("stream":{})", gpu.stream[i]));
      std::string_view category = "kernel";
      if (gpu.kind[i] == trace::ActivityKind::kernel) {
        if (gpu.shape[i] < trace_.launch_shapes.size()) {
          const trace::LaunchShape& s = trace_.launch_shapes[gpu.shape[i]];
          add(fmt::format(
              R"("registers per thread":{},"shared memory":{},"grid":[{},{},{}],"block":[{},{},{}])",
              s.registers_per_thread, s.shared_memory_bytes, s.grid[0], s.grid[1], s.grid[2], s.block[0],
              s.block[1], s.block[2]));
        }
      } else {
        category = gpu.kind[i] == trace::ActivityKind::memcpy ? "gpu_memcpy" : "gpu_memset";
        add(fmt::format(R"("bytes":{})", gpu.bytes[i]));
      }
      const std::string pid = fmt::format("{}", std::max(gpu.device[i], 0));
      const std::string tid = fmt::format("{}", std::max(gpu.stream[i], 0));
      event(category, name(gpu.name[i]), pid, tid, gpu.ts_ns[i], gpu.dur_ns[i], args);
      flow('f', gpu.correlation[i], pid, tid, gpu.ts_ns[i]);
    }
  }

  void describe(std::string_view what, std::string_view pid, int tid, std::string_view args) {
    separate();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{{}}}}})", what, pid, tid,
                   args);
  }

  static std::string mlp_name(const MlpRow& mlp) {
    std::string text = "MLP ";
    if (mlp.tokens && mlp.dim && mlp.hidden)
      text += fmt::format("{}x{}->{} ", *mlp.tokens, *mlp.dim, *mlp.hidden);
    return text + mlp.activation + (mlp.gated ? " gated" : "");
  }

  void ingot_tracks() {
    if (!explanation_.timeline) return;
    const Timeline& timeline = *explanation_.timeline;
    constexpr std::string_view pid = "1768779623";  // a process of its own: no system has as many
    enum Track { findings = 1, mlps, idle };
    describe("process_name", pid, 0, R"("name":"Ingot")");
    describe("process_sort_index", pid, 0, R"("sort_index":-1)");
    describe("thread_name", pid, findings, R"("name":"Findings, worst first")");
    describe("thread_name", pid, mlps, R"("name":"MLPs")");
    describe("thread_name", pid, idle, R"("name":"GPU idle")");
    int number = 0;
    for (const Finding& f : explanation_.findings) {
      // Numbered: readers take every name that begins with "ProfilerStep" for a step.
      const std::string title = fmt::format("{}. {}", ++number, f.title);
      event("ingot", json_string(title), pid, std::to_string(findings), trace_.first_ns, timeline.span_ns,
            fmt::format(R"("id":{},"detail":{},"saving_us":{},"action":{})", json_string(f.id),
                        json_string(f.detail), f.saving_us ? fmt::format("{:.3f}", *f.saving_us) : "null",
                        json_string(f.action)));
    }
    std::int64_t mlp_end = 0;
    for (const TimelineMlp* mlp : in_order(timeline.mlps)) {
      const MlpRow& row = explanation_.mlps[mlp->row];
      // Slices of a track must not cross: one that begins inside of another (a second stream) is left out.
      if (mlp->start_ns < mlp_end) continue;
      mlp_end = mlp->end_ns;
      event("ingot", json_string(mlp_name(row)), pid, std::to_string(mlps), trace_.first_ns + mlp->start_ns,
            mlp->end_ns - mlp->start_ns,
            fmt::format(R"("kernels per call":{:.1f},"us now":{:.3f},"fused, estimate, us":{})",
                        row.kernels_per_call.value_or(0), row.gpu_us_per_call.value_or(0),
                        row.fused_us_estimate ? fmt::format("{:.3f}", *row.fused_us_estimate) : "null"));
    }
    for (const TimelineLane& lane : timeline.lanes) {
      for (const TimelineEvent& e : lane.events) {
        if (e.kind != TimelineKind::wait_launch && e.kind != TimelineKind::wait_other) continue;
        event("ingot", e.kind == TimelineKind::wait_launch ? "\"waits for a launch\"" : "\"idle otherwise\"",
              pid, std::to_string(idle), trace_.first_ns + e.start_ns, e.dur_ns, "");
      }
    }
  }

  static std::vector<const TimelineMlp*> in_order(const std::vector<TimelineMlp>& mlps) {
    std::vector<const TimelineMlp*> order;
    for (const TimelineMlp& mlp : mlps) order.push_back(&mlp);
    std::stable_sort(order.begin(), order.end(),
                     [](const TimelineMlp* a, const TimelineMlp* b) { return a->start_ns < b->start_ns; });
    return order;
  }

  const Trace& trace_;
  const Explanation& explanation_;
  std::string out_;
  bool first_ = true;
  std::unordered_map<StringId, std::string> names_;
  std::unordered_map<StringId, bool> json_;
  std::vector<std::string> pids_, tids_;
  std::string_view pid_, tid_;
};

}  // namespace

std::string perfetto(const trace::Trace& trace, const Explanation& explanation) {
  return Writer(trace, explanation).take();
}

}  // namespace ingot::report
