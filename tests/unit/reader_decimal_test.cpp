// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ingot/trace.h"
#include "trace/decimal.h"

namespace ingot::trace {
namespace {

TEST(ReaderTime, DecimalTextBecomesNanosecondsExactly) {
  EXPECT_EQ(microseconds_to_ns("0"), 0);
  EXPECT_EQ(microseconds_to_ns("12"), 12000);
  EXPECT_EQ(microseconds_to_ns("5235574055193.598"), 5235574055193598);
  // Absolute stamps: as doubles these lose their last digits.
  EXPECT_EQ(microseconds_to_ns("1679055454045054"), 1679055454045054000);
  EXPECT_EQ(microseconds_to_ns("1679055454045054.123"), 1679055454045054123);
  EXPECT_EQ(microseconds_to_ns("1790857026000000.001"), 1790857026000000001);
  EXPECT_EQ(microseconds_to_ns("-0.025"), -25);
  EXPECT_EQ(microseconds_to_ns("+3.5"), 3500);
  EXPECT_EQ(microseconds_to_ns(".5"), 500);
  EXPECT_EQ(microseconds_to_ns("7."), 7000);
  EXPECT_EQ(microseconds_to_ns("0007.100"), 7100);
}

TEST(ReaderTime, MoreThanThreeDecimalsRoundToTheNearest) {
  EXPECT_EQ(microseconds_to_ns("1.0004"), 1000);
  EXPECT_EQ(microseconds_to_ns("1.0005"), 1001);
  EXPECT_EQ(microseconds_to_ns("1.00049999999999999999999999999999999999999"), 1000);
  EXPECT_EQ(microseconds_to_ns("-1.0005"), -1001);
  EXPECT_EQ(microseconds_to_ns("0.0004999"), 0);
  EXPECT_EQ(microseconds_to_ns("0.99999"), 1000);
  EXPECT_EQ(microseconds_to_ns("1679055454045054.1234567"), 1679055454045054123);
}

TEST(ReaderTime, ExponentsAndStrings) {
  EXPECT_EQ(microseconds_to_ns("1.5e3"), 1500000);
  EXPECT_EQ(microseconds_to_ns("1.679055454045054123e15"), 1679055454045054123);
  EXPECT_EQ(microseconds_to_ns("15E-1"), 1500);
  EXPECT_EQ(microseconds_to_ns("1e-30"), 0);
  EXPECT_EQ(microseconds_to_ns("0e999999999999999999999"), 0);
  EXPECT_EQ(microseconds_to_ns("\"5235574055193.598\""), 5235574055193598);
  EXPECT_EQ(microseconds_to_ns("  42.001 \n"), 42001);
}

TEST(ReaderTime, WhatIsNoTimeIsNothing) {
  for (const char* text : {"", "nan", "NaN", "-inf", "Infinity", "null", "true", "\"\"", "1,5", "0x10", "1e",
                           "1e+", "--1", ".", "-", "e5", "1.2.3", "12 34", "[1]"}) {
    EXPECT_FALSE(microseconds_to_ns(text).has_value()) << text;
  }
  for (const char* huge : {"1e30", "99999999999999999999", "9223372036854775807", "4611686018427387.905",
                           "1e999999999", "-4611686018427387.905", "9999999999999999"}) {
    EXPECT_FALSE(microseconds_to_ns(huge).has_value()) << huge;
  }
  EXPECT_EQ(microseconds_to_ns("4611686018427387.904"), std::int64_t{1} << 62);
  EXPECT_EQ(microseconds_to_ns("-4611686018427387.904"), -(std::int64_t{1} << 62));
}

TEST(ReaderTime, EveryNanosecondComesBack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto ns = static_cast<std::int64_t>(random() >> (3 + random() % 50));
    if (ns > std::int64_t{1} << 62) continue;
    EXPECT_EQ(microseconds_to_ns(fmt::format("{}.{:03}", ns / 1000, ns % 1000)), ns);
    EXPECT_EQ(microseconds_to_ns(fmt::format("{}e-3", ns)), ns);
    EXPECT_EQ(microseconds_to_ns(fmt::format("-{}.{:03}00", ns / 1000, ns % 1000)), -ns);
  }
}

TEST(ReaderIds, NumbersAndNumericStringsAreTheirValue) {
  EXPECT_EQ(parse_id("0"), 0U);
  EXPECT_EQ(parse_id("155142"), 155142U);
  EXPECT_EQ(parse_id("\"155142\""), 155142U);
  EXPECT_EQ(parse_id("9223372036854775808"), 9223372036854775808U);  // 2^63
  EXPECT_EQ(parse_id("18446744073709551614"), 18446744073709551614U);
  EXPECT_EQ(parse_id("123.0"), 123U);  // written by tools that make every number a float
}

TEST(ReaderIds, NoIdIsNoId) {
  for (const char* text : {"", "-1", "null", "\"\"", "\"-1\"", "18446744073709551615"}) {
    EXPECT_EQ(parse_id(text), no_id) << text;
  }
}

TEST(ReaderIds, OtherTextIsAStableHash) {
  const std::uint64_t word = parse_id("\"launch-7f\"");
  EXPECT_EQ(parse_id("\"launch-7f\""), word);
  EXPECT_NE(parse_id("\"launch-7e\""), word);
  EXPECT_NE(word, no_id);
  // FNV-1a of "a", from its published test vectors.
  EXPECT_EQ(parse_id("\"a\""), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(parse_id("18446744073709551616"), parse_id("\"18446744073709551616\""));
  EXPECT_NE(parse_id("18446744073709551616"), parse_id("18446744073709551617"));
  EXPECT_NE(parse_id("-2"), no_id);
}

TEST(ReaderNumbers, UnsignedAndSigned) {
  EXPECT_EQ(parse_unsigned("4294967296"), 4294967296U);
  EXPECT_EQ(parse_unsigned("\"8\""), 8U);
  EXPECT_EQ(parse_unsigned("2e3"), 2000U);
  EXPECT_FALSE(parse_unsigned("-1").has_value());
  EXPECT_FALSE(parse_unsigned("1.5").has_value());
  EXPECT_FALSE(parse_unsigned("0x10").has_value());
  EXPECT_EQ(parse_signed("-17"), -17);
  EXPECT_EQ(parse_signed("9223372036854775807"), INT64_MAX);
  EXPECT_FALSE(parse_signed("9223372036854775808").has_value());
}

}  // namespace
}  // namespace ingot::trace
