// SPDX-License-Identifier: Apache-2.0
//
// The rates of a CPU by a clock that runs as it is told: no work is done.
#include "profile/calibrate.h"

#include <gtest/gtest.h>

#include "cpu/describe.h"

namespace ingot::profile {
namespace {

class StandingClock final : public Timer {
 public:
  double each = 1e-3;  // seconds that everything takes
  Result<double> seconds(const Work& /*work*/) override { return each; }
};

class CalibrateCpu : public testing::Test {
 protected:
  CalibrateCpu() {
    cpu::CpuFacts facts = cpu::cpu_facts();
    facts.l3_bytes = 16U << 20U;  // what is measured for memory is four times this
    start_ = cpu::estimate_cpu(facts, 2);
  }

  StandingClock clock_;
  DeviceDescription start_;
};

TEST_F(CalibrateCpu, RatesAreWorkOverTime) {
  auto calibration = CpuCalibration::create(start_, clock_);
  ASSERT_TRUE(calibration);
  const auto measured = calibration->measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->source.substr(0, 9), "measured ");
  const CpuDescription& cpu = measured->cpu;
  EXPECT_EQ(cpu.threads, 2);
  // 192 rows take as long as 16: half of that is said to be overhead, that of 2 x 192 - 16 rows.
  const double per_row = 1e-3 / (2 * 192);
  EXPECT_NEAR(cpu.gemm_flops_per_s, 2 * 2.0 * 1024 * 512 / per_row, 1e3);
  EXPECT_NEAR(cpu.gemm_row_overhead, 2 * 192 - 16, 1e-6);
  // 64 MiB read, and as much written by a pass.
  EXPECT_NEAR(cpu.memory_bytes_per_s, (64 << 20) / 1e-3, 1e3);
  EXPECT_NEAR(cpu.stream_bytes_per_s, 2 * (64 << 20) / 1e-3, 1e3);
  // 200 phases.
  EXPECT_NEAR(cpu.task_s, 1e-3 / 200, 1e-12);
  // A tile of 64 x 256 for each of two threads.
  EXPECT_NEAR(cpu.activation_s[0][0], 1e-3 / (2 * 64 * 256), 1e-15);
  EXPECT_EQ(cpu.convert_s[0], 0);
  EXPECT_NEAR(cpu.convert_s[1], 1e-3 / (2 * 2 * 64 * 256), 1e-15);
}

TEST_F(CalibrateCpu, RefreshBringsEveryRateToTheSpeedOfTheMoment) {
  auto calibration = CpuCalibration::create(start_, clock_);
  ASSERT_TRUE(calibration);
  const auto measured = calibration->measure();
  ASSERT_TRUE(measured);
  clock_.each = 2e-3;
  const auto now = calibration->refresh(*measured);
  ASSERT_TRUE(now);
  const CpuDescription &a = measured->cpu, &b = now->cpu;
  EXPECT_DOUBLE_EQ(b.gemm_flops_per_s, a.gemm_flops_per_s / 2);
  EXPECT_DOUBLE_EQ(b.bf16_flops_per_s, a.bf16_flops_per_s / 2);
  EXPECT_DOUBLE_EQ(b.cache_bytes_per_s, a.cache_bytes_per_s / 2);
  EXPECT_DOUBLE_EQ(b.cache_stream_bytes_per_s, a.cache_stream_bytes_per_s / 2);
  EXPECT_DOUBLE_EQ(b.memory_bytes_per_s, a.memory_bytes_per_s / 2);
  EXPECT_DOUBLE_EQ(b.stream_bytes_per_s, a.stream_bytes_per_s / 2);
  EXPECT_DOUBLE_EQ(b.task_s, a.task_s * 2);
  EXPECT_DOUBLE_EQ(b.gemm_row_overhead, a.gemm_row_overhead);
  EXPECT_DOUBLE_EQ(b.cached_bytes, a.cached_bytes);
  for (std::size_t d = 0; d < dtype_count; ++d) {
    for (std::size_t activation = 0; activation < activation_count; ++activation) {
      EXPECT_DOUBLE_EQ(b.activation_s[d][activation], a.activation_s[d][activation] * 2);
    }
    EXPECT_DOUBLE_EQ(b.gate_s[d], a.gate_s[d] * 2);
    EXPECT_DOUBLE_EQ(b.convert_s[d], a.convert_s[d] * 2);
  }
  EXPECT_EQ(b.threads, a.threads);
  EXPECT_EQ(now->name, measured->name);
}

}  // namespace
}  // namespace ingot::profile
