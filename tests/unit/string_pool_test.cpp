// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ingot/trace.h"

namespace ingot::trace {
namespace {

TEST(StringPool, EqualTextHasOneIdAndTheEmptyStringIsZero) {
  StringPool pool;
  const StringId mm = pool.intern("aten::mm");
  EXPECT_EQ(pool.intern("aten::mm"), mm);
  EXPECT_NE(pool.intern("aten::addmm"), mm);
  EXPECT_EQ(pool.intern(""), 0U);
  EXPECT_EQ(pool[mm], "aten::mm");
}

TEST(StringPool, ViewsSurviveGrowthAndMoves) {
  StringPool pool;
  const StringId first = pool.intern("first");
  const char* const at = pool[first].data();
  for (int i = 0; i < 100000; ++i) pool.intern("text number " + std::to_string(i));
  const StringPool moved = std::move(pool);
  EXPECT_EQ(moved[first].data(), at);
  EXPECT_EQ(moved[first], "first");
  EXPECT_EQ(moved.size(), 100002U);
}

}  // namespace
}  // namespace ingot::trace
