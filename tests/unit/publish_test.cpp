// SPDX-License-Identifier: Apache-2.0
#include "base/publish.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace ingot::base {
namespace {

namespace fs = std::filesystem;

class Publish : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_ =
      fs::path(testing::TempDir()) /
      ("ingot_publish_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Publish, WritesAndReplaces) {
  const std::string path = folder_ / "new" / "file";
  ASSERT_TRUE(publish(path, "first").ok());
  EXPECT_EQ(read_whole(path), "first");
  ASSERT_TRUE(publish(path, "").ok());
  EXPECT_EQ(read_whole(path), "");
}

TEST_F(Publish, ThreadsThatWriteOneFileLeaveAWholeOne) {
  const std::string path = folder_ / "file";
  std::vector<std::string> texts;
  for (char c = 'a'; c < 'e'; ++c) texts.emplace_back(100000, c);
  std::vector<int> failures(texts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 20; ++n) failures[i] += publish(path, texts[i]).ok() ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(failures, std::vector<int>(texts.size()));
  const std::string left = read_whole(path);
  ASSERT_EQ(left.size(), texts[0].size());
  EXPECT_EQ(left, std::string(left.size(), left[0]));
  EXPECT_EQ(files(), 1U) << "parts are left";
}

TEST_F(Publish, DevicesAreWrittenToAndNotReplaced) {
  EXPECT_TRUE(publish("/dev/null", "bytes").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const auto full = publish("/dev/full", "bytes");  // as a disk without room
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::unreadable);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Publish, ANameWithoutAFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(publish("file", "bytes").ok());
  fs::current_path(before);
  EXPECT_EQ(read_whole(folder_ / "file"), "bytes");
}

TEST_F(Publish, AFailureLeavesTheOldFileAndNothingElse) {
  const fs::path path = folder_ / "taken";
  fs::create_directories(path / "inside");  // a folder that is not empty cannot be replaced
  const auto result = publish(path, "bytes");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::unreadable);
  EXPECT_EQ(result.error().message.rfind("cannot write " + path.string() + ": ", 0), 0U)
      << result.error().message;
  EXPECT_TRUE(fs::exists(path / "inside"));
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace ingot::base
