// SPDX-License-Identifier: Apache-2.0
//
// Reading and explaining share nothing: threads may do either at once, on the same file or the same trace.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "ingot/explain.h"
#include "ingot/report.h"

namespace ingot {
namespace {

TEST(Threads, ReadAndExplainTheSameTraceAtOnce) {
  const std::string path = std::string(INGOT_EXAMPLE_TRACES) + "/geglu_64x128x768x3072_eager.json.gz";
  const trace::Trace shared = trace::read_file(path).value();
  const std::string expected = report::json(explain(shared).value());
  constexpr int threads = 4;
  std::vector<std::string> own(threads), of_shared(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      own[t] = report::json(explain(trace::read_file(path).value()).value());
      of_shared[t] = report::json(explain(shared).value());
    });
  }
  for (std::thread& thread : running) thread.join();
  for (int t = 0; t < threads; ++t) {
    EXPECT_EQ(own[t], expected);
    EXPECT_EQ(of_shared[t], expected);
  }
}

}  // namespace
}  // namespace ingot
