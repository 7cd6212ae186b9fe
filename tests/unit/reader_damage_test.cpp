// SPDX-License-Identifier: Apache-2.0
//
// One bad event costs one event, wherever and however it is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "trace_text.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Five ops and three kernels around a victim; all but the victim must survive.
std::string with_victim(const std::string& victim, bool pretty) {
  std::string text =
      envelope(joined({op_event("first", 1), kernel_event("k1<int>()", 2), op_event("second", 3), victim,
                       op_event("third", 5), kernel_event("k2 {lambda(int)#1}", 6), op_event("last", 7)}));
  return pretty ? text : one_line(text);
}

void expect_neighbours(const Trace& trace, const std::string& what) {
  std::vector<std::string> ops = names(trace, trace.ops.name);
  std::vector<std::string> kernels = names(trace, trace.gpu.name);
  const auto holds = [](const std::vector<std::string>& all, const char* name) {
    return std::count(all.begin(), all.end(), name) == 1;
  };
  const bool good = holds(ops, "first") && holds(ops, "second") && holds(ops, "third") &&
                    holds(ops, "last") && holds(kernels, "k1<int>()") && holds(kernels, "k2 {lambda(int)#1}");
  ASSERT_TRUE(good) << what << "\n" << dump(trace);
  ASSERT_LE(trace.skipped_events, 1U) << what << "\n" << dump(trace);
  ASSERT_TRUE(trace.complete) << what << "\n" << dump(trace);
  ASSERT_GE(trace.events + trace.skipped_events, 7U) << what << "\n" << dump(trace);
  ASSERT_LE(trace.events + trace.skipped_events, 8U) << what << "\n" << dump(trace);
}

class Damage : public testing::TestWithParam<bool> {};

TEST_P(Damage, AnyByteAnywhereInAnEventCostsThatEventAtMost) {
  const std::string victim = kernel_event("void gemm<a, {b}>(int)", 4);
  for (std::size_t at = 1; at + 1 < victim.size(); ++at) {
    for (const char c : std::string("\"{}[],:\\\n\t\x01\xff"
                                    "0a",
                                    14)) {
      for (const bool insert : {true, false}) {
        std::string damaged = victim;
        damaged.replace(at, insert ? 0 : 1, 1, c);
        const auto trace = read_text(with_victim(damaged, GetParam()));
        const std::string what =
            fmt::format("byte {} {} {:02x}", at, insert ? "before" : "is", static_cast<unsigned char>(c));
        ASSERT_TRUE(trace.ok()) << what;
        ASSERT_NO_FATAL_FAILURE(expect_neighbours(*trace, what));
      }
    }
  }
}

