// SPDX-License-Identifier: Apache-2.0
//
// Small traces for tests: events as the profiler writes them, and a whole Trace as text, to compare two.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "ingot/trace.h"

namespace ingot::trace {

inline std::string envelope(const std::string& events) {
  return "\n{\n  \"schemaVersion\": 1,\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": "
         "1790857026000000000,\n"
         "  \"traceEvents\": [\n" +
         events + "\n  ],\n  \"traceName\": \"small.json\"\n}\n";
}

inline std::string joined(const std::vector<std::string>& events, std::string_view separator = ",\n  ") {
  std::string out;
  for (const std::string& event : events) {
    if (!out.empty()) out += separator;
    out += event;
  }
  return out;
}

/// A cpu_op in the profiler's own layout. `name` goes in as it is.
inline std::string op_event(std::string_view name, int id) {
  return fmt::format(
      "{{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 482, \"tid\": 482,\n"
      "    \"ts\": 5235574055{:03}.573, \"dur\": 18.116,\n    \"args\": {{\n      \"External id\": {},"
      "\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"1\"], \"Input type\": [\"c10::BFloat16\", "
      "\"Scalar\"], "
      "\"Input Dims\": [[8, 16], []], \"Ev Idx\": {}\n    }}\n  }}",
      name, id, id, id);
}

inline std::string kernel_event(std::string_view name, int correlation) {
  return fmt::format(
      "{{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": 7,\n"
      "    \"ts\": 5235574055{:03}.726, \"dur\": 1.313,\n    \"args\": {{\n      \"External id\": {},      "
      "\"queued\": "
      "0, \"device\": 0, \"context\": 1,      \"stream\": 7, \"correlation\": {},      \"registers per "
      "thread\": 34,  "
      "    \"shared memory\": 16,      \"blocks per SM\": 0.037879,      \"grid\": [5, 2, 1],      "
      "\"block\": [128, 1, "
      "1],      \"est. achieved occupancy %\": 0\n    }}\n  }}",
      name, correlation, correlation, correlation);
}

/// The same text on one line, as Python's json module writes it.
inline std::string one_line(std::string text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

/// Names of the rows kept, in file order within each table.
inline std::vector<std::string> names(const Trace& trace, const std::vector<StringId>& column) {
  std::vector<std::string> out;
  out.reserve(column.size());
  for (const StringId id : column) out.emplace_back(trace.strings[id]);
  return out;
}

/// Everything a trace holds, as text.
inline std::string dump(const Trace& t) {
  std::string out = fmt::format("events {} skipped {} at {} repaired {} complete {} span {} {} bytes {}\n",
                                t.events, t.skipped_events, t.first_skipped_offset, t.repaired_events,
                                t.complete, t.first_ns, t.last_ns, t.bytes);
  const auto text = [&t](StringId id) { return t.strings[id]; };
  for (const auto& warning : t.warnings) out += "warning " + warning + "\n";
  for (const auto& [key, value] : t.metadata) out += fmt::format("{} = {}\n", key, value);
  for (const auto& d : t.devices) {
    out += fmt::format("device {} {} {} {}.{} {} {} {} {} {}\n", d.id, d.name, d.sms, d.compute_major,
                       d.compute_minor, d.memory_bytes, d.registers_per_sm, d.shared_memory_per_sm,
                       d.max_threads_per_sm, d.warp_size);
  }
  for (const auto& [name, count] : t.categories) out += fmt::format("category '{}' {}\n", text(name), count);
  for (const auto& thread : t.threads) out += fmt::format("thread '{}' '{}'\n", thread.pid, thread.tid);
  for (const auto& s : t.launch_shapes) {
    out += fmt::format("shape {} {} {} / {} {} {} / {} {}\n", s.grid[0], s.grid[1], s.grid[2], s.block[0],
                       s.block[1], s.block[2], s.registers_per_thread, s.shared_memory_bytes);
  }
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    out += fmt::format("op {} {} {} {} {} {} {} {}\n", t.ops.ts_ns[i], t.ops.dur_ns[i], t.ops.thread[i],
                       text(t.ops.name[i]), t.ops.external_id[i], text(t.ops.dims[i]), text(t.ops.types[i]),
                       text(t.ops.concrete[i]));
  }
  for (std::size_t i = 0; i < t.calls.size(); ++i) {
    out += fmt::format("call {} {} {} {} {} {}\n", t.calls.ts_ns[i], t.calls.dur_ns[i], t.calls.thread[i],
                       text(t.calls.name[i]), t.calls.correlation[i], t.calls.external_id[i]);
  }
  for (std::size_t i = 0; i < t.gpu.size(); ++i) {
    out += fmt::format("gpu {} {} {} {} {} {} {} {} {} {}\n", static_cast<int>(t.gpu.kind[i]), t.gpu.ts_ns[i],
                       t.gpu.dur_ns[i], text(t.gpu.name[i]), t.gpu.device[i], t.gpu.stream[i],
                       t.gpu.correlation[i], t.gpu.external_id[i], t.gpu.bytes[i], t.gpu.shape[i]);
  }
  for (const auto* rows : {&t.annotations, &t.gpu_annotations}) {
    for (std::size_t i = 0; i < rows->size(); ++i) {
      out += fmt::format("annotation {} {} {} {} {}\n", rows->ts_ns[i], rows->dur_ns[i], rows->thread[i],
                         text(rows->name[i]), rows->external_id[i]);
    }
  }
  for (std::size_t i = 0; i < t.overheads.size(); ++i) {
    out += fmt::format("overhead {} {} {}\n", t.overheads.ts_ns[i], t.overheads.dur_ns[i],
                       text(t.overheads.name[i]));
  }
  return out;
}

}  // namespace ingot::trace
