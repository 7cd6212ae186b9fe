// SPDX-License-Identifier: Apache-2.0
#include "trace/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/explain.h"
#include "trace/signature.h"
#include "unit/program.h"

namespace ingot::trace {
namespace {

using test::Program;
using testing::ElementsAre;

std::uint32_t op_named(const Trace& trace, std::string_view name) {
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    if (trace.strings[trace.ops.name[op]] == name) return op;
  }
  ADD_FAILURE() << "no operator " << name;
  return none;
}

TEST(Nest, ChildrenLieInTheInnermostRowThatEnclosesThem) {
  const std::vector<std::uint32_t> thread = {0, 0, 0, 0, 1};
  const std::vector<std::int64_t> ts = {10'000, 0, 12'000, 60'000, 10'000};
  const std::vector<std::int64_t> dur = {30'000, 50'000, 5'000, 10'000, 1'000};
  const Nesting n = nest(thread, ts, dur, 2);
  EXPECT_THAT(n.order, ElementsAre(1, 0, 2, 3, 4));
  EXPECT_THAT(n.parent, ElementsAre(1, none, 0, none, none));
  EXPECT_EQ(n.subtree_end[0], 3U);
  EXPECT_EQ(n.innermost(0, 13'000, ts, dur), 2U);
  EXPECT_EQ(n.innermost(0, 20'000, ts, dur), 0U);
  EXPECT_EQ(n.innermost(0, 55'000, ts, dur), none);
  EXPECT_EQ(n.innermost(1, 10'500, ts, dur), 4U);
}

TEST(Nest, RowsThatOnlyOverlapAreSiblings) {
  const std::vector<std::uint32_t> thread = {0, 0, 0};
  const std::vector<std::int64_t> ts = {0, 50'000, 90'000};
  const std::vector<std::int64_t> dur = {80'000, 100'000, 10'000};
  EXPECT_THAT(nest(thread, ts, dur, 1).parent, ElementsAre(none, none, 1));
}

TEST(Nest, ClocksMayRoundTheEndsDifferently) {
  const std::vector<std::uint32_t> thread = {0, 0};
  const std::vector<std::int64_t> ts = {0, 100};
  const std::vector<std::int64_t> dur = {10'000, 10'400};  // 500 ns past its parent's end
  EXPECT_THAT(nest(thread, ts, dur, 1).parent, ElementsAre(none, 0));
}

TEST(Link, KernelLeadsToItsCallAndOperator) {
  Program p;
  p.op("outer", {}, [&] { p.op("inner", {}, [&] { p.kernel("k"); }).kernel("later"); });
  const Trace trace = p.trace();
  const Links links = link(trace);
  ASSERT_EQ(trace.gpu.size(), 2U);
  EXPECT_EQ(links.activity_op[0], op_named(trace, "inner"));
  EXPECT_EQ(links.activity_op[1], op_named(trace, "outer"));
  EXPECT_EQ(links.launched_by(op_named(trace, "outer")).size(), 2U);
  EXPECT_EQ(links.launched_by(op_named(trace, "inner")).size(), 1U);
  EXPECT_EQ(links.late_activities, 0U);
}

constexpr const char* op_event =
    R"({"ph": "X", "cat": "cpu_op", "name": "%", "pid": 1, "tid": 1, "ts": #, "dur": 10, "args": {"External id": 5}})";

std::string event(std::string text, const std::string& name, const std::string& ts) {
  text.replace(text.find('%'), 1, name);
  text.replace(text.find('#'), 1, ts);
  return text;
}

TEST(Link, ADuplicatedExternalIdGoesToTheOperatorAroundTheCall) {
  Program p;
  p.raw(event(op_event, "first", "100")).raw(event(op_event, "second", "200"));
  p.raw(
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 205, "dur": 1, "args": {"External id": 5, "correlation": 9}})");
  p.raw(
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 210, "dur": 1, "args": {"stream": 7, "correlation": 9}})");
  const Trace trace = p.trace();
  EXPECT_EQ(link(trace).activity_op[0], op_named(trace, "second"));
}

TEST(Link, CorrelationAndExternalIdAreDifferentNumbers) {
  Program p;
  p.raw(event(op_event, "op", "100"));
  // The kernel's correlation equals the operator's external id; its launch belongs to no operator.
  p.raw(
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 300, "dur": 1, "args": {"correlation": 5}})");
  p.raw(
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 310, "dur": 1, "args": {"stream": 7, "correlation": 5}})");
  const Trace trace = p.trace();
  const Links links = link(trace);
  EXPECT_EQ(links.activity_call[0], 0U);
  EXPECT_EQ(links.activity_op[0], none);
}

TEST(Link, AKernelBeforeItsLaunchIsCountedAndKept) {
  Program p;
  p.raw(
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 300, "dur": 5, "args": {"correlation": 5}})");
  p.raw(
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 299.5, "dur": 1, "args": {"stream": 7, "correlation": 5}})");
  const Trace trace = p.trace();
  EXPECT_EQ(link(trace).late_activities, 1U);
  const Explanation e = explain(trace).value();
  EXPECT_EQ(e.summary.kernels, 1U);
  ASSERT_EQ(e.warnings.size(), 1U);
  EXPECT_THAT(e.warnings[0], testing::HasSubstr("before their launch call"));
}

TEST(Link, OneGraphLaunchOwnsManyKernels) {
  Program p;
  p.annotation("step", [&] { p.graph({"a", "b", "c"}); });
  const Explanation e = explain(p.trace()).value();
  EXPECT_EQ(e.summary.kernels, 3U);
  EXPECT_EQ(e.summary.launches, 1U);
  ASSERT_EQ(e.regions.size(), 1U);
  EXPECT_EQ(e.regions[0].kernels_per_call, 3);
  EXPECT_EQ(e.regions[0].launches_per_call, 1);
}

TEST(Regions, OverlappingKernelsCountOnce) {
  Program p;
  for (int i = 0; i < 2; ++i) {
    p.raw(fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {}, "dur": 10, "args": {{"stream": 7}}}})",
        100 + 4 * i));
  }
  const Explanation e = explain(p.trace()).value();
  EXPECT_DOUBLE_EQ(e.summary.gpu_busy_us, 14);
  EXPECT_DOUBLE_EQ(e.summary.span_us, 14);
  EXPECT_DOUBLE_EQ(e.summary.gpu_idle_us, 0);
}

TEST(Regions, StepsAreOneRegionAndNamesNestInThem) {
  Program p;
  for (int step = 2; step < 5; ++step) {
    p.annotation(fmt::format("ProfilerStep#{}", step),
                 [&] { p.annotation("model", [&] { p.op("op", {}, [&] { p.kernel("k").kernel("k"); }); }); });
  }
  const Explanation e = explain(p.trace()).value();
  ASSERT_EQ(e.regions.size(), 2U);
  EXPECT_EQ(e.regions[0].name, "ProfilerStep");
  EXPECT_EQ(e.regions[1].name, "model");
  for (const Region& r : e.regions) {
    EXPECT_EQ(r.calls, 3U);
    EXPECT_EQ(r.kernels_per_call, 2);
    EXPECT_DOUBLE_EQ(r.gpu_busy_us, 20);
  }
}

TEST(Regions, AGapThatEndsWithALateLaunchIsOverhead) {
  Program late;
  late.annotation("r", [&] {
    for (int i = 0; i < 4; ++i) late.kernel("k", 2).wait(100);
  });
  const Region overhead = explain(late.trace()).value().regions[0];
  EXPECT_EQ(overhead.verdict, Verdict::overhead_bound);
  EXPECT_GT(overhead.wait_launch_us, 200);
  EXPECT_DOUBLE_EQ(overhead.wait_other_us, 0);

  Program full;  // launches run ahead of the device
  full.annotation("r", [&] {
    for (int i = 0; i < 4; ++i) full.kernel("triton_poi_fused_add_0", 100);
  });
  const Region busy = explain(full.trace()).value().regions[0];
  EXPECT_EQ(busy.verdict, Verdict::memory_bound);
}

TEST(Regions, ADeviceThatWaitsForWorkNotRecordedIsIdle) {
  Program p;
  p.annotation("r", [&] {
    p.kernel("k", 5);
    // Launched at once, started 500 us later.
    p.raw(
        R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1004.5, "dur": 1, "args": {"correlation": 7777}})");
    p.raw(
        R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1600, "dur": 5, "args": {"stream": 7, "correlation": 7777}})");
    p.wait(50);
  });
  EXPECT_EQ(explain(p.trace()).value().regions[0].verdict, Verdict::idle);
}

