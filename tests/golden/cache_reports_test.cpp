// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "golden_file.h"
#include "ingot/report.h"

namespace ingot {
namespace {

using test::golden_matches;

CacheListing listing() {
  CacheListing listing{"/var/cache/ingot/kernels", cache_limit_bytes, {}};
  const std::string compiler = "NVRTC 13.0 (109338064 bytes) -std=c++17";
  CachedKernel damaged;
  damaged.key = "0123456789abcdef0123456789abcdef";
  damaged.bytes = 12;
  damaged.damaged = true;
  listing.kernels.push_back(damaged);
  listing.kernels.push_back({"fedcba9876543210fedcba9876543210",
                             "bf16_match_gelu_tanh_768to3072_bias__g2x1x256s3c21e", "sm_90a", compiler, 168,
                             0, 62720, 1767323045, false});
  listing.kernels.push_back({"00000000000000000000000000000001",
                             "f32_match_identity_3072to768__p64x64x16s4w2x2", "sm_120", compiler, 255, 24,
                             31744, 1767323105, false});
  return listing;
}

TEST(GoldenCacheReports, List) {
  EXPECT_TRUE(golden_matches(report::text(listing()), "cache_list.txt"));
  EXPECT_TRUE(golden_matches(report::json(listing()), "cache_list.json"));
  EXPECT_EQ(report::text(CacheListing{"/some/folder", cache_limit_bytes, {}}),
            "0 kernels, 0 B of at most 512 MiB, in /some/folder\n");
}

TEST(GoldenCacheReports, Clear) {
  const CacheCleared cleared{"/var/cache/ingot/kernels", 1, 62720};
  EXPECT_EQ(report::text(cleared), "removed 1 kernel, 61.25 KiB, from /var/cache/ingot/kernels\n");
  EXPECT_TRUE(golden_matches(report::json(cleared), "cache_clear.json"));
}

TEST(GoldenCacheReports, Warm) {
  const CacheWarmed warmed{
      "/var/cache/ingot/kernels",
      {{"bf16_match_gelu_tanh_768to3072_bias__g2x1x256s3c21e", "sm_90a", true, 0.9123456},
       {"bf16_match_identity_3072to768_bias__g2x2x192s3c12", "sm_90a", false, 0.000125}}};
  EXPECT_TRUE(golden_matches(report::text(warmed), "cache_warm.txt"));
  EXPECT_TRUE(golden_matches(report::json(warmed), "cache_warm.json"));
}

}  // namespace
}  // namespace ingot
