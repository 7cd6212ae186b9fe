// SPDX-License-Identifier: Apache-2.0
//
// What must come out of the recorded traces. The programs behind them are known, so every expected value here
// is a fact about a program (its shapes, its kernels per call), not a copy of output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "ingot/diff.h"
#include "ingot/explain.h"

namespace ingot {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

trace::Trace recorded(const std::string& name) {
  Result<trace::Trace> trace = trace::read_file(std::string(INGOT_EXAMPLE_TRACES) + "/" + name + ".json.gz");
  if (!trace) {
    ADD_FAILURE() << trace.error().message;
    return {};
  }
  return *std::move(trace);
}

Explanation explained(const std::string& name, const std::string& expect = "") {
  const trace::Trace trace = recorded(name);
  Result<Explanation> explanation = explain(trace, {.expect = expect});
  if (!explanation) {
    ADD_FAILURE() << explanation.error().message;
    return {};
  }
  return *std::move(explanation);
}

const Finding* finding(const Explanation& e, std::string_view id) {
  const auto at =
      std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return f.id == id; });
  return at == e.findings.end() ? nullptr : &*at;
}

const Region* region(const Explanation& e, std::string_view name) {
  const auto at =
      std::find_if(e.regions.begin(), e.regions.end(), [&](const Region& r) { return r.name == name; });
  return at == e.regions.end() ? nullptr : &*at;
}

TEST(Recorded, EagerGegluIsOneGatedMlp) {
  const Explanation e = explained("geglu_64x128x768x3072_eager");
  EXPECT_THAT(e.device, Optional(std::string("NVIDIA H200")));
  ASSERT_EQ(e.mlps.size(), 1U);
  const MlpRow& mlp = e.mlps[0];
  EXPECT_EQ(mlp.activation, "gelu_tanh");
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(mlp.packed, Optional(false));
  EXPECT_THAT(mlp.bias, Optional(false));
  EXPECT_THAT(mlp.tokens, Optional(8192));
  EXPECT_THAT(mlp.dim, Optional(768));
  EXPECT_THAT(mlp.hidden, Optional(3072));
  EXPECT_THAT(mlp.dtype, Optional(std::string("bf16")));
  EXPECT_EQ(mlp.calls, 3U);
  EXPECT_THAT(mlp.kernels_per_call, Optional(5.0));
  EXPECT_EQ(mlp.memsets_per_call, 2.0);
  EXPECT_EQ(mlp.evidence, "shapes");
  EXPECT_THAT(mlp.region, Optional(std::string("mlp_fwd")));
  ASSERT_TRUE(mlp.bytes_per_call && mlp.fused_bytes_per_call && mlp.fused_us_estimate && mlp.gpu_us_per_call);
  EXPECT_NEAR(static_cast<double>(*mlp.bytes_per_call), 454.6e6, 4.5e6);
  EXPECT_NEAR(static_cast<double>(*mlp.fused_bytes_per_call), 39.3e6, 0.39e6);
  // 6·8192·768·3072 FLOP at 80 % of the card's 989.4 TFLOP/s, plus a launch of 2 us.
  EXPECT_NEAR(*mlp.fused_us_estimate, 148.5, 0.5);
  EXPECT_GT(*mlp.gpu_us_per_call, *mlp.fused_us_estimate);
}

TEST(Recorded, WithoutShapesTheStructureStaysAndDimensionsAreUnknown) {
  const Explanation e = explained("geglu_64x128x768x3072_eager_noshapes");
  ASSERT_EQ(e.mlps.size(), 1U);
  const MlpRow& mlp = e.mlps[0];
  EXPECT_EQ(mlp.activation, "gelu_tanh");
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(mlp.bias, Optional(false));
  EXPECT_EQ(mlp.calls, 3U);
  EXPECT_THAT(mlp.kernels_per_call, Optional(5.0));
  EXPECT_EQ(mlp.evidence, "names");
  EXPECT_FALSE(mlp.tokens || mlp.dim || mlp.hidden || mlp.bytes_per_call || mlp.fused_bytes_per_call ||
               mlp.fused_us_estimate);
}

