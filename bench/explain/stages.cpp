// SPDX-License-Identifier: Apache-2.0
//
// Where the time of `ingot explain` goes, stage by stage, on text in memory: bytes per second are of
// uncompressed text.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/byte_source.h"
#include "ingot/explain.h"
#include "ingot/report.h"

namespace {

using namespace ingot;

constexpr std::uint64_t events_in_file = 88927;  // counted with Python's json

const std::string& packed() {
  static const std::string text = [] {
    std::ifstream in(std::string(INGOT_EXAMPLE_TRACES) + "/dit_24x768_n64_20steps_eager.json.gz",
                     std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return text;
}

trace::Trace checked(std::string_view text) {
  Result<trace::Trace> trace = trace::read_text(text);
  if (!trace || trace->events != events_in_file || trace->skipped_events != 0) {
    std::fputs("the trace was not read right: nothing is timed\n", stderr);
    std::exit(1);
  }
  return *std::move(trace);
}

/// The same events as plain text.
const std::string& plain() {
  static const std::string text = [] {
    std::string out;
    auto source = inflate_if_gzip(memory_bytes(packed()));
    std::string chunk(1 << 20, '\0');
    for (;;) {
      const auto count = source.value()->read(chunk.data(), chunk.size());
      if (!count || *count == 0) return out;
      out.append(chunk, 0, *count);
    }
  }();
  return text;
}

void rate(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(plain().size()));
}

void read_plain(benchmark::State& state) {
  checked(plain());
  for (auto _ : state) benchmark::DoNotOptimize(trace::read_text(plain()));
  rate(state);
}
void read_gzip(benchmark::State& state) {
  checked(packed());
  for (auto _ : state) benchmark::DoNotOptimize(trace::read_text(packed()));
  rate(state);
}
void explain_read_trace(benchmark::State& state) {
  const trace::Trace trace = checked(plain());
  for (auto _ : state) benchmark::DoNotOptimize(explain(trace));
  rate(state);
}
void report_text(benchmark::State& state) {
  const Explanation explanation = explain(checked(plain())).value();
  for (auto _ : state) benchmark::DoNotOptimize(report::text(explanation));
}
void all_plain(benchmark::State& state) {
  checked(plain());
  for (auto _ : state)
    benchmark::DoNotOptimize(report::text(explain(trace::read_text(plain()).value()).value()));
  rate(state);
}
void all_gzip(benchmark::State& state) {
  checked(packed());
  for (auto _ : state)
    benchmark::DoNotOptimize(report::text(explain(trace::read_text(packed()).value()).value()));
  rate(state);
}

BENCHMARK(read_plain)->Unit(benchmark::kMillisecond)->Repetitions(7)->ReportAggregatesOnly();
BENCHMARK(read_gzip)->Unit(benchmark::kMillisecond)->Repetitions(7)->ReportAggregatesOnly();
BENCHMARK(explain_read_trace)->Unit(benchmark::kMillisecond)->Repetitions(7)->ReportAggregatesOnly();
BENCHMARK(report_text)->Unit(benchmark::kMicrosecond)->Repetitions(7)->ReportAggregatesOnly();
BENCHMARK(all_plain)->Unit(benchmark::kMillisecond)->Repetitions(7)->ReportAggregatesOnly();
BENCHMARK(all_gzip)->Unit(benchmark::kMillisecond)->Repetitions(7)->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
