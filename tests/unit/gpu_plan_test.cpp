// SPDX-License-Identifier: Apache-2.0
//
// The planner for GPUs that are not here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "ingot/plan.h"
#include "plan/choose.h"
#include "plan/linear.h"

namespace ingot {
namespace {

GpuDescription gpu(const char* generation) {
  return describe_gpu(generation).value().gpu;
}
bool is_portable(const KernelTile& tile) {
  return std::holds_alternative<sm80::Tile>(tile);
}
const Candidate& find(const Plan& plan, Rung rung) {
  return plan.candidates[static_cast<std::size_t>(rung)];
}

// 1 to 65536, powers of two and their neighbours, in order.
std::vector<std::int64_t> token_counts() {
  std::vector<std::int64_t> all{1, 2, 3};
  for (std::int64_t t = 4; t <= 65536; t *= 2) {
    if (t > 4) all.push_back(t - 1);
    all.push_back(t);
    if (t < 65536) all.push_back(t + 1);
  }
  return all;
}

TEST(Linears, OfAnMlp) {
  const Mlp mlp{320, 1280, Activation::gelu_erf, true, true, DType::f16};
  const LinearSpec first = first_linear(mlp, false, Numerics::fast);
  EXPECT_EQ(first, (LinearSpec{.out = 1280,
                               .in = 320,
                               .activation = Activation::gelu_erf,
                               .gated = true,
                               .gate_first = false,
                               .bias = true,
                               .dtype = DType::f16,
                               .numerics = Numerics::fast,
                               .aligned = true}));
  const LinearSpec second = second_linear(mlp, Numerics::fast);
  EXPECT_EQ(second, (LinearSpec{.out = 320,
                                .in = 1280,
                                .activation = Activation::identity,
                                .gated = false,
                                .gate_first = true,
                                .bias = true,
                                .dtype = DType::f16,
                                .numerics = Numerics::fast,
                                .aligned = true}));
  // Without a gate its place makes no difference.
  const Mlp plain{64, 256, Activation::relu, false, false, DType::bf16};
  EXPECT_EQ(first_linear(plain, false, Numerics::match), first_linear(plain, true, Numerics::match));
}

TEST(Linears, RowsOf16BytesAreAligned) {
  const auto aligned = [](std::int64_t dim, std::int64_t hidden, DType dtype, bool addresses = true) {
    const Mlp mlp{dim, hidden, Activation::relu, false, false, dtype};
    const bool first = first_linear(mlp, true, Numerics::match, addresses).aligned;
    EXPECT_EQ(second_linear(mlp, Numerics::match, addresses).aligned, first);
    return first;
  };
  EXPECT_TRUE(aligned(8, 16, DType::bf16));
  EXPECT_FALSE(aligned(12, 16, DType::bf16));
  EXPECT_FALSE(aligned(8, 20, DType::f16));
  EXPECT_TRUE(aligned(12, 20, DType::f32));
  EXPECT_FALSE(aligned(12, 18, DType::f32));
  EXPECT_FALSE(aligned(8, 16, DType::bf16, false));
}

TEST(Labels, AreWrittenAndReadBack) {
  const std::vector<std::pair<KernelTile, std::string>> known{
      {sm90::GemmTile{2, 1, 256, 3, 2, 1, 1, true, 0}, "g2x1x256s3c21e"},
      {sm90::GemmTile{2, 1, 112, 7, 1, 1, 4, false, 0}, "g2x1x112s7c11k4"},
      {sm90::GemmTile{2, 1, 256, 4, 1, 1, 1, false, 2}, "g2x1x256s4c11l2"},
      {sm90::GemmTile{3, 1, 208, 4, 1, 2, 1, false, 0}, "g3x1x208s4c12"},
      {sm90::FewTile{1, 1, 16, 4, 1, 1}, "f1x1x16s4"},
      {sm90::FewTile{1, 1, 40, 12, 1, 4}, "f1x1x40s12k4"},
      {sm90::FewTile{2, 1, 64, 9, 2, 1}, "f2x1x64s9h2"},
      {sm80::Tile{128, 64, 32, 4, 2, 2}, "p128x64x32s4w2x2"},
  };
  for (const auto& [tile, text] : known) {
    EXPECT_EQ(label(tile), text);
    const auto parsed = parse_tile(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->index(), tile.index()) << text;
    EXPECT_EQ(label(*parsed), text);
  }
  const auto few = std::get<sm90::FewTile>(*parse_tile("f1x2x40s12h1k4"));  // share 1 may be written
  EXPECT_EQ(few.k_warpgroups, 2);
  EXPECT_EQ(few.tokens, 40);
  EXPECT_EQ(few.stages, 12);
  EXPECT_EQ(few.share, 1);
  EXPECT_EQ(few.splits, 4);
}

TEST(Labels, AnythingElseIsRefused) {
  for (const char* text :
       {"", "g", "x", "g2", "g2x1x256", "g2x1x256s3", "g2x1x256s3c2", "g2x1x256s3c21ee", "g2x1x256s3c21e ",
        " g2x1x256s3c21e", "g2x1x-56s3c21", "g02x1x256s3c21", "f1x1x16", "f1x1x16s4k", "p128x64x32s4",
        "p128x64x32s4w2", "g2x1x0s3c21", "g2x1x99999s3c21"}) {
    const auto parsed = parse_tile(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  }
}

TEST(TokenClasses, PartitionTheNumbers) {
  std::int64_t least = 1;
  for (int index = 0; index < token_classes; ++index) {
    const TokenClass c = token_class(least);
    EXPECT_EQ(c.index, index);
    EXPECT_GE(c.representative, least);
    EXPECT_EQ(c.next, c.representative + 1);
    EXPECT_EQ(token_class(c.representative).index, index);
    if (least <= 64) {
      EXPECT_EQ(c.representative, least);
    }
    EXPECT_LE(static_cast<double>(c.representative - least), static_cast<double>(least) / 32);
    least = c.next;
  }
  EXPECT_GT(least, std::int64_t{1} << 61U);
  // What people run stands for itself.
  for (const std::int64_t tokens : {77, 128, 256, 512, 1024, 4992, 8192, 8064, 32256, 129024}) {
    if (tokens != 77) {
      EXPECT_EQ(token_class(tokens).representative, tokens);
    }
  }
  EXPECT_EQ(token_class(0).index, 0);
  EXPECT_EQ(token_class(-5).representative, 1);
  EXPECT_EQ(token_class(INT64_MAX).index, token_classes - 1);
}

TEST(ChooseKernels, EveryModelHasAPlanOnEveryGpu) {
  for (const std::string_view generation : gpu_generations()) {
    const DeviceDescription device = describe_gpu(generation).value();
    for (const KnownModel& model : known_models()) {
      for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        Mlp mlp = model.mlp;
        mlp.dtype = dtype;
        double before = 0;
        for (const std::int64_t tokens : token_counts()) {
          const KernelPair pair = choose_kernels(mlp, tokens, device.gpu, {});
          ASSERT_TRUE(pair.found) << model.name << " on " << generation;
          const LinearSpec first = first_linear(mlp, true, Numerics::match);
          const LinearSpec second = second_linear(mlp, Numerics::match);
          EXPECT_TRUE(can_run(first, pair.first, device.gpu)) << label(pair.first);
          EXPECT_TRUE(can_run(second, pair.second, device.gpu)) << label(pair.second);
          // More tokens never take less.
          const double now = pair.first_us + pair.second_us;
          EXPECT_GE(now, before * (1 - 1e-12)) << model.name << " " << tokens << " on " << generation;
          before = now;
          // Neither the products nor the memory are faster than the card.
          const double rate = dtype == DType::f32 ? device.gpu.f32_flops_per_s : 1.3e15;
          if (generation == "sm90") {
            EXPECT_GE(now * 1e-6, flops(mlp, tokens) / rate);
          }
          EXPECT_GE(now * 1e-6, least_bytes(mlp, tokens) / (1.2 * device.gpu.memory_bytes_per_s));
        }
      }
    }
  }
}

TEST(ChooseKernels, HopperKernelsAreForHopperAnd16BitRows) {
  const Mlp mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  const auto portable = [](const Mlp& m, const GpuDescription& on, bool aligned = true) {
    const KernelPair pair = choose_kernels(m, 300, on, {.numerics = Numerics::match, .aligned = aligned});
    EXPECT_TRUE(pair.found);
    EXPECT_EQ(is_portable(pair.first), is_portable(pair.second));
    return is_portable(pair.first);
  };
  EXPECT_FALSE(portable(mlp, gpu("sm90")));
  EXPECT_TRUE(portable(mlp, gpu("sm90"), false));
  for (const char* other : {"sm80", "sm86", "sm89", "sm100", "sm120"}) EXPECT_TRUE(portable(mlp, gpu(other)));
  Mlp changed = mlp;
  changed.dtype = DType::f16;
  EXPECT_FALSE(portable(changed, gpu("sm90")));
  changed.dtype = DType::f32;
  EXPECT_TRUE(portable(changed, gpu("sm90")));
  changed = mlp;
  changed.dim = 1537;
  EXPECT_TRUE(portable(changed, gpu("sm90")));
  changed.dim = 1540;
  EXPECT_TRUE(portable(changed, gpu("sm90")));
  changed = mlp;
  changed.hidden = 8961;
  EXPECT_TRUE(portable(changed, gpu("sm90")));

  GpuDescription old = gpu("sm80");
  old.major = 7;
  EXPECT_FALSE(choose_kernels(mlp, 300, old, {}).found);
}

TEST(ChooseKernels, OddAndTinyWidthsHaveKernels) {
  for (const char* generation : {"sm80", "sm90", "sm120"}) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const std::int64_t dim : {1, 3, 8, 17, 77, 200}) {
        for (const std::int64_t hidden : {1, 3, 8, 17, 77, 200}) {
          for (const bool gated : {false, true}) {
            const Mlp mlp{dim, hidden, Activation::silu, gated, true, dtype};
            for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
              const KernelPair pair = choose_kernels(mlp, 5, gpu(generation), {numerics, true});
              ASSERT_TRUE(pair.found) << to_string(mlp) << " on " << generation;
              EXPECT_GT(pair.first_us, 0);
              EXPECT_LT(pair.first_us, 100);
            }
          }
        }
      }
    }
  }
}