TEST(Recorded, PythonStacksChangeNothing) {
  const Explanation e = explained("geglu_64x128x768x3072_eager_stack");
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].calls, 3U);
  EXPECT_THAT(e.mlps[0].tokens, Optional(8192));
  EXPECT_THAT(e.mlps[0].kernels_per_call, Optional(5.0));
}

TEST(Recorded, CompiledGegluFusesThePointwiseOperatorsOnly) {
  const Explanation e = explained("geglu_64x128x768x3072_compile");
  ASSERT_EQ(e.mlps.size(), 1U);
  const MlpRow& mlp = e.mlps[0];
  EXPECT_EQ(mlp.activation, "gelu");  // the compiler's name does not say which form
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(mlp.tokens, Optional(8192));
  EXPECT_THAT(mlp.hidden, Optional(3072));
  EXPECT_THAT(mlp.kernels_per_call, Optional(4.0));
  // Two GEMM results read and the hidden tensor written once, instead of gelu and mul apart.
  const std::uint64_t x = 8192 * 768, w = 768 * 3072, h = 8192 * 3072;
  EXPECT_THAT(mlp.bytes_per_call, Optional(2 * (3 * x + 3 * w + 3 * h + 3 * h) + 8));
  const auto fused = std::find_if(e.kernels.begin(), e.kernels.end(),
                                  [](const KernelRow& k) { return k.fused.size() == 2; });
  ASSERT_NE(fused, e.kernels.end());
  EXPECT_THAT(fused->fused, ElementsAre("gelu", "mul"));
}

TEST(Recorded, DiffOfEagerAndCompiledNamesTheIdenticalGemms) {
  const Diff d =
      diff(recorded("geglu_64x128x768x3072_eager"), recorded("geglu_64x128x768x3072_compile")).value();
  EXPECT_EQ(d.basis, "ProfilerStep");
  std::vector<std::string> same;
  for (const DiffCount& kernel : d.kernels_identical) same.push_back(kernel.name);
  EXPECT_THAT(same, Contains("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"));
  EXPECT_THAT(same, Contains("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT"));
  ASSERT_EQ(d.replacements.size(), 1U);
  EXPECT_EQ(d.replacements[0].what, "fused");
  EXPECT_EQ(d.replacements[0].before.size(), 2U);
  for (const DiffRegion& r : d.regions) {
    if (r.name != "mlp_fwd") continue;
    EXPECT_EQ(r.kernels_before, 5);
    EXPECT_EQ(r.kernels_after, 4);
    EXPECT_EQ(r.launches_before, 7);
    EXPECT_EQ(r.launches_after, 6);
  }
}

TEST(Recorded, SmallReluMlpIsOverheadBound) {
  const Explanation e = explained("relu_mlp_1024x256x1024_eager");
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].activation, "relu");
  EXPECT_FALSE(e.mlps[0].gated);
  EXPECT_THAT(e.mlps[0].bias, Optional(true));
  EXPECT_THAT(e.mlps[0].tokens, Optional(1024));
  EXPECT_THAT(e.mlps[0].dim, Optional(256));
  EXPECT_THAT(e.mlps[0].hidden, Optional(1024));
  EXPECT_THAT(e.mlps[0].kernels_per_call, Optional(3.0));
  ASSERT_NE(region(e, "ProfilerStep"), nullptr);
  EXPECT_EQ(region(e, "ProfilerStep")->verdict, Verdict::overhead_bound);
  EXPECT_EQ(e.summary.verdict, Verdict::overhead_bound);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].id, "overhead-bound");
  EXPECT_NE(finding(e, "unfused-mlp"), nullptr);
  const Explanation compiled = explained("relu_mlp_1024x256x1024_compile");
  ASSERT_EQ(compiled.mlps.size(), 1U);
  EXPECT_EQ(compiled.mlps[0].activation, "relu");
  EXPECT_THAT(compiled.mlps[0].hidden, Optional(1024));
}