TEST(ZeroLaunch, OnlyOperatorsThatLaunchNothingWithTheirOwnTime) {
  Program p;
  p.op("aten::linear", {}, [&] {
    p.op("aten::t", {}, [&] { p.wait(6).op("aten::transpose", {}, [&] { p.wait(2); }); });
    p.kernel("k");
  });
  const Explanation e = explain(p.trace()).value();
  ASSERT_EQ(e.zero_launch_ops.size(), 2U);
  EXPECT_EQ(e.zero_launch_ops[0].name, "aten::t");
  EXPECT_NEAR(e.zero_launch_ops[0].cpu_us, 8, 1e-9);  // 1 + 6 + 1 of its own
  EXPECT_EQ(e.zero_launch_ops[1].name, "aten::transpose");
  EXPECT_NEAR(e.zero_launch_ops[1].cpu_us, 3, 1e-9);
}

TEST(Findings, OneShapeOnTwoTiles) {
  Program p;
  const test::OpArgs args = test::shapes({{64, 32}, {32, 128}});
  p.op("aten::mm", args, [&] { p.kernel("nvjet_sm90_tst_64x64_64x16_1x4_h_bz_NNT", 10); });
  p.op("aten::mm", args, [&] { p.kernel("nvjet_sm90_tst_128x128_64x6_1x2_h_bz_TNT", 30); });
  const Explanation e = explain(p.trace()).value();
  for (const Finding& f : e.findings) {
    if (f.id != "same-shape-other-tile") continue;
    EXPECT_THAT(f.saving_us, testing::Optional(20.0));
    return;
  }
  FAIL() << "not found";
}

TEST(Signature, UnparsableTextIsUnknownNeverAWrongShape) {
  EXPECT_TRUE(parse_signature("[[1, 2", "", "").empty());
  EXPECT_TRUE(parse_signature("[[1.5, 2]]", "", "").empty());
  EXPECT_TRUE(parse_signature("[[-1, 2]]", "", "").empty());
  EXPECT_TRUE(parse_signature("{}", "", "").empty());
  const Signature list = parse_signature("[[[2, 3], [4]], []]", R"(["TensorList", "Scalar"])", "");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_THAT(list[1].dims, ElementsAre(4));
  EXPECT_TRUE(list[1].is_list);
  const Signature huge = parse_signature("[[4611686018427387904, 4]]", "", "");
  EXPECT_EQ(huge[0].numel(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace ingot::trace
