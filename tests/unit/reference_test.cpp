// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numeric/mlp_case.h"

namespace ingot::cpu {
namespace {

Reference make(const Mlp& mlp, const Weights& weights, const void* x, std::int64_t stride,
               const std::vector<std::int64_t>& rows) {
  const auto pool = ThreadPool::create(2);
  return reference(mlp, weights, x, stride, rows, **pool).value();
}

// Small integers and halves: every product and sum by hand, exact in every dtype.
TEST(Reference, IsTheDefinition) {
  const Mlp mlp{2, 3, Activation::relu, true, true, DType::f32};
  const float up[] = {1, 2, 3, 4, 5, 6}, gate[] = {1, 0, 0, -1, 2, 1}, down[] = {1, 1, 1, 2, 0, -1};
  const float up_bias[] = {0.5F, 0, -1}, gate_bias[] = {0, 1, 0.5F}, down_bias[] = {10, 20};
  const Weights weights{
      .up = {up, 0, up_bias}, .gate = {gate, 0, gate_bias}, .down = {down, 0, down_bias}, .layout = {}};
  const float x[] = {1, 2, 9, 9, 9, -1, 0.5F};  // rows 0 and 1, five apart
  const Reference got = make(mlp, weights, x, 5, {0, 1});
  // Row 0: gate 1, -1, 4.5 -> relu 1, 0, 4.5; up 5.5, 11, 16; h 5.5, 0, 72.
  // Row 1: gate -1, 0.5, -1 -> 0, 0.5, 0; up 0.5, -1, -3; h 0, -0.5, 0.
  const std::vector<double> expected{10 + 5.5 + 72, 20 + 11 - 72, 10 - 0.5, 20};
  EXPECT_EQ(got.exact, expected);
  EXPECT_EQ(got.framework, expected);
  EXPECT_EQ(got.matmul_add, expected);
}

TEST(Reference, FrameworkRoundsAfterEachStep) {
  // bf16 holds 8 digits: 1 + 1/256 lies between 1 and 1 + 1/128 and rounds to even, 1.
  const Mlp mlp{1, 1, Activation::identity, false, true, DType::bf16};
  const auto bf16 = [](float value) { return Element<DType::bf16>::pack(value); };
  const std::uint16_t one = bf16(1), tiny = bf16(1.0F / 256), x = bf16(1);
  const Weights weights{.up = {&one, 0, &tiny}, .gate = {}, .down = {&one, 0, nullptr}, .layout = {}};
  const Reference got = make(mlp, weights, &x, 1, {0});
  EXPECT_EQ(got.exact[0], 1 + 1.0 / 256);
  EXPECT_EQ(got.framework[0], 1);
  EXPECT_EQ(got.matmul_add[0], 1);
}

class Judge : public testing::Test {
 protected:
  Judge() : c({40, 60, Activation::gelu_erf, false, true, DType::f32}, 8) {
    const Weights weights = c.weights(GateLayout::separate);
    exact = make(c.mlp, weights, c.x_data(), c.x_stride, spread_rows(8, 8));
    for (const double value : exact.exact) y.push_back(static_cast<float>(value));
  }
  Verdict verdict() const { return judge(c.mlp, exact, Rung::unfused, y.data(), c.mlp.dim); }

  test::MlpCase c;
  Reference exact;
  std::vector<float> y;
};

TEST_F(Judge, AcceptsTheRoundedTruth) {
  const Verdict got = verdict();
  EXPECT_TRUE(got.ok) << got.reason;
  EXPECT_LT(got.error, 1e-7);
  EXPECT_GT(got.framework_error, 0);
}

TEST_F(Judge, RefusesOneWrongValue) {
  // Far too small to move the norm of 320 values much, far too large for a rounding.
  y[77] += 2e-5F;
  const Verdict got = verdict();
  EXPECT_FALSE(got.ok);
  EXPECT_GT(got.worst, 12);
}

TEST_F(Judge, RefusesErrorsAllOver) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= i % 2 == 0 ? 1 + 1e-6F : 1 - 1e-6F;
  const Verdict got = verdict();
  EXPECT_FALSE(got.ok);
  EXPECT_NE(got.reason.find("is above"), std::string::npos);
}

TEST_F(Judge, RefusesNotANumberAndZeros) {
  const std::vector<float> good = y;
  y[5] = std::nanf("");
  EXPECT_FALSE(verdict().ok);
  y[5] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(verdict().ok);
  y.assign(y.size(), 0.0F);
  EXPECT_FALSE(verdict().ok);
  y = good;
  EXPECT_TRUE(verdict().ok);
}

TEST(SpreadRows, FirstLastAndEvenlyBetween) {
  EXPECT_EQ(spread_rows(0, 4), (std::vector<std::int64_t>{}));
  EXPECT_EQ(spread_rows(1, 4), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(spread_rows(3, 4), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(spread_rows(10, 4), (std::vector<std::int64_t>{0, 3, 6, 9}));
  EXPECT_EQ(spread_rows(std::int64_t{1} << 61, 2),
            (std::vector<std::int64_t>{0, (std::int64_t{1} << 61) - 1}));
}

}  // namespace
}  // namespace ingot::cpu