TEST(Recorded, OneLinearIsNoMlpAndCompilingItOnlyRemovesTheTranspose) {
  for (const char* name : {"linear_1024x32x64_eager", "linear_1024x32x64_compile"}) {
    const Explanation e = explained(name);
    EXPECT_TRUE(e.mlps.empty()) << name;
    ASSERT_NE(region(e, "linear_fwd"), nullptr) << name;
    EXPECT_EQ(region(e, "linear_fwd")->kernels_per_call, 1) << name;
  }
  const Diff d = diff(recorded("linear_1024x32x64_eager"), recorded("linear_1024x32x64_compile")).value();
  std::vector<std::string> gone;
  for (const DiffCount& op : d.ops_gone) gone.push_back(op.name);
  EXPECT_THAT(gone, Contains("aten::t"));
  ASSERT_EQ(d.kernels_identical.size(), 1U);
  EXPECT_EQ(d.kernels_identical[0].name, "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_bias_TNT");
  EXPECT_TRUE(d.kernels_gone.empty() && d.kernels_new.empty());
}

TEST(Recorded, FirstStepOfAColdProcessIsFound) {
  const Explanation cold = explained("matmul_add_64_cold_eager");  // steps of 183, 68 and 62 us
  ASSERT_NE(finding(cold, "cold-first-step"), nullptr);
  EXPECT_THAT(finding(cold, "cold-first-step")->saving_us, Optional(testing::DoubleNear(117.8, 0.2)));
  const Explanation warm = explained("geglu_1x16x768x3072_eager");  // 412, 400 and 362 us
  EXPECT_EQ(finding(warm, "cold-first-step"), nullptr);
}

TEST(Recorded, CompiledMatmulAddCopiesItsBias) {
  const Explanation e = explained("matmul_add_64_compile");
  ASSERT_NE(finding(e, "bias-copy"), nullptr);
  EXPECT_THAT(finding(e, "bias-copy")->detail, HasSubstr("3 copies"));
}

TEST(Recorded, LargeMatmulIsComputeBoundWithItsShareOfThePeak) {
  const Explanation e = explained("matmul_add_4096_eager");
  EXPECT_EQ(e.summary.verdict, Verdict::compute_bound);
  ASSERT_FALSE(e.kernels.empty());
  const KernelRow& gemm = e.kernels[0];
  ASSERT_TRUE(gemm.gemm && gemm.tflops && gemm.peak_share && gemm.bytes);
  EXPECT_EQ(gemm.gemm->m, 4096);
  EXPECT_EQ(gemm.gemm->n, 4096);
  EXPECT_EQ(gemm.gemm->k, 4096);
  EXPECT_EQ(*gemm.bytes, 3U * 4096 * 4096 * 2);
  EXPECT_NEAR(*gemm.tflops, 2.0 * 4096 * 4096 * 4096 / gemm.median_us * 1e-6, 0.01);
  EXPECT_GT(*gemm.peak_share, 0.5);
  EXPECT_LT(*gemm.peak_share, 1.0);
}

TEST(Recorded, PackedGegluHasOneProjectionForGateAndUp) {
  const Explanation e = explained("geglu_packed_28x4608x320x1280_eager");
  ASSERT_EQ(e.mlps.size(), 1U);
  const MlpRow& mlp = e.mlps[0];
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(mlp.packed, Optional(true));
  EXPECT_EQ(mlp.activation, "gelu_erf");
  EXPECT_THAT(mlp.bias, Optional(true));
  EXPECT_THAT(mlp.tokens, Optional(129024));
  EXPECT_THAT(mlp.dim, Optional(320));
  EXPECT_THAT(mlp.hidden, Optional(1280));
  EXPECT_THAT(mlp.kernels_per_call, Optional(4.0));
  // The trace begins inside a step before the first one: its last kernel has no launch call.
  EXPECT_NE(finding(e, "incomplete-trace"), nullptr);
}

TEST(Recorded, DiffusionTransformerHasEightMlpsAStepInEveryForm) {
  for (const char* name : {"dit_8x1152_b2_n256_eager", "dit_8x1152_b2_n256_compile"}) {
    const Explanation e = explained(name);
    ASSERT_EQ(e.mlps.size(), 1U) << name;
    const MlpRow& mlp = e.mlps[0];
    EXPECT_EQ(mlp.calls, 16U) << name;
    EXPECT_THAT(mlp.calls_per_region_call, Optional(8.0)) << name;
    EXPECT_THAT(mlp.tokens, Optional(512)) << name;
    EXPECT_THAT(mlp.dim, Optional(1152)) << name;
    EXPECT_THAT(mlp.hidden, Optional(4608)) << name;
    EXPECT_THAT(mlp.bias, Optional(true)) << name;
    EXPECT_EQ(mlp.evidence, "shapes") << name;
  }
}

