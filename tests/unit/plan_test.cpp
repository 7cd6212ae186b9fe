// SPDX-License-Identifier: Apache-2.0
//
// The planner on made-up machines: no device is touched.
#include "ingot/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plan/choose.h"

namespace ingot {
namespace {

DeviceDescription machine(int threads = 4) {
  DeviceDescription device{.kind = DeviceKind::cpu, .name = "test CPU", .source = "made up", .cpu = {}};
  CpuDescription& cpu = device.cpu;
  cpu.threads = threads;
  cpu.isa = "avx2";
  cpu.library = "a GEMM";
  cpu.l1_bytes = 32U << 10U;
  cpu.l2_bytes = 1U << 20U;
  cpu.l3_bytes = 16U << 20U;
  cpu.gemm_flops_per_s = 50e9 * threads;
  cpu.gemm_row_overhead = 4;
  cpu.cache_bytes_per_s = 100e9;
  cpu.memory_bytes_per_s = 20e9;
  cpu.stream_bytes_per_s = 20e9;
  cpu.task_s = 2e-6;
  for (std::size_t d = 0; d < dtype_count; ++d) {
    cpu.activation_s[d].fill(0.3e-9);
    cpu.gate_s[d] = 0.1e-9;
    cpu.convert_s[d] = d == 0 ? 0 : 0.1e-9;
  }
  return device;
}

const Mlp geglu{320, 1280, Activation::gelu_erf, true, true, DType::f32};

const Candidate& find(const Plan& plan, Rung rung) {
  return plan.candidates[static_cast<std::size_t>(rung)];
}

TEST(Traffic, CountsEachLaunchesTensors) {
  // tokens 10, dim 2, hidden 3: x 20, h 30, y 20, weights 6 each; f32 is 4 bytes.
  Mlp mlp{2, 3, Activation::relu, false, false, DType::f32};
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, false).launches, 3);
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, false).bytes, 4 * ((20 + 6 + 30) + (30 + 30) + (30 + 6 + 20)));
  EXPECT_EQ(traffic(mlp, 10, Rung::epilogue, false).launches, 2);
  EXPECT_EQ(traffic(mlp, 10, Rung::epilogue, false).bytes, 4 * ((20 + 6 + 30) + (30 + 6 + 20)));
  EXPECT_EQ(traffic(mlp, 10, Rung::one_pass, false).launches, 1);
  EXPECT_EQ(traffic(mlp, 10, Rung::one_pass, false).bytes, 4 * (20 + 12 + 20));
  EXPECT_EQ(traffic(mlp, 10, Rung::one_pass, false).bytes, least_bytes(mlp, 10));
  EXPECT_EQ(traffic(mlp, 10, Rung::one_kernel, false).launches, 1);
  EXPECT_EQ(traffic(mlp, 10, Rung::one_kernel, false).bytes, least_bytes(mlp, 10));

  mlp.bias = true;
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, false).bytes,
            4 * ((20 + 6 + 3 + 30) + (30 + 30) + (30 + 6 + 2 + 20)));
  // matmul, add, activation, matmul, add.
  EXPECT_EQ(traffic(mlp, 10, Rung::matmul_add, false).launches, 5);
  EXPECT_EQ(traffic(mlp, 10, Rung::matmul_add, false).bytes,
            4 * ((20 + 6 + 30) + (30 + 3 + 30) + (30 + 30) + (30 + 6 + 20) + (20 + 2 + 20)));

  mlp.gated = true;
  // Gate and up as one linear of twice the width, or as two that read x twice.
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, true).launches, 4);
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, true).bytes,
            4 * ((20 + 12 + 6 + 60) + (30 + 30) + (60 + 30) + (30 + 6 + 2 + 20)));
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, false).launches, 5);
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, false).bytes,
            4 * (2 * (20 + 6 + 3 + 30) + (30 + 30) + (60 + 30) + (30 + 6 + 2 + 20)));
  EXPECT_EQ(traffic(mlp, 10, Rung::matmul_add, true).launches, 6);
  EXPECT_EQ(traffic(mlp, 10, Rung::matmul_add, false).launches, 8);
  EXPECT_EQ(traffic(mlp, 10, Rung::one_pass, false).bytes, least_bytes(mlp, 10));

  mlp.dtype = DType::bf16;
  EXPECT_EQ(traffic(mlp, 10, Rung::one_pass, false).bytes, 2 * (20 + 18 + 8 + 20));
  mlp.activation = Activation::identity;  // nothing is launched for it
  EXPECT_EQ(traffic(mlp, 10, Rung::unfused, true).launches, 3);
}

