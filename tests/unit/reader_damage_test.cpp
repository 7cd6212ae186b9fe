// SPDX-License-Identifier: Apache-2.0
//
// One bad event costs one event, wherever and however it is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ingot::trace
