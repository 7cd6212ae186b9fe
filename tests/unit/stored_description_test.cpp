// SPDX-License-Identifier: Apache-2.0
#include "cpu/stored_description.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cpu/describe.h"
#include "ingot/bench.h"
#include "profile/calibrate.h"

namespace ingot::cpu {
namespace {

namespace fs = std::filesystem;

/// A cache folder of its own for each test.
class StoredDescription : public testing::Test {
 protected:
  StoredDescription() {
    std::string pattern = (fs::temp_directory_path() / "ingot-cache-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    setenv("INGOT_CACHE", folder.c_str(), 1);
  }
  ~StoredDescription() override {
    unsetenv("INGOT_CACHE");
    std::error_code ignored;
    fs::permissions(folder, fs::perms::owner_all, ignored);
    fs::remove_all(folder, ignored);
  }
  StoredDescription(const StoredDescription&) = delete;
  StoredDescription& operator=(const StoredDescription&) = delete;

  fs::path folder;
  DeviceDescription estimate = estimate_cpu(cpu_facts(), 2);
};

TEST_F(StoredDescription, ComesBackAsItWent) {
  DeviceDescription measured = estimate;
  measured.source = "measured some day";
  measured.cpu.gemm_row_overhead = 3.25;
  measured.cpu.activation_s[1][2] = 1.5e-9;
  EXPECT_FALSE(load_description(estimate));
  ASSERT_TRUE(store_description(measured));
  const auto back = load_description(estimate);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(measured));
  EXPECT_EQ(back->cpu.gemm_row_overhead, 3.25);
  EXPECT_EQ(back->cpu.activation_s[1][2], 1.5e-9);
  // One file, no leftovers of the writing.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(StoredDescription, IsIgnoredOnAnotherMachine) {
  ASSERT_TRUE(store_description(estimate));
  ASSERT_TRUE(load_description(estimate));
  DeviceDescription other = estimate;
  other.name = "another CPU";
  EXPECT_FALSE(load_description(other));
  other = estimate;
  other.cpu.library = "oneDNN 9.9.9";
  EXPECT_FALSE(load_description(other));
  other = estimate;
  other.cpu.threads = 3;
  EXPECT_FALSE(load_description(other));
  other = estimate;
  other.cpu.l3_bytes *= 2;
  EXPECT_FALSE(load_description(other));
}

TEST_F(StoredDescription, DamageIsNoDescription) {
  const std::string good = to_json(estimate);
  ASSERT_TRUE(from_json(good));
  EXPECT_FALSE(from_json(""));
  EXPECT_FALSE(from_json("[]"));
  EXPECT_FALSE(from_json("{\"schema\": \"ingot.cpu/1\"}"));
  EXPECT_FALSE(from_json("{\"schema\": 7}"));
  for (std::size_t cut = 0; cut + 2 < good.size(); cut += 97)
    EXPECT_FALSE(from_json(good.substr(0, cut))) << cut;
  const auto with = [&](const char* name, const nlohmann::json& value) {
    nlohmann::json document = nlohmann::json::parse(good);
    document["rates"][name] = value;
    return document.dump();
  };
  EXPECT_TRUE(from_json(with("gemm_flops_per_s", 1e9)));
  EXPECT_FALSE(from_json(with("gemm_flops_per_s", 0)));
  EXPECT_FALSE(from_json(with("gemm_flops_per_s", "fast")));
  EXPECT_FALSE(from_json(with("activation_s.bf16.silu", -1)));
  EXPECT_FALSE(from_json(with("task_s", nullptr)));
}

TEST_F(StoredDescription, DescribeMeasuresOnceAndThenReads) {
  const auto first = describe_cpu({.threads = 2, .remeasure = false, .warn = {}});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->source.substr(0, 9), "measured ");
  EXPECT_GT(first->cpu.gemm_flops_per_s, 1e8);
  EXPECT_GT(first->cpu.memory_bytes_per_s, 1e7);
  const auto second = describe_cpu({.threads = 2, .remeasure = false, .warn = {}});
  ASSERT_TRUE(second);
  EXPECT_EQ(to_json(*second), to_json(*first));
  // The engine takes the stored one by itself.
  EXPECT_EQ(to_json(Engine::open({.threads = 2, .description = {}})->device()), to_json(*first));
}

TEST_F(StoredDescription, AFolderThatCannotBeWrittenIsAWarning) {
  // A file in the folder's place cannot be created below, whoever asks (root ignores permissions).
  std::ofstream(folder / "file") << "x";
  setenv("INGOT_CACHE", (folder / "file").c_str(), 1);
  std::string warning;
  const auto described = describe_cpu(
      {.threads = 1, .remeasure = false, .warn = [&](const std::string& text) { warning = text; }});
  ASSERT_TRUE(described);
  EXPECT_NE(warning.find("cannot write"), std::string::npos) << warning;
  EXPECT_FALSE(load_description(*described));
}

TEST(DescribeCpu, RefusesSillyThreads) {
  EXPECT_EQ(describe_cpu({.threads = -1, .remeasure = false, .warn = {}}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(describe_cpu({.threads = 5000, .remeasure = false, .warn = {}}).error().message,
            "threads: 5000 is not accepted, give 0 to 1024");
}

}  // namespace
}  // namespace ingot::cpu