TEST(ChooseKernels, AClassRunsOnePair) {
  const Mlp mlp{1152, 4608, Activation::gelu_tanh, false, true, DType::bf16};
  for (std::int64_t least = 1; least < 5000; least = token_class(least).next) {
    const KernelPair a = choose_kernels(mlp, least, gpu("sm90"), {});
    const KernelPair b = choose_kernels(mlp, token_class(least).representative, gpu("sm90"), {});
    EXPECT_EQ(label(a.first), label(b.first));
    EXPECT_EQ(label(a.second), label(b.second));
    EXPECT_LE(a.first_us, b.first_us);
  }
}

TEST(ChooseKernels, ASmallerHopperIsSlower) {
  const Mlp mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  GpuDescription pcie = gpu("sm90");  // H100 PCIe: 114 multiprocessors, 756 of 989 TFLOP/s, 2.0 of 4.8 TB/s
  pcie.multiprocessors = 114;
  pcie.tensor_flops_per_s *= 756.0 / 989;
  pcie.memory_bytes_per_s *= 2.0 / 4.8;
  for (const std::int64_t tokens : {16, 256, 32760}) {
    const KernelPair big = choose_kernels(mlp, tokens, gpu("sm90"), {});
    const KernelPair small = choose_kernels(mlp, tokens, pcie, {});
    EXPECT_GT(small.first_us, big.first_us);
    EXPECT_GT(small.second_us, big.second_us);
  }
  const KernelPair big = choose_kernels(mlp, 32760, gpu("sm90"), {});
  const KernelPair small = choose_kernels(mlp, 32760, pcie, {});
  EXPECT_NEAR(small.first_us / big.first_us, 989.0 / 756, 0.1);
}