TEST(Recorded, ReplayCutOffAtTheStartBelongsToNoStep) {
  const Explanation e = explained("dit_8x1152_b2_n256_cudagraph");
  ASSERT_EQ(e.mlps.size(), 2U);
  for (const MlpRow& mlp : e.mlps) {
    EXPECT_EQ(mlp.evidence, "names");
    EXPECT_EQ(mlp.activation, "gelu");
    EXPECT_FALSE(mlp.gated);
    EXPECT_THAT(mlp.bias, Optional(true));  // the library writes its bias epilogue into the kernel's name
    EXPECT_FALSE(mlp.tokens || mlp.dim || mlp.hidden);
    EXPECT_THAT(mlp.kernels_per_call, Optional(3.0));
  }
  EXPECT_EQ(e.mlps[0].calls, 16U);
  EXPECT_THAT(e.mlps[0].calls_per_region_call, Optional(8.0));
  EXPECT_EQ(e.mlps[1].calls, 4U);
  EXPECT_FALSE(e.mlps[1].region.has_value());
  EXPECT_NE(finding(e, "incomplete-trace"), nullptr);
}

TEST(Recorded, TwentyStepsOfASmallDiffusionTransformer) {
  const Explanation e = explained("dit_24x768_n64_20steps_eager");
  EXPECT_EQ(e.events, 88927U);
  EXPECT_EQ(e.skipped_events, 0U);
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].calls, 480U);
  EXPECT_THAT(e.mlps[0].calls_per_region_call, Optional(24.0));
  EXPECT_THAT(e.mlps[0].kernels_per_call, Optional(4.0));  // the second linear is split along K
  ASSERT_NE(region(e, "ProfilerStep"), nullptr);
  EXPECT_EQ(region(e, "ProfilerStep")->calls, 20U);
  EXPECT_EQ(region(e, "ProfilerStep")->kernels_per_call, 480);
  EXPECT_EQ(region(e, "ProfilerStep")->verdict, Verdict::overhead_bound);
  EXPECT_NE(finding(e, "split-k"), nullptr);
  EXPECT_NE(finding(e, "metadata-operators"), nullptr);
}

TEST(Recorded, ExpectationIsMetOrTheDifferenceIsNamed) {
  const Explanation met = explained("geglu_64x128x768x3072_eager", "3 linear, 1 gelu_tanh, 1 mul");
  ASSERT_TRUE(met.expectation);
  EXPECT_TRUE(met.expectation->met);
  const Explanation with_memsets =
      explained("geglu_64x128x768x3072_eager", "mlp_fwd: 3 gemm, 1 gelu, 1 mul, 2 memset");
  ASSERT_TRUE(with_memsets.expectation);
  EXPECT_TRUE(with_memsets.expectation->met);
  EXPECT_EQ(with_memsets.expectation->region, "mlp_fwd");

  const Explanation not_met = explained("geglu_64x128x768x3072_eager", "2 linear, 1 silu, 1 mul");
  ASSERT_TRUE(not_met.expectation);
  EXPECT_FALSE(not_met.expectation->met);
  std::vector<std::string> differences;
  for (const Expectation::Item& item : not_met.expectation->items) {
    if (item.expected != item.found)
      differences.push_back(item.what + " " + std::to_string(static_cast<int>(item.found - item.expected)));
  }
  EXPECT_THAT(differences, testing::UnorderedElementsAre("linear 1", "silu -1", "gelu_tanh 1"));
}

