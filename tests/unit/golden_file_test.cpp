// SPDX-License-Identifier: Apache-2.0
#include "golden_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace ingot::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GoldenFile : public ::testing::Test {
 protected:
  GoldenFile() : folder_(std::filesystem::path(::testing::TempDir()) / unique_name()) {
    std::filesystem::remove_all(folder_);
  }
  ~GoldenFile() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  std::filesystem::path file() const { return folder_ / "deeper" / "report.txt"; }
  void write(std::string_view text) const {
    std::filesystem::create_directories(file().parent_path());
    std::ofstream(file(), std::ios::binary) << text;
  }

 private:
  static std::string unique_name() {
    return std::string("ingot_golden_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
           "_" + std::to_string(::getpid());
  }

  std::filesystem::path folder_;
};

TEST_F(GoldenFile, EqualBytesPass) {
  write("one\ntwo\n");
  EXPECT_TRUE(compare_golden("one\ntwo\n", file(), false));
  EXPECT_TRUE(compare_golden("one\ntwo\n", file(), true));
}

TEST_F(GoldenFile, DifferenceFailsShowsTheLinesAndLeavesTheFile) {
  write("one\ntwo\nthree\n");
  const auto result = compare_golden("one\n2\nthree\n", file(), false);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("line 2:\n-two\n+2\n"));
  EXPECT_THAT(result.message(), HasSubstr("INGOT_UPDATE_GOLDEN=1"));
  EXPECT_EQ(read_all(file()), "one\ntwo\nthree\n");
}

TEST_F(GoldenFile, MissingFileFailsAndIsNotMade) {
  const auto result = compare_golden("one\n", file(), false);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("is missing"));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(GoldenFile, UpdateWritesAndStillFails) {
  write("old\n");
  EXPECT_FALSE(compare_golden("new\n", file(), true));
  EXPECT_EQ(read_all(file()), "new\n");
  EXPECT_TRUE(compare_golden("new\n", file(), false));
}

TEST_F(GoldenFile, UpdateMakesAMissingFileAndStillFails) {
  const auto result = compare_golden("new\n", file(), true);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("written anew"));
  EXPECT_EQ(read_all(file()), "new\n");
}

TEST_F(GoldenFile, UpdateThatCannotWriteSaysSo) {
  write("a file where a folder is needed");
  const auto result = compare_golden("new\n", file() / "below.txt", true);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("could not be written"));
}

TEST(ShortDiff, CoversInsertionRemovalAndMissingNewline) {
  EXPECT_EQ(short_diff("a\nb\n", "a\nx\nb\n"), "line 2:\n+x\n");
  EXPECT_EQ(short_diff("a\nx\nb\n", "a\nb\n"), "line 2:\n-x\n");
  EXPECT_EQ(short_diff("a\n", "a"), "line 1:\n-a\n+a  (no newline at the end)\n");
  EXPECT_EQ(short_diff("", "a\n"), "line 1:\n+a\n");
}

TEST(ShortDiff, IsShort) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::to_string(i) + "\n";
  const std::string diff = short_diff("x\n", many, 3);
  EXPECT_EQ(diff, "line 1:\n-x\n+0\n+1\n+2\n+ … 997 more lines\n");
  EXPECT_THAT(diff, Not(HasSubstr("999")));
}

}  // namespace
}  // namespace ingot::test
