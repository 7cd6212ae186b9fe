// SPDX-License-Identifier: Apache-2.0
//
// The planner's choices and forecasts for Hopper beside what an H200 took (docs/measured-gpu.md, 2026-12-01).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "plan/linear.h"

namespace ingot {
namespace {

struct Measured {
  const char* name;
  std::int64_t tokens;
  Mlp mlp;
  const char* first_tile;  ///< of the fastest pair
  double first_us;         ///< that kernel alone
  const char* second_tile;
  double second_us;
};

constexpr Mlp plain(std::int64_t dim, std::int64_t hidden, Activation activation) {
  return {dim, hidden, activation, false, true, DType::bf16};
}
constexpr Mlp gated(std::int64_t dim, std::int64_t hidden, Activation activation, bool bias) {
  return {dim, hidden, activation, true, bias, DType::bf16};
}

std::vector<Measured> measured() {
  using enum Activation;
  return {
      {"seed_relu_64", 64, plain(256, 1024, relu), "f1x1x16s4", 2.7, "f1x1x16s4k4", 2.9},
      {"seed_relu_1k", 1024, plain(256, 1024, relu), "f1x1x128s4", 3.9, "f1x1x32s16", 4.1},
      {"seed_relu_16k", 16384, plain(256, 1024, relu), "g2x1x128s6c11", 20.4, "g2x1x256s4c11", 17.1},
      {"blog_geglu_128", 128, gated(768, 3072, gelu_tanh, false), "f1x1x128s9", 6.2, "f1x1x64s8k4", 6.1},
      {"blog_geglu_8k", 8192, gated(768, 3072, gelu_tanh, false), "g2x1x256s3c11e", 101.8, "g2x1x192s4c21",
       52.6},
      {"clip_l_77", 77, plain(768, 3072, gelu_erf), "f1x1x40s12", 4.8, "f1x1x40s12k4", 5.4},
      {"dit_xl_1k", 1024, plain(1152, 4608, gelu_tanh), "g2x1x144s5c21", 20.3, "g1x1x144s7c11", 19.2},
      {"wan1.3b_256", 256, plain(1536, 8960, gelu_tanh), "g2x1x144s6c11", 16.9, "g2x1x112s7c11k4", 21.2},
      {"t5xxl_512", 512, gated(4096, 10240, gelu_tanh, false), "g2x2x160s4c11", 122.4, "g2x1x128s6c21", 60.3},
      {"ltx2b_5k", 4992, plain(2048, 8192, gelu_tanh), "g2x1x192s4c11e", 221.0, "g3x1x208s4c11", 211.8},
      {"svd320_129k", 129024, gated(320, 1280, gelu_erf, true), "g2x1x256s4c11", 393.8, "g2x1x160s5c12",
       166.4},
      {"svd640_32k", 32256, gated(640, 2560, gelu_erf, true), "g2x1x256s3c21e", 297.1, "g2x2x160s3c12",
       149.3},
      {"svd1280_8k", 8064, gated(1280, 5120, gelu_erf, true), "g2x1x256s3c21e", 277.4, "g2x2x160s3c12",
       138.8},
      {"cogx5b_18k", 17776, plain(3072, 12288, gelu_tanh), "g2x1x256s3c21e", 1691, "g2x1x256s3c21e", 1912},
      {"wan1.3b_33k", 32760, plain(1536, 8960, gelu_tanh), "g2x1x256s3c21e", 1223, "g2x1x256s3c21e", 1197},
      {"wan14b_33k", 32760, plain(5120, 13824, gelu_tanh), "g2x1x192s4c11e", 6673, "g3x1x128s5c11", 6475},
  };
}

/// How far a forecast is off, 0.1 for ten percent.
double off(double forecast, double us) {
  return std::abs(forecast / us - 1);
}

TEST(Sm90Forecast, IsNearWhatWasMeasured) {
  const GpuDescription h200 = describe_gpu("sm90").value().gpu;
  int close = 0;
  for (const Measured& m : measured()) {
    const LinearSpec first = first_linear(m.mlp, true, Numerics::match);
    const LinearSpec second = second_linear(m.mlp, Numerics::match);
    const KernelTile first_tile = parse_tile(m.first_tile).value();
    const KernelTile second_tile = parse_tile(m.second_tile).value();
    ASSERT_TRUE(can_run(first, first_tile, h200)) << m.name;
    ASSERT_TRUE(can_run(second, second_tile, h200)) << m.name;
    // Of the fastest tiles.
    const double first_us = forecast_us(first, first_tile, m.tokens, h200);
    const double second_us = forecast_us(second, second_tile, m.tokens, h200);
    EXPECT_LT(off(first_us, m.first_us), 0.2) << m.name << " fc1: " << first_us;
    EXPECT_LT(off(second_us, m.second_us), 0.2) << m.name << " fc2: " << second_us;
    // Of what the planner takes.
    const KernelPair pair = choose_kernels(m.mlp, m.tokens, h200, {});
    EXPECT_LT(off(pair.first_us, m.first_us), 0.3) << m.name << " fc1: " << pair.first_us;
    EXPECT_LT(off(pair.second_us, m.second_us), 0.3) << m.name << " fc2: " << pair.second_us;
    const bool both = off(pair.first_us, m.first_us) < 0.15 && off(pair.second_us, m.second_us) < 0.15;
    close += both ? 1 : 0;
    RecordProperty(m.name, label(pair.first) + " " + label(pair.second));
  }
  EXPECT_GE(close, 14);
}

/// Every tile measured for one linear, alone, in microseconds.
struct Alone {
  const char* shape;
  bool second;
  std::vector<std::pair<const char*, double>> tiles;  ///< fastest first
};

// What the planner would take of the measured tiles is among the best of them.
TEST(Sm90Forecast, RanksTilesAsMeasured) {
  const std::vector<Alone> all{
      {"seed_relu_64",
       true,
       {{"f1x1x16s4k4", 2.9}, {"f1x1x32s4k4", 3.3}, {"f1x1x8s16", 3.6}, {"f1x2x8s8", 3.9}}},
      {"seed_relu_1k", true, {{"f1x1x32s16", 4.1}, {"f1x1x40s12", 4.3}, {"f1x2x32s8", 4.5}}},
      {"seed_relu_16k", false, {{"g2x1x256s3c11e", 20.1}, {"g2x1x256s4c11", 20.7}, {"g2x1x256s3c11", 21.9}}},
      {"blog_geglu_128", true, {{"f1x1x64s8k4", 6.1}, {"f1x2x64s10k4", 7.1}, {"f1x1x128s6k8", 8.0}}},
      {"blog_geglu_8k",
       false,
       {{"g2x1x256s3c11e", 101.8},
        {"g2x1x256s3c21e", 102.3},
        {"g2x1x256s3c21", 111.5},
        {"g2x2x160s3c12", 117.7}}},
      {"clip_l_77", true, {{"f1x1x40s12k4", 5.4}, {"f1x1x80s6k8", 6.3}, {"f1x2x80s6k8", 8.2}}},
      {"dit_xl_1k", true, {{"g1x1x144s7c11", 19.2}, {"g2x1x144s6c11k2", 22.7}, {"g2x1x128s6c21", 25.9}}},
      {"wan1.3b_256", false, {{"g2x1x144s6c11", 16.9}, {"g2x1x160s5c11", 18.0}, {"g2x2x80s4c11", 20.6}}},
      {"ltx2b_5k",
       true,
       {{"g3x1x208s4c11", 211.8},
        {"g2x2x176s3c12", 230.5},
        {"g2x2x192s3c12", 248.1},
        {"g2x1x256s3c21e", 255.0}}},
      {"svd640_32k",
       false,
       {{"g2x1x256s3c21e", 297.1},
        {"g2x1x256s4c21", 321.4},
        {"g3x1x128s5c21", 324.4},
        {"g2x2x160s3c12", 326.2}}},
      {"svd1280_8k",
       false,
       {{"g2x1x256s3c21e", 277.4},
        {"g2x1x224s4c11", 293.0},
        {"g3x1x128s5c21", 294.4},
        {"g2x2x160s3c12", 295.2}}},
      {"wan1.3b_33k",
       false,
       {{"g2x1x256s3c11e", 1220.1},
        {"g3x1x128s5c11", 1359.6},
        {"g3x1x256s3c12", 1409.2},
        {"g2x2x192s3c12", 1448.3}}},
      {"wan14b_33k",
       false,
       {{"g2x1x192s4c11e", 6672.6}, {"g3x1x256s3c12", 7025.3}, {"g2x2x192s3c12", 7130.5}}},
  };
  const GpuDescription h200 = describe_gpu("sm90").value().gpu;
  const std::vector<Measured> shapes = measured();
  for (const Alone& alone : all) {
    const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                    [&](const Measured& m) { return alone.shape == std::string(m.name); });
    ASSERT_NE(shape, shapes.end());
    const LinearSpec linear = alone.second ? second_linear(shape->mlp, Numerics::match)
                                           : first_linear(shape->mlp, true, Numerics::match);
    double least = 0, taken = 0;
    for (const auto& [tile, us] : alone.tiles) {
      const double forecast = forecast_us(linear, parse_tile(tile).value(), shape->tokens, h200);
      if (least == 0 || forecast < least) {
        least = forecast;
        taken = us;
      }
    }
    EXPECT_LE(taken, alone.tiles.front().second * 1.03) << alone.shape << (alone.second ? " fc2" : " fc1");
  }
}

}  // namespace
}  // namespace ingot
