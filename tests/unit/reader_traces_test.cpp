// SPDX-License-Identifier: Apache-2.0
//
// Every column of every recorded trace, against an independent account of the same files: see
// data/trace_facts.py. Traces of others are read in place and never copied; where they are absent, their test
// skips.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ingot/trace.h"

namespace ingot::trace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::uint32_t crc32(std::string_view text, std::uint32_t crc) {
  crc = ~crc;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

struct Table {
  std::uint32_t rows = 0, crc = 0;
  void add(const std::string& line) {
    ++rows;
    crc = crc32(line + "\n", crc);
  }
};

std::string id(std::uint64_t value) {
  return value == no_id ? "-" : std::to_string(value);
}

std::string compact(std::string_view text) {
  return text.empty() ? "" : Json::parse(text).dump();
}

std::map<std::string, Table> tables(const Trace& t) {
  std::map<std::string, Table> out;
  const auto text = [&t](StringId string) { return t.strings[string]; };
  const auto lane = [&t](std::uint32_t thread) {
    return t.threads[thread].pid + " " + t.threads[thread].tid;
  };
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    out["ops"].add(fmt::format("{} {} {} {} {} {} {} {}", t.ops.ts_ns[i], t.ops.dur_ns[i],
                               lane(t.ops.thread[i]), text(t.ops.name[i]), id(t.ops.external_id[i]),
                               compact(text(t.ops.dims[i])), compact(text(t.ops.types[i])),
                               compact(text(t.ops.concrete[i]))));
  }
  for (std::size_t i = 0; i < t.calls.size(); ++i) {
    out["calls"].add(fmt::format("{} {} {} {} {} {}", t.calls.ts_ns[i], t.calls.dur_ns[i],
                                 lane(t.calls.thread[i]), text(t.calls.name[i]), t.calls.correlation[i],
                                 id(t.calls.external_id[i])));
  }
  for (std::size_t i = 0; i < t.gpu.size(); ++i) {
    const LaunchShape& s = t.launch_shapes[t.gpu.shape[i]];
    out["gpu"].add(fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(t.gpu.kind[i]), t.gpu.ts_ns[i],
        t.gpu.dur_ns[i], text(t.gpu.name[i]), t.gpu.device[i], t.gpu.stream[i], t.gpu.correlation[i],
        id(t.gpu.external_id[i]), t.gpu.bytes[i], s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
        s.block[2], s.registers_per_thread, s.shared_memory_bytes));
  }
  for (const auto& [name, rows] :
       {std::pair{"annotations", &t.annotations}, std::pair{"gpu_annotations", &t.gpu_annotations}}) {
    for (std::size_t i = 0; i < rows->size(); ++i) {
      out[name].add(fmt::format("{} {} {} {} {}", rows->ts_ns[i], rows->dur_ns[i], lane(rows->thread[i]),
                                text(rows->name[i]), id(rows->external_id[i])));
    }
  }
  for (std::size_t i = 0; i < t.overheads.size(); ++i) {
    out["overheads"].add(
        fmt::format("{} {} {}", t.overheads.ts_ns[i], t.overheads.dur_ns[i], text(t.overheads.name[i])));
  }
  return out;
}

void expect_facts(const fs::path& file, const Json& facts) {
  SCOPED_TRACE(file.filename().string());
  const auto trace = read_file(file.string());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->events, facts["events"].get<std::uint64_t>());
  EXPECT_EQ(trace->skipped_events, 0U);
  EXPECT_EQ(trace->repaired_events, 0U);
  EXPECT_EQ(trace->first_skipped_offset, no_id);
  EXPECT_TRUE(trace->complete);
  EXPECT_TRUE(trace->warnings.empty()) << trace->warnings.front();
  std::vector<std::string> devices;
  for (const Device& device : trace->devices) devices.push_back(device.name);
  EXPECT_EQ(devices, facts["devices"].get<std::vector<std::string>>());
  std::map<std::string, std::uint64_t> categories;
  for (const auto& [name, count] : trace->categories) categories[std::string(trace->strings[name])] += count;
  EXPECT_EQ(categories, (facts["categories"].get<std::map<std::string, std::uint64_t>>()));
  std::map<std::string, Table> found = tables(*trace);
  for (const auto& [name, wanted] : facts["tables"].items()) {
    EXPECT_EQ(found[name].rows, wanted[0].get<std::uint32_t>()) << name;
    EXPECT_EQ(found[name].crc, wanted[1].get<std::uint32_t>()) << name;
  }
}

Json read_facts() {
  std::ifstream in(INGOT_TEST_DATA "/trace_facts.json");
  return Json::parse(in);
}

/// Reads every trace of a folder; returns how many there were.
std::size_t expect_folder(const fs::path& folder) {
  const Json facts = read_facts();
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".gz") continue;
    EXPECT_TRUE(facts.contains(name)) << name << " has no facts: run tests/data/trace_facts.py";
    if (facts.contains(name)) expect_facts(entry.path(), facts[name]);
    ++count;
  }
  return count;
}

TEST(ReaderTraces, OwnRecordings) {
  EXPECT_EQ(expect_folder(INGOT_EXAMPLE_TRACES), 18U);
}

TEST(ReaderTraces, PublicTraces) {
  if (!fs::is_directory(INGOT_PUBLIC_TRACES)) GTEST_SKIP() << "no " INGOT_PUBLIC_TRACES;
  EXPECT_EQ(expect_folder(INGOT_PUBLIC_TRACES), 14U);
}

TEST(ReaderTraces, TheDeviceIsReadWithItsLimits) {
  const auto trace = read_file(INGOT_EXAMPLE_TRACES "/linear_1024x32x64_eager.json.gz");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->devices.size(), 1U);
  const Device& device = trace->devices[0];
  EXPECT_EQ(device.id, 0);
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.sms, 132);
  EXPECT_EQ(device.compute_major, 9);
  EXPECT_EQ(device.compute_minor, 0);
  EXPECT_EQ(device.memory_bytes, 150109880320U);
  EXPECT_EQ(device.registers_per_sm, 65536U);
  EXPECT_EQ(device.shared_memory_per_sm, 233472U);
  EXPECT_EQ(device.max_threads_per_sm, 2048);
  EXPECT_EQ(device.warp_size, 32);
}

}  // namespace
}  // namespace ingot::trace
