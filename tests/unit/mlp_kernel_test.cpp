// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a whole MLP: labels, texts, which are legal, and when one is taken instead of two.
#include "plan/mlp_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "jit/kernel.h"
#include "plan/choose.h"
#include "plan/tuning.h"

namespace ingot {
namespace {

const Mlp narrow{320, 1280, Activation::gelu_erf, true, true, DType::bf16};
const Mlp small{256, 1024, Activation::relu, false, true, DType::bf16};
/// Wider than registers and a cluster's shared memory hold.
const Mlp wide{8192, 28672, Activation::silu, true, false, DType::bf16};

GpuDescription gpu(std::string_view generation) {
  return describe_gpu(generation).value().gpu;
}
const Candidate& find(const Plan& plan, Rung rung) {
  return plan.candidates[static_cast<std::size_t>(rung)];
}

/// With its fields 1, 2, 3 …
template <class Tile>
Tile counted() {
  Tile tile{};
  int value = 0;
  for (const auto field : Tile::fields) tile.*field = ++value;
  return tile;
}
std::string counted_fields(std::size_t count, const char* between) {
  std::string out;
  for (std::size_t i = 1; i <= count; ++i) out += (out.empty() ? "" : between) + std::to_string(i);
  return out;
}

template <class Tile>
class WholeMlp : public testing::Test {};
using Tiles = testing::Types<sm90::NarrowTile, sm90::ClusterTile>;
TYPED_TEST_SUITE(WholeMlp, Tiles);

TYPED_TEST(WholeMlp, LabelsNameEveryField) {
  const MlpTile tile = counted<TypeParam>();
  const std::string name = label(tile);
  EXPECT_EQ(name, TypeParam::letter + counted_fields(std::size(TypeParam::fields), "x"));
  EXPECT_EQ(sizeof(TypeParam), sizeof(int) * std::size(TypeParam::fields))
      << "a field has no place in labels";
  const auto parsed = parse_mlp_tile(name);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(label(*parsed), name);
  EXPECT_FALSE(parse_mlp_tile(name + "x1"));
  EXPECT_FALSE(parse_mlp_tile(name.substr(0, name.rfind('x'))));
  EXPECT_FALSE(parse_mlp_tile(name + " "));
}

TEST(WholeMlpLabels, ZeroIsANumberAndRubbishIsNone) {
  sm90::NarrowTile tile{};
  EXPECT_TRUE(parse_mlp_tile(label(MlpTile(tile))));
  std::set<std::string> letters;
  for (const char* text : {"", "n", "c", "g2x1x256s3c21", "n1x-1", "n01x1", "nx", "x1", "pair"})
    EXPECT_FALSE(parse_mlp_tile(text)) << text;
}

TYPED_TEST(WholeMlp, TextsNameTheMlpAndTheTile) {
  constexpr bool is_narrow = std::is_same_v<TypeParam, sm90::NarrowTile>;
  MlpSpec spec = mlp_spec(narrow, false, Numerics::match);
  spec.down_bias = false;
  const MlpTile tile = counted<TypeParam>();
  const jit::KernelText kernel = jit::kernel_text(spec, tile, {9, 0, true});
  EXPECT_EQ(kernel.name, std::string("bf16_match_gelu_erf_320to1280to320_gated") +
                             (is_narrow ? "_upfirst" : "") + "_upbias__" + label(tile));
  const std::string shape = is_narrow ? "NarrowShape" : "ClusterShape";
  // Element, chain, rounds, dim, hidden, gated, gate first where it makes another kernel, up and down bias.
  const std::string arguments =
      "using Shape = ingot::sm90::" + shape +
      "<ingot::device::bf16, ingot::device::Chain<ingot::device::Activate<ingot::activation::gelu_erf, "
      "ingot::device::bf16>, ingot::device::RoundActivated<ingot::device::bf16>, ingot::device::Multiply>, "
      "true, 320, 1280, true, " +
      (is_narrow ? "false, " : "") + "true, false, " + counted_fields(std::size(TypeParam::fields), ", ") +
      ">;\n";
  EXPECT_NE(kernel.text.find(arguments), std::string::npos) << kernel.text << arguments;
  EXPECT_TRUE(kernel.text.starts_with(is_narrow ? "#include \"sm90/narrow.cuh\"\n"
                                                : "#include \"sm90/cluster.cuh\"\n"));
  EXPECT_NE(kernel.text.find(is_narrow ? "ingot::sm90::Narrow<Shape>" : "ingot::sm90::Cluster<Shape>"),
            std::string::npos);
  EXPECT_EQ(kernel.threads, threads(std::get<TypeParam>(tile)));
  EXPECT_EQ(kernel.cluster, blocks_in_cluster(std::get<TypeParam>(tile)));
  EXPECT_EQ(kernel.shared_bytes, shared_bytes(spec, tile));

  spec.numerics = Numerics::fast;
  const std::string fast = jit::kernel_text(spec, tile, {9, 0, true}).text;
  EXPECT_NE(fast.find("ingot::device::Multiply>, false, 320, 1280"), std::string::npos) << fast;
  EXPECT_EQ(fast.find("RoundActivated"), std::string::npos);

  const MlpSpec gate_first = mlp_spec(narrow, true, Numerics::match),
                up_first = mlp_spec(narrow, false, Numerics::match);
  EXPECT_EQ(jit::kernel_text(gate_first, tile, {9, 0, true}).text ==
                jit::kernel_text(up_first, tile, {9, 0, true}).text,
            !is_narrow);
}

TEST(WholeMlpKernels, OnHopperInSixteenBitsOnAlignedTensorsOnly) {
  const auto why = [](const Mlp& mlp, std::string_view generation, bool aligned = true) {
    const MlpSpec spec = mlp_spec(mlp, true, Numerics::match, aligned);
    const KernelOptions options{.numerics = Numerics::match, .aligned = aligned};
    const std::string reason = why_no_mlp_kernel(spec, gpu(generation));
    EXPECT_EQ(reason.empty(), choose_mlp_kernel(mlp, 64, gpu(generation), options).found);
    EXPECT_EQ(reason.empty(), !rank_mlp_kernels(spec, 64, gpu(generation), 100).empty());
    return reason;
  };
  EXPECT_EQ(why(narrow, "sm90"), "");
  EXPECT_EQ(why(small, "sm90"), "");
  for (const char* other : {"sm80", "sm89", "sm100", "sm120"})
    EXPECT_EQ(why(narrow, other), "compute capability 9.0 only");
  Mlp f32 = narrow;
  f32.dtype = DType::f32;
  EXPECT_EQ(why(f32, "sm90"), "16-bit types only");
  EXPECT_EQ(why(narrow, "sm90", false), "tensors, row strides and widths are multiples of 16 bytes");
  Mlp odd = narrow;
  odd.hidden = 1284;
  EXPECT_EQ(why(odd, "sm90"), "tensors, row strides and widths are multiples of 16 bytes");
  EXPECT_THAT(why(wide, "sm90"), testing::MatchesRegex("narrow: .+; cluster: .+"));
}

TEST(WholeMlpKernels, TheBestForecastIsTakenAndRankedFirst) {
  const GpuDescription h200 = gpu("sm90");
  for (const Mlp& mlp : {narrow, small}) {
    const MlpSpec spec = mlp_spec(mlp, true, Numerics::match);
    for (const std::int64_t tokens : {1, 64, 1000, 16384, 129024}) {
      const MlpPick pick = choose_mlp_kernel(mlp, tokens, h200, {});
      ASSERT_TRUE(pick.found);
      EXPECT_FALSE(pick.tuned);
      EXPECT_DOUBLE_EQ(pick.us, forecast_us(spec, pick.tile, tokens, h200));
      const std::int64_t of_class = token_class(tokens).representative;
      const auto ranked = rank_mlp_kernels(spec, tokens, h200, 100);
      EXPECT_EQ(label(ranked.front()), label(pick.tile));
      EXPECT_EQ(rank_mlp_kernels(spec, tokens, h200, 1).size(), 1U);
      double before = 0;
      std::set<std::string> labels;
      for (const MlpTile& tile : ranked) {
        EXPECT_EQ(reject(spec, tile, h200), "");
        EXPECT_TRUE(labels.insert(label(tile)).second) << "twice: " << label(tile);
        const double us = forecast_us(spec, tile, of_class, h200);
        EXPECT_GE(us, before);
        before = us;
      }
    }
  }
}

TEST(Route, TheSmallerForecastOfTheClassDecides) {
  const GpuDescription h200 = gpu("sm90");
  for (const Mlp& mlp : {narrow, small, wide}) {
    for (std::int64_t tokens = 1; tokens < 200000; tokens = tokens * 9 / 8 + 1) {
      const std::int64_t of_class = token_class(tokens).representative;
      const KernelRoute route = choose_route(mlp, tokens, h200, {}),
                        whole = choose_route(mlp, of_class, h200, {});
      EXPECT_TRUE(route.found());
      EXPECT_FALSE(route.measured);
      EXPECT_EQ(route.takes_one, whole.takes_one);
      EXPECT_EQ(whole.takes_one, whole.one.found && whole.one.us <= whole.pair_us) << tokens;
      EXPECT_LT(route.pair_us, route.pair.first_us + route.pair.second_us) << "the second starts early";
      EXPECT_TRUE(choose_route(mlp, tokens, h200, {}, Rung::two_kernel).found());
      EXPECT_FALSE(choose_route(mlp, tokens, h200, {}, Rung::two_kernel).takes_one);
      EXPECT_TRUE(choose_route(mlp, tokens, h200, {}, Rung::one_kernel).takes_one);
      EXPECT_EQ(choose_route(mlp, tokens, h200, {}, Rung::one_kernel).found(), route.one.found);
    }
  }
}

TEST(Route, WhatWasMeasuredComesFirst) {
  const GpuDescription h200 = gpu("sm90");
  const MlpSpec spec = mlp_spec(narrow, true, Numerics::match);
  const auto tiles = rank_mlp_kernels(spec, 1000, h200, 100);
  const std::int64_t of_class = token_class(1000).representative;
  for (const MlpTile& tile : tiles) {
    TuningTable table("", "");
    table.add(TunedMlp{spec, of_class, tile, 1});
    const KernelRoute route = choose_route(narrow, 1000, h200, {.tuned = &table});
    EXPECT_TRUE(route.takes_one && route.measured && route.one.tuned);
    EXPECT_EQ(label(route.one.tile), label(tile));
    EXPECT_FALSE(choose_route(narrow, 1000, h200, {.tuned = &table}, Rung::two_kernel).takes_one);
    EXPECT_FALSE(choose_route(narrow, of_class + 1, h200, {.tuned = &table}).measured);
  }
  TuningTable pair("", "");
  pair.add(TunedMlp{spec, of_class, std::nullopt, 1});
  const KernelRoute route = choose_route(narrow, 1000, h200, {.tuned = &pair});
  EXPECT_TRUE(!route.takes_one && route.measured);
  const KernelRoute asked = choose_route(narrow, 1000, h200, {.tuned = &pair}, Rung::one_kernel);
  EXPECT_TRUE(asked.takes_one && asked.found());

  // Of another version: a tile that is on no list any more.
  TuningTable old("", "");
  old.add(TunedMlp{spec, of_class, MlpTile(sm90::NarrowTile{}), 1});
  const KernelRoute without = choose_route(narrow, 1000, h200, {.tuned = &old});
  EXPECT_FALSE(without.measured);
  EXPECT_EQ(without.takes_one, choose_route(narrow, 1000, h200, {}).takes_one);
}

TEST(PlanOneKernel, IsACandidateBesideTwo) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  for (const std::int64_t tokens : {1, 100, 1000, 8192, 129024}) {
    const auto made = plan(narrow, tokens, h200);
    ASSERT_TRUE(made);
    const Candidate &one = find(*made, Rung::one_kernel), &two = find(*made, Rung::two_kernel);
    const KernelRoute route = choose_route(narrow, tokens, h200.gpu, {});
    EXPECT_DOUBLE_EQ(one.forecast_us, route.one.us);
    EXPECT_DOUBLE_EQ(two.forecast_us, route.pair_us);
    EXPECT_EQ(one.launches, 1);
    EXPECT_EQ(one.bytes, least_bytes(narrow, tokens));
    EXPECT_EQ(one.detail, "");
    EXPECT_EQ(one.rejected == Rejection::none, route.takes_one);
    EXPECT_EQ(two.rejected == Rejection::none, !route.takes_one);
    EXPECT_EQ(made->kernels.size(), route.takes_one ? 1U : 2U);
    if (route.takes_one) {
      EXPECT_EQ(made->kernels[0].name, "mlp");
      EXPECT_EQ(made->kernels[0].tile, label(route.one.tile));
      EXPECT_EQ(tile_text(*made), label(route.one.tile));
    }
  }
}

TEST(PlanOneKernel, CanBeAskedForAndSaysWhyNot) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  PlanOptions options;
  options.rung = Rung::one_kernel;
  const auto made = plan(small, 300, h200, options);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->chosen.rung, Rung::one_kernel);
  EXPECT_EQ(find(*made, Rung::two_kernel).rejected, Rejection::not_asked_for);
  ASSERT_EQ(made->kernels.size(), 1U);
  options.rung = Rung::two_kernel;
  EXPECT_EQ(find(*plan(small, 300, h200, options), Rung::one_kernel).rejected, Rejection::not_asked_for);

  options.rung = Rung::one_kernel;
  const auto refused = plan(wide, 300, h200, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message,
              testing::HasSubstr("one_kernel: no kernel takes the whole MLP (narrow: "));
  options.aligned = false;
  const auto unaligned = plan(small, 300, h200, options);
  ASSERT_FALSE(unaligned);
  EXPECT_THAT(unaligned.error().message, testing::HasSubstr("multiples of 16 bytes"));
  const auto without = plan(wide, 300, h200);
  ASSERT_TRUE(without);
  EXPECT_EQ(find(*without, Rung::one_kernel).rejected, Rejection::no_mlp_kernel);
  EXPECT_EQ(rejection_text(find(*without, Rung::one_kernel)),
            "no kernel takes the whole MLP (" + find(*without, Rung::one_kernel).detail + ")");
}

TEST(PlanOneKernel, AMeasuredLoserSaysSo) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  const MlpSpec spec = mlp_spec(narrow, true, Numerics::match);
  // So many that one kernel is forecast faster than the library, too.
  constexpr std::int64_t tokens = 100000;
  const std::int64_t of_class = token_class(tokens).representative;
  TuningTable table("", "");
  table.add(TunedMlp{spec, of_class, std::nullopt, 1});
  EXPECT_EQ(find(*plan(narrow, tokens, h200, {}, &table), Rung::one_kernel).rejected,
            Rejection::measured_slower);
  table.replace({.tiles = {}, .mlps = {{spec, of_class, rank_mlp_kernels(spec, tokens, h200.gpu, 1)[0], 1}}});
  const auto one = plan(narrow, tokens, h200, {}, &table);
  EXPECT_EQ(one->chosen.rung, Rung::one_kernel);
  EXPECT_EQ(find(*one, Rung::two_kernel).rejected, Rejection::measured_slower);
  EXPECT_TRUE(one->kernels[0].tuned);
}

}  // namespace
}  // namespace ingot