TEST(GpuPlan, RungsOfTheLibraryAndOfIngot) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  const Mlp plain{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  const auto made = plan(plain, 32760, h200);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.rung, Rung::two_kernel);
  EXPECT_EQ(made->chosen.launches, 2);
  EXPECT_EQ(made->chosen.bytes, traffic(plain, 32760, Rung::epilogue, false).bytes);
  ASSERT_EQ(made->kernels.size(), 2U);
  EXPECT_EQ(made->kernels[0].name, "fc1");
  EXPECT_EQ(made->kernels[1].name, "fc2");
  EXPECT_EQ(tile_text(*made), made->kernels[0].tile + ", " + made->kernels[1].tile);
  EXPECT_NEAR(made->chosen.forecast_us, made->kernels[0].forecast_us + made->kernels[1].forecast_us, 1);
  EXPECT_EQ(find(*made, Rung::one_pass).rejected, Rejection::not_on_device);
  EXPECT_GT(find(*made, Rung::epilogue).forecast_us, 0);
  EXPECT_GT(find(*made, Rung::unfused).forecast_us, find(*made, Rung::epilogue).forecast_us);
  EXPECT_GT(find(*made, Rung::matmul_add).forecast_us, find(*made, Rung::unfused).forecast_us);

  const Mlp gated{640, 2560, Activation::gelu_tanh, true, true, DType::bf16};
  EXPECT_EQ(find(*plan(gated, 100, h200), Rung::epilogue).rejected, Rejection::no_library_epilogue);
  const Mlp erf{640, 2560, Activation::gelu_erf, false, true, DType::bf16};
  EXPECT_EQ(find(*plan(erf, 100, h200), Rung::epilogue).rejected, Rejection::no_library_epilogue);
  const Mlp relu{640, 2560, Activation::relu, false, true, DType::bf16};
  EXPECT_NE(find(*plan(relu, 100, h200), Rung::epilogue).rejected, Rejection::no_library_epilogue);

  const auto nothing = plan(plain, 0, h200);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(is_compiled_rung(nothing->chosen.rung));
}