TEST(Plan, ManyTokensOfANarrowMlpGoInOnePass) {
  const auto made = plan(geglu, 8192, machine());
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.rung, Rung::one_pass);
  EXPECT_EQ(made->chosen.launches, 1);
  EXPECT_EQ(find(*made, Rung::unfused).rejected, Rejection::slower);
  // Every thread gets as many tiles as the others.
  const std::int64_t tiles = (8192 + made->chosen.tile.tokens - 1) / made->chosen.tile.tokens;
  EXPECT_EQ(tiles % 4, 0);
  // Gate and up sums fit half the second-level cache.
  EXPECT_LE(made->chosen.tile.tokens * made->chosen.tile.hidden * 2 * 4, (1 << 20) / 2);
  // Fewer passes are never forecast slower.
  EXPECT_GE(find(*made, Rung::matmul_add).forecast_us, find(*made, Rung::unfused).forecast_us);
  EXPECT_GE(find(*made, Rung::unfused).forecast_us, find(*made, Rung::epilogue).forecast_us);
}

TEST(Plan, FewTokensSplitTheColumnsAndReadTheWeightsOnce) {
  const Mlp wide{4096, 16384, Activation::gelu_tanh, false, true, DType::f32};
  const auto made = plan(wide, 1, machine());
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.rung, Rung::epilogue);
  EXPECT_EQ(made->chosen.tile.splits, 4);
  EXPECT_EQ(find(*made, Rung::one_pass).rejected, Rejection::too_few_tokens);
  // 537 MB at 20 GB/s, and 0.27 GFLOP at 200 GFLOP/s.
  EXPECT_NEAR(made->chosen.forecast_us, 28190, 100);
}

TEST(Plan, WeightsALittleLargerThanTheCacheComeFromMemoryInPart) {
  // 10.49 MB of weights where 8.39 fit: a fifth is too much and pushes out as much again, so that 0.4 of it
  // is read at 20 GB/s and 0.6 at 100 GB/s, 272.6 us; the products take 26.2 us, two phases 4, the rest 0.5.
  const Mlp mlp{1024, 1280, Activation::identity, false, false, DType::f32};
  DeviceDescription device = machine();
  device.cpu.cached_bytes = 2 * 1024 * 1280 * 4 / 1.25;
  EXPECT_NEAR(plan(mlp, 1, device)->chosen.forecast_us, 303.3, 1);
  // All of it fits: 104.9 us to read.
  device.cpu.cached_bytes = 2 * 1024 * 1280 * 4;
  EXPECT_NEAR(plan(mlp, 1, device)->chosen.forecast_us, 135.6, 1);
  // Twice too large: none of it stays, 524.3 us.
  device.cpu.cached_bytes = 1024 * 1280 * 4;
  EXPECT_NEAR(plan(mlp, 1, device)->chosen.forecast_us, 555.0, 1);
}

TEST(Plan, FewRowsOfNativeBf16CostAsMuchAsSixteen) {
  const Mlp mlp{1024, 1024, Activation::identity, false, false, DType::bf16};
  DeviceDescription device = machine(2);
  device.cpu.native_bf16 = true;
  device.cpu.bf16_flops_per_s = 1e12;
  device.cpu.bf16_row_overhead = 8;
  device.cpu.cached_bytes = 100e6;
  device.cpu.task_s = 0;
  const PlanOptions epilogue{.numerics = {}, .rung = Rung::epilogue};
  const auto us = [&](std::int64_t tokens) {
    return plan(mlp, tokens, device, epilogue)->chosen.forecast_us;
  };
  // 4.19 MB at 100 GB/s are 41.9 us; 24 rows of 2.1 M weights 100.7 us at 1 TFLOP/s; hidden values and
  // numbers of y less than 2 us for each 2 tokens.
  EXPECT_NEAR(us(2), 41.9 + 100.7, 3);
  EXPECT_NEAR(us(16) - us(2), 14 * (1024 * 0.3e-3 + 2048 * 0.1e-3), 1);
  // A single row is read along: 4.2 us at 1 TFLOP/s.
  EXPECT_NEAR(us(1), 41.9 + 4.2, 2);
  // From there on each row counts, 4.2 us.
  EXPECT_NEAR(us(32) - us(16), 16 * (4.194 + 1024 * 0.3e-3 + 2048 * 0.1e-3), 1.5);
}

TEST(Plan, TinyWorkIsNotWorthWakingThreadsFor) {
  const Mlp tiny{16, 32, Activation::relu, false, true, DType::f32};
  const auto made = plan(tiny, 2, machine());
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.tile.splits, 1);
}

