// SPDX-License-Identifier: Apache-2.0
//
// What cost prints, from values that are the same on every machine.
#include <gtest/gtest.h>

#include "golden_file.h"
#include "ingot/report.h"

namespace ingot {
namespace {

using test::golden_matches;

Cost cost() {
  Cost cost;
  cost.subject = "wan2.1-1.3b";
  cost.device = "NVIDIA H200";
  cost.options = {.steps = 50,
                  .guidance = 2,
                  .batch = 1,
                  .size = VideoSize{480, 832, 81},
                  .price_per_hour = 3.5,
                  .gpus = 8};
  CostPart part;
  part.name = "wan2.1-1.3b";
  part.mlp = Mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  part.tokens = 32760;
  part.calls = 3000;
  part.before_us = 2500.25;
  part.after_us = 2000;
  part.before_from = "forecast unfused";
  part.after_from = "measured two_kernel";
  cost.parts = {part};
  cost.before_s = 7.50075;
  cost.after_s = 6;
  cost.assumptions = {"480x832, 81 frames; 50 steps of 2 forwards", "only the feed-forwards are counted"};
  return cost;
}

TEST(GoldenCost, OneModel) {
  EXPECT_TRUE(golden_matches(report::text(cost()), "cost.txt"));
  EXPECT_TRUE(golden_matches(report::json(cost()), "cost.json"));
}

TEST(GoldenCost, ATraceWithoutAPrice) {
  Cost trace = cost();
  trace.options = {.steps = 20};
  trace.subject = "trace.json";
  trace.rest_s = 1.25;
  trace.parts[0].mlp.reset();
  trace.parts[0].tokens = 0;
  EXPECT_TRUE(golden_matches(report::text(trace), "cost_trace.txt"));
  EXPECT_TRUE(golden_matches(report::json(trace), "cost_trace.json"));
}

TEST(GoldenCost, ASweep) {
  std::vector<Cost> sweep{cost(), cost()};
  sweep[1].options.batch = 2;
  sweep[1].after_s = 5;
  EXPECT_TRUE(golden_matches(report::text(sweep), "cost_sweep.txt"));
}

}  // namespace
}  // namespace ingot
