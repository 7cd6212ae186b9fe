// SPDX-License-Identifier: Apache-2.0
//
// Every generation of the format, from small made-up traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace_text.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using testing::Pair;

Trace read(const std::string& text) {
  auto trace = read_text(text);
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message);
  return trace.ok() ? std::move(trace).value() : Trace{};
}

TEST(ReaderFormat, TodaysLayout) {
  const Trace t = read(envelope(joined({op_event("aten::mm", 11), kernel_event("gemm<int>", 12)})));
  EXPECT_EQ(t.file, "<memory>");
  EXPECT_EQ(t.events, 2U);
  ASSERT_EQ(t.ops.size(), 1U);
  EXPECT_EQ(t.ops.ts_ns[0], 5235574055011573);
  EXPECT_EQ(t.ops.dur_ns[0], 18116);
  EXPECT_EQ(t.threads[t.ops.thread[0]].pid, "482");
  EXPECT_EQ(t.threads[t.ops.thread[0]].tid, "482");
  EXPECT_EQ(t.strings[t.ops.name[0]], "aten::mm");
  EXPECT_EQ(t.ops.external_id[0], 11U);
  EXPECT_EQ(t.strings[t.ops.dims[0]], "[[8, 16], []]");
  EXPECT_EQ(t.strings[t.ops.types[0]], R"(["c10::BFloat16", "Scalar"])");
  EXPECT_EQ(t.strings[t.ops.concrete[0]], R"(["", "1"])");
  ASSERT_EQ(t.gpu.size(), 1U);
  EXPECT_EQ(t.gpu.kind[0], ActivityKind::kernel);
  EXPECT_EQ(t.gpu.ts_ns[0], 5235574055012726);
  EXPECT_EQ(t.gpu.device[0], 0);
  EXPECT_EQ(t.gpu.stream[0], 7);
  EXPECT_EQ(t.gpu.correlation[0], 12U);
  EXPECT_EQ(t.gpu.external_id[0], 12U);
  EXPECT_EQ(t.launch_shapes[t.gpu.shape[0]], (LaunchShape{{5, 2, 1}, {128, 1, 1}, 34, 16}));
  EXPECT_EQ(t.first_ns, 5235574055011573);
  EXPECT_EQ(t.last_ns, 5235574055011573 + 18116);
  EXPECT_THAT(t.metadata, ElementsAre(Pair("schemaVersion", "1"), Pair("displayTimeUnit", "ms"),
                                      Pair("baseTimeNanoseconds", "1790857026000000000"),
                                      Pair("traceName", "small.json")));
  EXPECT_TRUE(t.warnings.empty());
}

TEST(ReaderFormat, FilesOf2021) {
  const Trace t = read(R"({"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 5612, "tid": "5612", "ts": 1621401187223005, "dur": 45,
   "args": {"Device": 5612, "External id": 61, "Trace name": "PyTorch Profiler", "Trace iteration": 0,
            "Input dims": []}},
  {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5612, "tid": "5612", "ts": 1621401187223010,
   "dur": 9, "args": {"cbid": 211, "correlation": 334, "external id": 61, "external ts": 1621401187223005}},
  {"ph": "X", "cat": "Kernel", "name": "volta_sgemm", "pid": 0, "tid": "stream 7", "ts": 1621401187223100, "dur": 3,
   "args": {"queued": 0, "device": 0, "context": 1, "correlation": 334, "external id": 61,
            "registers per thread": 16, "shared memory": 0, "grid": [1, 1, 1], "block": [128, 1, 1]}},
  {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 20", "ts": 1621401187223200, "dur": 2,
   "args": {"device": 0, "stream": 20, "correlation": 335, "external id": 62, "bytes": 4096}},
  {"ph": "X", "cat": "Memset", "name": "Memset", "pid": 0, "tid": "stream 7", "ts": 1621401187223300,
   "dur": 1, "args": {"device": 0, "correlation": 336, "external id": 63, "bytes": 4}}
]})");
  EXPECT_EQ(t.events, 5U);
  ASSERT_EQ(t.ops.size(), 1U);
  ASSERT_EQ(t.calls.size(), 1U);
  ASSERT_EQ(t.gpu.size(), 3U);
  EXPECT_EQ(t.ops.ts_ns[0], 1621401187223005000);
  EXPECT_EQ(t.ops.external_id[0], 61U);
  EXPECT_EQ(t.calls.correlation[0], 334U);
  EXPECT_EQ(t.calls.external_id[0], 61U);
  EXPECT_THAT(t.gpu.kind, ElementsAre(ActivityKind::kernel, ActivityKind::memcpy, ActivityKind::memset));
  EXPECT_THAT(t.gpu.stream, ElementsAre(7, 20, 7));
  EXPECT_THAT(t.gpu.external_id, ElementsAre(61U, 62U, 63U));
  EXPECT_THAT(t.gpu.bytes, ElementsAre(0U, 4096U, 4U));
}