TEST_P(Damage, EveryByteOfAnEventMayBeMissing) {
  const std::string victim = op_event("aten::add", 4);
  for (std::size_t at = 1; at + 1 < victim.size(); ++at) {
    for (const std::size_t count : {1U, 2U, 7U}) {
      if (at + count >= victim.size()) continue;
      std::string damaged = victim;
      damaged.erase(at, count);
      const auto trace = read_text(with_victim(damaged, GetParam()));
      const std::string what = fmt::format("{} bytes missing at {}", count, at);
      ASSERT_TRUE(trace.ok()) << what;
      ASSERT_NO_FATAL_FAILURE(expect_neighbours(*trace, what));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layout, Damage, testing::Bool(),
                         [](const auto& layout) { return layout.param ? "Pretty" : "OneLine"; });

/// `count` events of one kind of damage each, good ones in between.
std::string alternating(const std::string& bad, int count) {
  std::vector<std::string> events;
  for (int i = 0; i < count; ++i) {
    events.push_back(bad);
    events.push_back(op_event("good", 1));
  }
  return envelope(joined(events));
}

TEST(ReaderDamage, EveryKindIsMendedOrCounted) {
  const auto with_name = [](const std::string& name) { return op_event(name, 4); };
  struct Case {
    const char* what;
    std::string event;
    std::string name;          ///< after mending
    std::uint64_t mended = 1;  ///< escapes that are none need no mending: they stand for themselves
  };
  const std::vector<Case> cases = {
      {"invalid UTF-8", with_name("a\xff\xfe z"), "a\xef\xbf\xbd\xef\xbf\xbd z"},
      {"raw control characters",
       with_name("a\tb\x01"
                 "z"),
       "a b z"},
      {"raw line break", with_name("ab\nc"), "ab c"},
      {"two quotes", with_name("f(\"x\")"), "f(\"x\")"},
      {"one quote", with_name("it\"s"), "it\"s"},
      {"three quotes", with_name("a\"b\"c\"d"), "a\"b\"c\"d"},
      {"a quote and a brace", with_name("a\"{b"), "a\"{b"},
      {"a closing brace in quotes", with_name("a\"}\"b"), "a\"}\"b"},
      {"a path of Windows", with_name("C:\\Users\\x.py"), "C:\\Users\\x.py", 0},
      {"a path that ends in a backslash", with_name("C:\\work\\"), "C:\\work\\"},
  };
  for (const Case& c : cases) {
    for (const bool pretty : {true, false}) {
      if (!pretty && c.event.find("b\n") != std::string::npos) continue;  // that break would be gone
      const std::string text = alternating(c.event, 50);
      const auto trace = read_text(pretty ? text : one_line(text));
      ASSERT_TRUE(trace.ok()) << c.what;
      EXPECT_EQ(trace->events, 100U) << c.what;
      EXPECT_EQ(trace->skipped_events, 0U) << c.what;
      EXPECT_EQ(trace->repaired_events, 50 * c.mended) << c.what;
      EXPECT_TRUE(trace->complete) << c.what;
      std::vector<std::string> ops = names(*trace, trace->ops.name);
      ASSERT_EQ(ops.size(), 100U) << c.what;
      EXPECT_EQ(ops[0], c.name) << c.what;
      EXPECT_EQ(ops[1], "good");
      EXPECT_EQ(trace->ops.external_id[0], 4U) << c.what;
    }
  }
}

TEST(ReaderDamage, NotANumberIsReadAroundIt) {
  std::string nan_argument = kernel_event("k", 4);
  nan_argument.replace(nan_argument.find("0.037879"), 8, "-nan");
  std::string infinite = kernel_event("k2", 5);
  infinite.replace(infinite.find("\"registers per thread\": 34"), 26, "\"registers per thread\": inf");
  const auto trace = read_text(envelope(joined({nan_argument, infinite, op_event("good", 1)})));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 3U);
  EXPECT_EQ(trace->skipped_events, 0U);
  EXPECT_EQ(trace->launch_shapes[trace->gpu.shape[0]].registers_per_thread, 34U);
  EXPECT_EQ(trace->launch_shapes[trace->gpu.shape[1]].registers_per_thread, 0U);
}

TEST(ReaderDamage, ManyBadEventsAreReadInLinearTime) {
  // All bad: a quadratic reader would need minutes for this.
  std::vector<std::string> events(40000, op_event("bad\xff", 4));
  const auto trace = read_text(envelope(joined(events)));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->repaired_events, 40000U);
  EXPECT_EQ(trace->ops.size(), 40000U);
}

TEST(ReaderDamage, AStrayQuoteInALongLineCostsNothingBehindIt) {
  std::vector<std::string> events(20000, op_event("good", 1));
  for (const std::size_t at : {std::size_t{3}, std::size_t{5000}, std::size_t{19999}})
    events[at] = op_event("o\"dd", 4);
  const auto trace = read_text(one_line(envelope(joined(events))));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 20000U);
  EXPECT_EQ(trace->repaired_events, 3U);
  EXPECT_TRUE(trace->complete);
}