TEST(GpuPlan, WithoutTheLibraryItsRungsArePricedButOut) {
  DeviceDescription h200 = describe_gpu("sm90").value();
  h200.gpu.library = false;
  const Mlp mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};
  for (const std::int64_t tokens : {1, 256, 1024, 32760}) {
    const auto made = plan(mlp, tokens, h200);
    ASSERT_TRUE(made);
    EXPECT_TRUE(is_compiled_rung(made->chosen.rung));
    EXPECT_EQ(find(*made, Rung::unfused).rejected, Rejection::no_library);
    EXPECT_GT(find(*made, Rung::unfused).forecast_us, 0);
  }
  const auto forced = plan(mlp, 1, h200, {.numerics = {}, .rung = Rung::unfused});
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().code, ErrorCode::unsupported);
  EXPECT_THAT(forced.error().message, testing::HasSubstr("the vendor's library is not at hand"));
}

TEST(GpuPlan, TheLibraryIsTakenWhereItIsForecastClearlyFaster) {
  DeviceDescription device = describe_gpu("sm90").value();
  const Mlp mlp{4096, 16384, Activation::gelu_tanh, false, true, DType::bf16};
  // Misaligned tensors: Ingot's slow path against a library that copes.
  const auto made =
      plan(mlp, 8192, device, {.numerics = Numerics::match, .rung = {}, .packed = false, .aligned = false});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.rung, Rung::epilogue);
  EXPECT_TRUE(made->kernels.empty());
  EXPECT_EQ(tile_text(*made), "");
  EXPECT_EQ(find(*made, Rung::two_kernel).rejected, Rejection::slower);
  for (const KnownModel& model : known_models()) {
    for (const std::int64_t tokens : token_counts()) {
      const auto any = plan(model.mlp, tokens, device);
      ASSERT_TRUE(any);
      for (const Candidate& c : any->candidates) {
        if (c.rejected == Rejection::slower) {
          EXPECT_GE(c.forecast_us, any->chosen.forecast_us);
        }
        if (c.rejected != Rejection::within_model_error) continue;
        EXPECT_LT(c.forecast_us, any->chosen.forecast_us);
        EXPECT_GT(1.1 * c.forecast_us, any->chosen.forecast_us);
      }
    }
  }
}

TEST(GpuPlan, RefusesADescriptionItCannotPlanWith) {
  const Mlp mlp{64, 256, Activation::relu, false, true, DType::bf16};
  DeviceDescription bad = describe_gpu("sm90").value();
  bad.gpu.multiprocessors = 0;
  EXPECT_EQ(plan(mlp, 1, bad).error().message, "multiprocessors: 0 is not accepted, give 1 or more");
  bad = describe_gpu("sm90").value();
  bad.gpu.launch_s = 0;
  EXPECT_EQ(plan(mlp, 1, bad).error().message, "launch_s: 0 is not accepted, give a rate");
  EXPECT_EQ(describe_gpu("sm90a").error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(describe_gpu("sm90a").error().message, testing::HasSubstr("did you mean 'sm90'?"));
  const std::set<std::string_view> names(gpu_generations().begin(), gpu_generations().end());
  EXPECT_EQ(names, (std::set<std::string_view>{"sm80", "sm86", "sm89", "sm90", "sm100", "sm120"}));
}

}  // namespace
}  // namespace ingot