TEST(ReaderFormat, ABareArrayIsATrace) {
  const std::string events = joined({op_event("a", 1), kernel_event("k", 2)});
  for (const std::string& text :
       {"[" + events + "]", "\n [\n" + events + "\n]\n", "\xef\xbb\xbf[" + events + "\n]"}) {
    const Trace t = read(text);
    EXPECT_EQ(t.events, 2U);
    EXPECT_TRUE(t.complete);
    EXPECT_TRUE(t.warnings.empty());
  }
  EXPECT_EQ(read("[]").events, 0U);
  EXPECT_EQ(read("{\"traceEvents\": []}").events, 0U);
}

TEST(ReaderFormat, MembersMayStandBehindTheEventsOrBefore) {
  const Trace t =
      read("{\"traceEvents\": [" + op_event("a", 1) +
           "], \"displayTimeUnit\": \"ns\", \"record_shapes\": true, \"nested\": {\"traceEvents\": [1]}, "
           "\"deviceProperties\": [{\"id\": 3, \"name\": \"Card\", \"numSms\": 7}], \"x\": 1.50}");
  EXPECT_THAT(t.metadata,
              ElementsAre(Pair("displayTimeUnit", "ns"), Pair("record_shapes", "true"), Pair("x", "1.50")));
  ASSERT_EQ(t.devices.size(), 1U);
  EXPECT_EQ(t.devices[0].id, 3);
  EXPECT_EQ(t.devices[0].sms, 7);
  EXPECT_EQ(t.ops.dur_ns[0], 18116);  // microseconds, whatever displayTimeUnit says
}

TEST(ReaderFormat, AQuotedKeyInsideAStringIsNotTheArray) {
  const Trace t =
      read(R"j({"cmd": "print(\"traceEvents\": [1])", "traceEvents": [)j" + op_event("a", 1) + "]}");
  EXPECT_EQ(t.events, 1U);
  EXPECT_THAT(t.metadata, ElementsAre(Pair("cmd", R"j(print("traceEvents": [1]))j")));
}

TEST(ReaderFormat, OnlyCompleteEventsOfKnownCategoriesBecomeRows) {
  const Trace t = read(envelope(joined({
      R"({"ph": "B", "cat": "cpu_op", "name": "begin", "pid": 1, "tid": 1, "ts": 1})",
      R"({"ph": "s", "id": 5, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"})",
      R"({"ph": "X", "cat": "python_function", "name": "f.py(1): f", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {}})",
      R"({"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "python"}})",
      R"({"ph": "X", "cat": "Trace", "ts": 1, "dur": 2, "pid": "Spans", "tid": "PyTorch Profiler", "name": "P"})",
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaFree", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {}})",
      R"({"ph": "C", "cat": "hardware_counters", "name": "c", "ts": 4, "args": {"": 1.5}})",
      R"({"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 5, "dur": 367.014})",
      R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 6, "dur": 1})",
      R"({"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 7, "dur": 1})",
  })));
  EXPECT_EQ(t.events, 10U);
  EXPECT_EQ(t.skipped_events, 0U);
  EXPECT_EQ(t.ops.size() + t.calls.size() + t.gpu.size(), 0U);
  EXPECT_EQ(t.overheads.dur_ns, std::vector<std::int64_t>{367014});
  EXPECT_THAT(names(t, t.annotations.name), ElementsAre("ProfilerStep#2"));
  EXPECT_THAT(names(t, t.gpu_annotations.name), ElementsAre("step"));
  std::uint64_t counted = 0;
  for (const auto& [name, count] : t.categories) counted += count;
  EXPECT_EQ(counted, 10U);
  EXPECT_EQ(t.first_ns, 5000);
  EXPECT_EQ(t.last_ns, 5000 + 367014);
}

TEST(ReaderFormat, KeysInAnyOrderAndLayout) {
  const Trace t = read(
      R"([{"args":{"block":[32,1,1],"stream":3,"correlation":9,"device":1,"grid":[2,1,1]},"cat":"kernel","dur":2,)"
      R"("name":"k","ph":"X","pid":1,"tid":3,"ts":1.5}])");
  ASSERT_EQ(t.gpu.size(), 1U);
  EXPECT_EQ(t.gpu.ts_ns[0], 1500);
  EXPECT_EQ(t.gpu.device[0], 1);
  EXPECT_EQ(t.gpu.external_id[0], no_id);
  EXPECT_EQ(t.launch_shapes[t.gpu.shape[0]], (LaunchShape{{2, 1, 1}, {32, 1, 1}, 0, 0}));
}