TEST(ReaderDamage, JunkBetweenEventsIsCountedOnce) {
  for (const char* junk : {"7", "null", "\"text\"", "true, false", "@@@ ]]] @@@", "[1, 2]", "}"}) {
    const std::string text = envelope(joined(
        {op_event("first", 1), op_event("second", 2), junk, op_event("third", 3), op_event("last", 4)}));
    const auto trace = read_text(text);
    ASSERT_TRUE(trace.ok()) << junk;
    EXPECT_THAT(names(*trace, trace->ops.name), ElementsAre("first", "second", "third", "last")) << junk;
    EXPECT_LE(trace->skipped_events + trace->repaired_events, 2U) << junk;
    EXPECT_GE(trace->skipped_events + trace->repaired_events, 1U) << junk;
    EXPECT_TRUE(trace->complete) << junk;
  }
}

TEST(ReaderDamage, DeepNestingNeitherRecursesNorStops) {
  constexpr std::size_t levels = 100000;
  const auto nested = [](const std::string& key, const std::string& open, const std::string& close,
                         bool closed) {
    std::string value;
    for (std::size_t i = 0; i < levels; ++i) value += open;
    value += "1";
    for (std::size_t i = 0; closed && i < levels; ++i) value += close;
    return R"({"ph": "X", "cat": "cpu_op", "name": "deep", "ts": 1, "dur": 1, "args": {")" + key +
           "\": " + value + "}}";
  };
  for (const char* key : {"Input Dims", "anything"}) {
    for (const bool closed : {true, false}) {
      for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}}) {
        const auto trace = read_text(
            envelope(joined({op_event("first", 1), nested(key, open, close, closed), op_event("last", 2)})));
        ASSERT_TRUE(trace.ok());
        const auto ops = names(*trace, trace->ops.name);
        EXPECT_EQ(ops.front(), "first");
        EXPECT_EQ(ops.back(), "last");
        EXPECT_EQ(trace->events + trace->skipped_events, 3U);
        EXPECT_TRUE(trace->complete);
      }
    }
  }
  const auto outside =
      read_text("{\"a\": " + std::string(levels, '[') + ", \"traceEvents\": [" + op_event("x", 1) + "]}");
  ASSERT_TRUE(outside.ok());
  EXPECT_EQ(outside->events, 1U);
}

TEST(ReaderDamage, LongEventsAreReadAndEndlessOnesGivenUp) {
  for (const std::size_t length : {std::size_t{300} << 10, std::size_t{3} << 20}) {
    const auto trace = read_text(
        envelope(joined({op_event("first", 1), op_event(std::string(length, 'n'), 2), op_event("last", 3)})));
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->events, 3U);
    EXPECT_EQ(trace->strings[trace->ops.name[1]].size(), length);
    EXPECT_TRUE(trace->warnings.empty());
  }
  const std::string endless = "{\"ph\": \"X\", \"name\": \"" + std::string(std::size_t{20} << 20, '\x01');
  const auto trace = read_text(envelope(joined({op_event("first", 1), endless, op_event("last", 3)})));
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(names(*trace, trace->ops.name), ElementsAre("first", "last"));
  EXPECT_EQ(trace->skipped_events, 1U);
  EXPECT_TRUE(trace->complete);
}

TEST(ReaderDamage, BrokenMetadataCostsNoEvent) {
  const std::string events = "\"traceEvents\": [" + op_event("a", 1) + ", " + op_event("b", 2) + "]";
  const std::string device = "\"deviceProperties\": [{\"id\": 0, \"name\": \"Card\"}]";
  for (const std::string& broken : {std::string("\"x\": {oops"), std::string("\"x\": \"un\"quoted\""),
                                    std::string("\"x\": \"odd\" quote\""), std::string("\"x\": }}}"),
                                    std::string("\"x\": C:\\path"), std::string("\"x\": \"\xff\"")}) {
    for (const bool before : {true, false}) {
      const std::string text = before ? "{" + device + ", " + broken + ", " + events + "}"
                                      : "{" + events + ", " + device + ", " + broken + "}";
      const auto trace = read_text(text);
      ASSERT_TRUE(trace.ok()) << text;
      EXPECT_EQ(trace->events, 2U) << text;
      EXPECT_TRUE(trace->complete) << text;
      ASSERT_EQ(trace->devices.size(), 1U) << text;
      EXPECT_EQ(trace->devices[0].name, "Card") << text;
    }
  }
}

}  // namespace
}  // namespace ingot::trace