TEST(Recorded, ExpectationThatCannotBeReadIsAUsageError) {
  const trace::Trace trace = recorded("linear_1024x32x64_eager");
  for (const char* text : {"three linear", "3", "linear", "3 linear,", "-1 linear", "1 linear, 2 linear",
                           "nowhere: 1 linear", "1 a b", ":"}) {
    const Result<Explanation> e = explain(trace, {.expect = text});
    ASSERT_FALSE(e) << text;
    EXPECT_EQ(e.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_THAT(e.error().message, HasSubstr("--expect")) << text;
  }
}

// Traces of other people, read where they lie; the tests skip where they are not.
class Public : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(INGOT_PUBLIC_TRACES)) GTEST_SKIP() << "no folder of public traces";
  }
  static Explanation explained(const std::string& name) {
    Result<trace::Trace> trace = trace::read_file(std::string(INGOT_PUBLIC_TRACES) + "/" + name + ".json.gz");
    if (!trace) {
      ADD_FAILURE() << trace.error().message;
      return {};
    }
    return explain(*trace).value();
  }
};

TEST_F(Public, BertHasFourMlps) {
  const Explanation e = explained("tracelens__h100_bert_small");
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].calls, 4U);
  EXPECT_THAT(e.mlps[0].tokens, Optional(141));
  EXPECT_THAT(e.mlps[0].dim, Optional(512));
  EXPECT_THAT(e.mlps[0].hidden, Optional(2048));
  EXPECT_EQ(e.mlps[0].activation, "gelu_erf");
  EXPECT_THAT(e.mlps[0].bias, Optional(true));
}

TEST_F(Public, TimesformerHasTwelveMlpsAndMisalignedAttention) {
  const Explanation e = explained("tracelens__h100_timesformer");
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].calls, 12U);
  EXPECT_THAT(e.mlps[0].tokens, Optional(25089));
  EXPECT_THAT(e.mlps[0].dim, Optional(768));
  EXPECT_THAT(e.mlps[0].hidden, Optional(3072));
  ASSERT_NE(finding(e, "misaligned-gemm"), nullptr);  // 3137 tokens: odd rows, kernels of align1
  EXPECT_THAT(finding(e, "misaligned-gemm")->title, HasSubstr("1 element"));
}

TEST_F(Public, CompiledLlamaBlockOnRocm) {
  const Explanation e = explained("tracelens__compile_triton");
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].activation, "silu");
  EXPECT_TRUE(e.mlps[0].gated);
  EXPECT_THAT(e.mlps[0].tokens, Optional(32768));
  EXPECT_THAT(e.mlps[0].dim, Optional(2048));
  EXPECT_THAT(e.mlps[0].hidden, Optional(8192));
}

TEST_F(Public, OtherDevicesAndPartialTracesClaimNothingTheyCannotKnow) {
  for (const char* name :
       {"hta__cpu_only", "hta__mi250_rocm62", "hta__mtia_inference", "tracelens__mi210_gpu_only",
        "hta__event_sync_3_streams", "hta__cupti_ranges", "hta__triton_example", "hta__ns_resolution",
        "tracelens__mi300_vllm_graph_decode", "tracelens__b200_vllm_prefill"}) {
    const Explanation e = explained(name);
    EXPECT_GT(e.events, 0U) << name;
    EXPECT_EQ(e.skipped_events, 0U) << name;
    EXPECT_TRUE(e.mlps.empty()) << name;
  }
  for (const char* name :
       {"hta__cpu_only", "hta__mtia_inference", "hta__cupti_ranges", "hta__no_distributed_info"}) {
    const Explanation e = explained(name);
    EXPECT_EQ(e.summary.verdict, Verdict::unknown) << name;
    EXPECT_EQ(e.summary.kernels, 0U) << name;
    EXPECT_TRUE(e.zero_launch_ops.empty()) << name;
    for (const MlpRow& mlp : e.mlps) {
      EXPECT_EQ(mlp.evidence, "shapes") << name;
      EXPECT_FALSE(mlp.gpu_us_per_call || mlp.kernels_per_call || mlp.fused_us_estimate) << name;
    }
  }
}

TEST_F(Public, ThreeStreamsAreAUnionNotASum) {
  const Explanation e = explained("hta__event_sync_3_streams");
  EXPECT_EQ(e.summary.kernels, 3U);
  // Three kernels of 123 us each and three memsets of 1 us, none of which overlap.
  EXPECT_NEAR(e.summary.gpu_busy_us, 372, 0.5);
}

}  // namespace
}  // namespace ingot