TEST(ReaderFormat, NamesAreTheCharactersTheyStandFor) {
  const Trace t = read(envelope(op_event(R"(caf\u00e9 \"x\" \\ \ud83d\ude00)", 1)));
  EXPECT_THAT(names(t, t.ops.name), ElementsAre("caf\xc3\xa9 \"x\" \\ \xf0\x9f\x98\x80"));
}

TEST(ReaderFormat, IdsOfEveryKind) {
  const auto with_id = [](const std::string& id) {
    return R"({"ph":"X","cat":"cpu_op","name":"n","pid":"Spans","tid":"t","ts":1,"dur":1,"args":{"External id":)" +
           id + "}}";
  };
  const Trace t =
      read(envelope(joined({with_id("18446744073709551614"), with_id("\"42\""), with_id("-1"),
                            with_id("\"fwd-7\""), with_id("\"fwd-7\""), with_id("340282366920938463463"),
                            with_id("null"), with_id("7"), with_id("7")})));
  ASSERT_EQ(t.ops.size(), 9U);
  EXPECT_EQ(t.skipped_events, 0U);
  const auto& ids = t.ops.external_id;
  EXPECT_EQ(ids[0], 18446744073709551614U);
  EXPECT_EQ(ids[1], 42U);
  EXPECT_EQ(ids[2], no_id);
  EXPECT_EQ(ids[3], ids[4]);
  EXPECT_NE(ids[3], no_id);
  EXPECT_NE(ids[5], no_id);
  EXPECT_EQ(ids[6], no_id);
  EXPECT_EQ(ids[7], ids[8]);  // duplicates are kept: the linker decides
  EXPECT_EQ(t.threads.size(), 1U);
  EXPECT_EQ(t.threads[0].pid, "Spans");
  EXPECT_EQ(t.threads[0].tid, "t");
}

TEST(ReaderFormat, DurationsMissingNegativeOrNotANumberAreZero) {
  const auto with = [](const std::string& dur) {
    return R"({"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":10)" + dur + "}";
  };
  const Trace t = read(envelope(joined({with(""), with(R"(,"dur":-3)"), with(R"(,"dur":nan)"),
                                        with(R"(,"dur":1e300)"), with(R"(,"dur":"2.5")")})));
  EXPECT_THAT(t.ops.dur_ns, ElementsAre(0, 0, 0, 0, 2500));
  EXPECT_EQ(t.events, 5U);
  EXPECT_EQ(t.repaired_events, 2U);  // nan and the one beyond any clock
}

TEST(ReaderFormat, KeptEventsWithoutTimeAreSkippedOthersCounted) {
  const std::string good = op_event("good", 1);
  const std::string text =
      envelope(joined({good, R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"dur":1})",
                       R"({"ph":"X","cat":"cpu_op","name":"o","ts":nan,"dur":1})",
                       R"({"ph":"X","cat":"python_function","name":"f"})", good}));
  const Trace t = read(text);
  EXPECT_EQ(t.events, 3U);
  EXPECT_EQ(t.skipped_events, 2U);
  EXPECT_EQ(t.first_skipped_offset, text.find(R"({"ph":"X","cat":"kernel")"));
  EXPECT_EQ(t.ops.size(), 2U);
  ASSERT_EQ(t.warnings.size(), 1U);
  EXPECT_EQ(t.warnings[0],
            "2 events could not be read, the first at byte " + std::to_string(t.first_skipped_offset));
}

TEST(ReaderFormat, ShapeTextTooDeepOrTooLongIsNoShape) {
  const auto with = [](const std::string& dims) {
    return R"({"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Input Dims":)" +
           dims + "}}";
  };
  const Trace t = read(envelope(joined({with("[[[1]]]"), with(std::string(9, '[') + std::string(9, ']')),
                                        with("[" + std::string(100000, ' ') + "1]"), with("null")})));
  ASSERT_EQ(t.ops.size(), 4U);
  EXPECT_EQ(t.strings[t.ops.dims[0]], "[[[1]]]");
  EXPECT_THAT(t.ops.dims, ElementsAre(t.ops.dims[0], 0U, 0U, 0U));
}

}  // namespace
}  // namespace ingot::trace
