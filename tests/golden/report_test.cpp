// SPDX-License-Identifier: Apache-2.0
//
// Whole reports, byte for byte: what a person and a program see. The numbers in them are checked elsewhere
// against what is known of the programs; here the documents must not change unnoticed.
#include "ingot/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden_file.h"

namespace ingot {
namespace {

using test::golden_matches;

trace::Trace recorded(const std::string& name) {
  trace::Trace trace = trace::read_file(std::string(INGOT_EXAMPLE_TRACES) + "/" + name + ".json.gz").value();
  trace.file = name + ".json.gz";  // the same wherever the sources lie
  return trace;
}

TEST(Report, ExplainText) {
  for (const std::string name :
       {"geglu_64x128x768x3072_eager", "dit_8x1152_b2_n256_cudagraph", "relu_mlp_1024x256x1024_eager"}) {
    const Explanation e = explain(recorded(name)).value();
    EXPECT_TRUE(golden_matches(report::text(e, {.color = false, .width = 120, .all = false}), name + ".txt"));
  }
}

TEST(Report, ExplainTextWithAnExpectationInColour) {
  const Explanation e =
      explain(recorded("geglu_64x128x768x3072_compile"), {.expect = "3 linear, 1 gelu_tanh, 1 mul"}).value();
  EXPECT_TRUE(golden_matches(report::text(e, {.color = true, .width = 100, .all = true}),
                             "geglu_compile_expected_color.txt"));
}

TEST(Report, ExplainJson) {
  const std::string name = "geglu_64x128x768x3072_eager";
  const Explanation e = explain(recorded(name), {.expect = "3 linear, 1 gelu_tanh, 1 mul"}).value();
  EXPECT_TRUE(golden_matches(report::json(e), name + ".json"));
}

TEST(Report, Diff) {
  const Diff d =
      diff(recorded("geglu_64x128x768x3072_eager"), recorded("geglu_64x128x768x3072_compile")).value();
  EXPECT_TRUE(golden_matches(report::text(d, {.color = false, .width = 120, .all = false}),
                             "geglu_eager_compile_diff.txt"));
  EXPECT_TRUE(golden_matches(report::json(d), "geglu_eager_compile_diff.json"));
}

TEST(Report, JsonHasEveryKeyOfTheContractAndNullForUnknown) {
  const nlohmann::json j =
      nlohmann::json::parse(report::json(explain(recorded("dit_8x1152_b2_n256_cudagraph")).value()));
  EXPECT_EQ(j.at("schema"), "ingot.explain/1");
  for (const char* key : {"file", "bytes", "events", "skipped_events", "warnings", "device", "span_us"})
    EXPECT_TRUE(j.at("trace").contains(key)) << key;
  for (const char* key : {"gpu_busy_us", "gpu_idle_us", "kernels", "launches", "verdict"})
    EXPECT_TRUE(j.at("summary").contains(key)) << key;
  for (const char* key :
       {"name", "calls", "kernels_per_call", "cpu_us", "gpu_busy_us", "gpu_span_us", "verdict"})
    EXPECT_TRUE(j.at("regions").at(0).contains(key)) << key;
  for (const char* key : {"name", "family", "op", "calls", "total_us", "median_us", "min_us", "max_us",
                          "dtype", "tile", "layout", "stages", "fused", "gemm", "tflops", "bytes"})
    EXPECT_TRUE(j.at("kernels").at(0).contains(key)) << key;
  for (const char* key : {"name", "calls", "cpu_us"})
    EXPECT_TRUE(j.at("zero_launch_ops").at(0).contains(key)) << key;
  for (const char* key : {"activation", "gated", "bias", "tokens", "dim", "hidden", "dtype", "calls",
                          "kernels_per_call", "gpu_us_per_call", "bytes_per_call", "fused_bytes_per_call",
                          "fused_us_estimate", "evidence", "region"})
    EXPECT_TRUE(j.at("mlps").at(0).contains(key)) << key;
  for (const char* key : {"id", "title", "detail", "saving_us", "action"})
    EXPECT_TRUE(j.at("findings").at(0).contains(key)) << key;
  EXPECT_TRUE(j.at("mlps").at(0).at("tokens").is_null());
  EXPECT_TRUE(j.at("mlps").at(1).at("region").is_null());
}

TEST(Report, NamesThatAreNotUtf8DoNotBreakTheJson) {
  Explanation e;
  e.file = "bad\xff.json";
  EXPECT_TRUE(nlohmann::json::accept(report::json(e)));
}

TEST(Report, NothingAtAllIsStillAReport) {
  const Explanation e = explain(trace::read_text("[]").value()).value();
  EXPECT_EQ(e.summary.verdict, Verdict::unknown);
  EXPECT_FALSE(report::text(e).empty());
  EXPECT_TRUE(nlohmann::json::accept(report::json(e)));
}

}  // namespace
}  // namespace ingot
