// SPDX-License-Identifier: Apache-2.0
#include "cpu/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ingot::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// What the bits of a 16-bit number mean, by the format's definition.
double meaning(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int sign = bits >> 15U;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> static_cast<unsigned>(fraction_bits)) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    value = std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  return sign == 1 ? -value : value;
}

template <DType D>
void every_number_survives(int exponent_bits, int fraction_bits) {
  for (unsigned i = 0; i <= 0xffffU; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = Element<D>::load(bits);
    const double expected = meaning(bits, exponent_bits, fraction_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(Element<D>::load(Element<D>::pack(Element<D>::round(value))))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << i;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << i;
    ASSERT_EQ(Element<D>::round(value), value) << i;
    ASSERT_EQ(Element<D>::pack(value), bits) << i;
  }
}

TEST(Numbers, EveryBf16IsWhatItsBitsSay) {
  every_number_survives<DType::bf16>(8, 7);
}
TEST(Numbers, EveryF16IsWhatItsBitsSay) {
  every_number_survives<DType::f16>(5, 10);
}

/// Between each two neighbours: below, at and above the middle.
template <DType D>
void rounds_to_nearest_even(std::uint16_t last_finite) {
  for (std::uint16_t bits = 0; bits < last_finite; ++bits) {
    const float low = Element<D>::load(bits), high = Element<D>::load(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: one more bit than either
    const float even = bits % 2 == 0 ? low : high;
    ASSERT_EQ(Element<D>::round(middle), even) << bits;
    ASSERT_EQ(Element<D>::round(std::nextafter(middle, 0.0F)), low) << bits;
    ASSERT_EQ(Element<D>::round(std::nextafter(middle, infinity)), high) << bits;
    ASSERT_EQ(Element<D>::round(-middle), -even) << bits;
  }
}

TEST(Numbers, Bf16RoundsToNearestEven) {
  rounds_to_nearest_even<DType::bf16>(0x7f7f);
}
TEST(Numbers, F16RoundsToNearestEven) {
  rounds_to_nearest_even<DType::f16>(0x7bff);
}

TEST(Numbers, TooLargeBecomesInfinite) {
  EXPECT_EQ(Element<DType::f16>::round(65504.0F), 65504.0F);
  EXPECT_EQ(Element<DType::f16>::round(65519.996F), 65504.0F);
  EXPECT_EQ(Element<DType::f16>::round(65520.0F), infinity);
  EXPECT_EQ(Element<DType::f16>::round(-1e30F), -infinity);
  EXPECT_EQ(Element<DType::f16>::round(infinity), infinity);
  EXPECT_EQ(Element<DType::bf16>::round(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(Element<DType::f16>::pack(Element<DType::f16>::round(1e9F)), 0x7c00U);
}

TEST(Numbers, NotANumberStays) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xffffffffU, 0x7fffffffU, 0xff800001U}) {
    EXPECT_TRUE(std::isnan(Element<DType::bf16>::round(float_of(bits)))) << bits;
    EXPECT_TRUE(std::isnan(Element<DType::f16>::round(float_of(bits)))) << bits;
    const std::uint16_t packed = Element<DType::f16>::pack(Element<DType::f16>::round(float_of(bits)));
    EXPECT_TRUE(std::isnan(Element<DType::f16>::load(packed))) << bits;
  }
}

}  // namespace
}  // namespace ingot::cpu