TEST(Plan, AForcedRungIsChosenAndTheOthersSayWhy) {
  for (std::size_t r = 0; r < rung_count; ++r) {
    const Rung rung = static_cast<Rung>(r);
    if (is_compiled_rung(rung)) continue;
    const auto made = plan(geglu, 77, machine(), {.numerics = {}, .rung = rung, .packed = false});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->chosen.rung, rung);
    EXPECT_GT(made->chosen.forecast_us, 0);
    for (const Candidate& candidate : made->candidates) {
      EXPECT_EQ(candidate.rejected == Rejection::none, candidate.rung == rung);
    }
  }
}

TEST(Plan, EveryCandidateIsPricedOrSaysWhyNot) {
  for (const KnownModel& model : known_models()) {
    for (const std::int64_t tokens : {0, 1, 77, 512, 2048, 129024}) {
      for (const int threads : {1, 2, 64}) {
        const auto made = plan(model.mlp, tokens, machine(threads));
        ASSERT_TRUE(made) << model.name;
        ASSERT_EQ(made->candidates.size(), rung_count);
        EXPECT_EQ(made->chosen.rejected, Rejection::none);
        for (const Candidate& candidate : made->candidates) {
          EXPECT_TRUE(candidate.forecast_us > 0 || candidate.rejected != Rejection::none) << model.name;
          if (candidate.forecast_us > 0) {
            EXPECT_GE(candidate.tile.tokens, 1);
            EXPECT_GE(candidate.tile.hidden, 1);
            EXPECT_GE(candidate.tile.splits, 1);
            EXPECT_GE(candidate.forecast_us,
                      made->chosen.forecast_us * (candidate.rejected == Rejection::slower));
          }
        }
      }
    }
  }
}

TEST(Plan, RefusesWhatIsNotAnMlp) {
  Mlp bad = geglu;
  bad.hidden = 0;
  EXPECT_EQ(plan(bad, 1, machine()).error().message, "hidden: 0 is not accepted, give 1 to 2147483647");
  EXPECT_EQ(plan(geglu, -1, machine()).error().message, "tokens: -1 is not accepted, give 0 or more");
}

TEST(Plan, RefusesADescriptionItCannotPlanWith) {
  DeviceDescription bad = machine();
  bad.cpu.threads = 0;
  EXPECT_EQ(plan(geglu, 1, bad).error().message, "threads: 0 is not accepted, give 1 or more");
  bad = machine();
  bad.cpu.memory_bytes_per_s = 0;
  EXPECT_EQ(plan(geglu, 1, bad).error().message, "memory_bytes_per_s: 0 is not accepted, give a rate");
  bad.cpu.memory_bytes_per_s = std::nan("");
  EXPECT_EQ(plan(geglu, 1, bad).error().code, ErrorCode::invalid_argument);
}

TEST(Plan, ACpuHasNoCompiledKernels) {
  const auto made = plan(geglu, 77, machine());
  ASSERT_TRUE(made);
  EXPECT_EQ(find(*made, Rung::two_kernel).rejected, Rejection::not_on_device);
  EXPECT_EQ(find(*made, Rung::two_kernel).forecast_us, 0);
  EXPECT_TRUE(made->kernels.empty());
  EXPECT_EQ(tile_text(*made), to_string(made->chosen.tile));
  EXPECT_EQ(find(*made, Rung::one_kernel).rejected, Rejection::not_on_device);
  EXPECT_EQ(find(*made, Rung::one_kernel).forecast_us, 0);
  const auto forced = plan(geglu, 77, machine(), {.numerics = {}, .rung = Rung::two_kernel});
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().code, ErrorCode::unsupported);
  EXPECT_THAT(forced.error().message, testing::HasSubstr("two_kernel: this kind of device has no such rung"));
}

TEST(Rungs, NamesParseBackAndReasonsAreWritten) {
  for (std::size_t r = 0; r < rung_count; ++r) {
    EXPECT_EQ(*parse_rung(to_string(static_cast<Rung>(r))), static_cast<Rung>(r));
  }
  EXPECT_EQ(parse_rung("onepass").error().message,
            "unknown rung 'onepass', did you mean 'one_pass'? accepted: matmul_add, unfused, epilogue, "
            "two_kernel, one_pass, one_kernel");
  for (const Rejection rejection :
       {Rejection::slower, Rejection::not_asked_for, Rejection::too_few_tokens, Rejection::not_on_device,
        Rejection::no_library_epilogue, Rejection::no_library, Rejection::within_model_error,
        Rejection::no_mlp_kernel, Rejection::measured_slower}) {
    EXPECT_FALSE(to_string(rejection).empty());
  }
  EXPECT_EQ(to_string(Tile{192, 256, 1}), "192x256");
  EXPECT_EQ(to_string(Tile{1, 512, 4}), "1x512/4");
}

}  // namespace
}  // namespace ingot
