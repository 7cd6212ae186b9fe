// SPDX-License-Identifier: Apache-2.0
//
// What a video costs: tokens against the catalogue, sums against arithmetic done by hand here.
#include "ingot/cost.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ingot {
namespace {

TEST(Video, TheTableMakesTheCataloguesTokens) {
  int found = 0;
  for (const KnownModel& model : known_models()) {
    const VideoModel* video = find_video_model(model.name);
    if (video == nullptr) continue;
    ++found;
    EXPECT_EQ(video_tokens(*video, video->usual).value() * video->catalogue_batch, model.tokens)
        << model.name;
  }
  EXPECT_EQ(found, 20);
}

TEST(Video, TokensOfOtherSizes) {
  const VideoModel& wan = *find_video_model("wan2.1-1.3b");
  EXPECT_EQ(video_tokens(wan, {720, 1280, 81}).value(), 45 * 80 * 21);
  EXPECT_EQ(video_tokens(wan, {480, 832, 1}).value(), 30 * 52);
  EXPECT_EQ(video_tokens(wan, {487, 847, 84}).value(), 30 * 52 * 21);  // rounded down
  EXPECT_EQ(video_tokens(*find_video_model("cogvideox-2b"), {480, 720, 49}).value(), 226 + 13 * 30 * 45);
  for (const VideoSize bad : {VideoSize{8, 832, 81}, VideoSize{480, -1, 81}, VideoSize{480, 832, 0},
                              VideoSize{1 << 20, 1 << 20, 1 << 20}, VideoSize{1LL << 62, 832, 1}}) {
    ASSERT_FALSE(video_tokens(wan, bad).ok()) << bad.height << "x" << bad.width << " " << bad.frames;
    EXPECT_EQ(video_tokens(wan, bad).error().code, ErrorCode::invalid_argument);
  }
}

TEST(Video, Resolutions) {
  EXPECT_EQ(parse_resolution("480x832").value().height, 480);
  EXPECT_EQ(parse_resolution("480x832").value().width, 832);
  for (const char* bad : {"", "480", "480x", "x832", "480x832x3", "4 80x832", "99999999999999999999x1"})
    EXPECT_FALSE(parse_resolution(bad).ok()) << bad;
}

class CostOfModels : public testing::Test {
 protected:
  const DeviceDescription device_ = describe_gpu("sm90").value();
};

TEST_F(CostOfModels, IsForecastsTimesCalls) {
  const Cost cost =
      cost_of_models({"wan2.1-1.3b"}, device_, {.steps = 40, .price_per_hour = 3.6, .gpus = 8}).value();
  ASSERT_EQ(cost.parts.size(), 1U);
  const CostPart& part = cost.parts[0];
  EXPECT_EQ(part.tokens, 32760);
  EXPECT_EQ(part.calls, 40 * 2 * 30);  // steps, forwards per step, blocks
  const Plan forecast = plan(*part.mlp, 32760, device_).value();
  EXPECT_DOUBLE_EQ(part.after_us, forecast.chosen.forecast_us);
  EXPECT_DOUBLE_EQ(cost.after_s, part.after_us * 2400e-6);
  EXPECT_DOUBLE_EQ(cost.before_s, part.before_us * 2400e-6);
  EXPECT_GE(part.before_us, part.after_us);
  EXPECT_NEAR(cost.money(cost.after_s, 1000).value(), cost.after_s,
              1e-9 * cost.after_s);  // 3.6 an hour, 1000 videos
  EXPECT_FALSE(cost.rest_s.has_value());
  EXPECT_GE(cost.assumptions.size(), 3U);
}

TEST_F(CostOfModels, SeveralLevelsOfOneNetworkAddUp) {
  const CostOptions options{.steps = 25, .guidance = 1};
  const Cost all = cost_of_models({"svd-320", "svd-640", "svd-1280"}, device_, options).value();
  double sum = 0;
  for (const char* name : {"svd-320", "svd-640", "svd-1280"})
    sum += cost_of_models({name}, device_, options).value().before_s;
  EXPECT_NEAR(all.before_s, sum, 1e-12);
  EXPECT_FALSE(all.money(1, 1).has_value());
}

TEST_F(CostOfModels, ABatchSharesACall) {
  const Cost one = cost_of_models({"dit-xl"}, device_, {}).value();
  const Cost eight = cost_of_models({"dit-xl"}, device_, {.batch = 8}).value();
  EXPECT_EQ(eight.parts[0].tokens, 8 * one.parts[0].tokens);
  EXPECT_DOUBLE_EQ(eight.parts[0].calls, one.parts[0].calls / 8);
}

TEST_F(CostOfModels, MeasurementsTakeThePlaceOfForecasts) {
  const Mlp mlp = find_model("wan2.1-1.3b").value().mlp;
  Mlp other = mlp;
  other.bias = false;
  const std::vector<MeasuredMlp> measured{{other, 32760, 1, 1, "two_kernel", "other"},
                                          {mlp, 100, 7, 6, "two_kernel", "far"},
                                          {mlp, 16380, 1200, 1000, "two_kernel", "NVIDIA H200"}};
  const Cost cost = cost_of_models({"wan2.1-1.3b"}, device_, {.steps = 1, .guidance = 1}, measured).value();
  EXPECT_DOUBLE_EQ(cost.parts[0].before_us, 2400);  // at half the tokens
  EXPECT_DOUBLE_EQ(cost.parts[0].after_us, 2000);
  EXPECT_EQ(cost.parts[0].after_from, "measured two_kernel");
  EXPECT_NEAR(cost.before_s, 30 * 2400e-6, 1e-12);
}

TEST_F(CostOfModels, BadInput) {
  for (const CostOptions& bad : {CostOptions{.steps = 0}, CostOptions{.guidance = 0},
                                 CostOptions{.batch = -1}, CostOptions{.size = VideoSize{1, 1, 1}},
                                 CostOptions{.price_per_hour = -1.0}, CostOptions{.gpus = 0}}) {
    const auto cost = cost_of_models({"wan2.1-1.3b"}, device_, bad);
    ASSERT_FALSE(cost.ok());
    EXPECT_EQ(cost.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(cost_of_models({"wan"}, device_, {}).ok());
  EXPECT_FALSE(cost_of_models({"clip-l"}, device_, {}).ok());
  EXPECT_FALSE(cost_of_models({}, device_, {}).ok());
}

Explanation explanation(Verdict verdict) {
  Explanation e;
  e.file = "trace.json";
  Region step;
  step.name = "ProfilerStep";
  step.calls = 4;
  step.gpu_busy_us = 900;
  step.wait_launch_us = 60;
  step.wait_other_us = 40;
  step.verdict = verdict;
  e.regions = {step};
  MlpRow mlp;
  mlp.activation = "gelu_tanh";
  mlp.tokens = 64;
  mlp.dim = 768;
  mlp.hidden = 3072;
  mlp.bias = true;
  mlp.dtype = "bf16";
  mlp.calls = 12;  // three a step
  mlp.gpu_us_per_call = 100;
  mlp.fused_us_estimate = 60;
  e.mlps = {mlp};
  return e;
}

TEST(CostOfTrace, StepsLessWhatFusingSaves) {
  const Cost cost = cost_of_trace(explanation(Verdict::compute_bound), {.steps = 10}).value();
  EXPECT_NEAR(cost.before_s, 10 * 1000e-6, 1e-12);
  EXPECT_NEAR(cost.after_s, 10 * (1000 - 3 * 40) * 1e-6, 1e-12);
  EXPECT_NEAR(cost.rest_s.value(), 10 * 700e-6, 1e-12);
}

TEST(CostOfTrace, AStepThatWaitsIsNotMadeShorter) {
  const Cost cost = cost_of_trace(explanation(Verdict::overhead_bound), {.steps = 10}).value();
  EXPECT_DOUBLE_EQ(cost.after_s, cost.before_s);
  EXPECT_NE(cost.assumptions.back().find("does not shorten it"), std::string::npos);
}

TEST(CostOfTrace, MeasuredTimesCountAfterOnly) {
  const Mlp mlp{768, 3072, Activation::gelu_tanh, false, true, DType::bf16};
  const Cost cost = cost_of_trace(explanation(Verdict::memory_bound), {.steps = 1},
                                  {{mlp, 64, 90, 50, "two_kernel", "card"}})
                        .value();
  EXPECT_DOUBLE_EQ(cost.parts[0].before_us, 100);
  EXPECT_DOUBLE_EQ(cost.parts[0].after_us, 50);
}

TEST(CostOfTrace, BadInput) {
  Explanation none;
  none.file = "t.json";
  EXPECT_EQ(cost_of_trace(none, {}).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(cost_of_trace(explanation(Verdict::compute_bound), {.batch = 2}).ok());
}

class Measured : public testing::Test {
 protected:
  Result<std::vector<MeasuredMlp>> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_measured(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "ingot_measured.json";
};

std::string rung(const char* name, const char* time, bool ok) {
  return std::string(R"({"name":")") + name + R"(","ok":)" + (ok ? "true" : "false") + R"(,"time_us":)" +
         time + "}";
}
std::string ladder(const std::string& rungs) {
  return R"("device":{"name":"card"},"mlp":{"activation":"silu","gated":true,"bias":false,"tokens":64,"dim":8,"hidden":16,"dtype":"bf16"},"rungs":[)" +
         rungs + "]";
}

TEST_F(Measured, TakesTheFastestRungThatIsRight) {
  const auto found = read(
      R"({"schema":"ingot.bench/1",)" +
      ladder(rung("unfused", R"({"median":10})", true) + "," + rung("epilogue", R"({"median":8})", true) +
             "," + rung("two_kernel", R"({"median":3})", false) + "," + rung("one_pass", "null", false)) +
      "}");
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].unfused_us, 10);
  EXPECT_EQ((*found)[0].fused_us, 8);
  EXPECT_EQ((*found)[0].fused_rung, "epilogue");
  EXPECT_EQ((*found)[0].mlp, (Mlp{8, 16, Activation::silu, true, false, DType::bf16}));
}

TEST_F(Measured, SlowerRungsStayOut) {
  const auto found = read(
      R"({"schema":"ingot.bench/1","ladders":[{)" +
      ladder(rung("unfused", R"({"median":10})", true) + "," + rung("epilogue", R"({"median":12})", true)) +
      "}]}");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0].fused_us, 10);
  EXPECT_EQ((*found)[0].fused_rung, "unfused");
}

TEST_F(Measured, OtherFilesAreUnreadable) {
  for (const std::string& bad :
       {std::string(""), std::string("[]"), std::string("{"), std::string(R"({"schema":"ingot.plan/1"})"),
        std::string(R"({"schema":"ingot.bench/1"})"),
        R"({"schema":"ingot.bench/1",)" + ladder(rung("epilogue", R"({"median":8})", true)) + "}",
        R"({"schema":"ingot.bench/1",)" + ladder(R"({"name":5})") + "}",
        std::string(R"({"schema":"ingot.bench/1","ladders":{"a":1}})")}) {
    const auto found = read(bad);
    ASSERT_FALSE(found.ok()) << bad;
    EXPECT_EQ(found.error().code, ErrorCode::unreadable);
  }
}

}  // namespace
}  // namespace ingot
