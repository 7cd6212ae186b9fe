// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/kernel.h"
#include "jit/sources.h"

namespace ingot::jit {
namespace {

LinearSpec gelu() {
  LinearSpec linear;
  linear.out = 3072;
  linear.in = 768;
  linear.activation = Activation::gelu_tanh;
  linear.bias = true;
  return linear;
}

TEST(KernelText, Gemm) {
  const KernelText kernel = kernel_text(gelu(), sm90::GemmTile{2, 1, 256, 3, 2, 1, 1, true, 0}, {9, 0, true});
  EXPECT_EQ(kernel.name, "bf16_match_gelu_tanh_768to3072_bias__g2x1x256s3c21e");
  EXPECT_EQ(kernel.threads, 384);  // two warpgroups that multiply, one that loads
  // Three stages of (128 + 256) rows of 128 bytes, the tile in 16 bits, two bias buffers of 4 x 272 bytes, 15
  // barriers.
  EXPECT_EQ(kernel.shared_bytes, 3 * 384 * 128 + 128 * 256 * 2 + 2 * 4 * 272 + 15 * 8);
  EXPECT_EQ(kernel.cluster, 2);
  EXPECT_EQ(
      kernel.text,
      "#include \"sm90/gemm.cuh\"\n"
      "using Shape = ingot::sm90::GemmShape<ingot::device::bf16, "
      "ingot::device::Chain<ingot::device::Activate<ingot::activation::gelu_tanh, ingot::device::bf16>>, "
      "true, 3072, 768, false, true, true, 2, 1, 256, 3, 2, 1, 1, true, 0>;\n"
      "using Kernel = ingot::sm90::Gemm<Shape>;\n"
      "static_assert(Kernel::threads == 384 && Shape::shared.total == 215288, \"launch\");\n"
      "INGOT_KERNEL(ingot_kernel, Kernel)\n");
}

TEST(KernelText, ReluNeedsNoRoundingBeforeIt) {
  LinearSpec linear = gelu();
  linear.activation = Activation::relu;
  linear.numerics = Numerics::match;
  const sm90::FewTile tile{1, 1, 40, 12, 1, 1};
  const auto rounds = [&] {
    return kernel_text(linear, tile, {9, 0, true}).text.find(", true, 3072, 768") != std::string::npos;
  };
  EXPECT_FALSE(rounds());
  linear.activation = Activation::silu;
  EXPECT_TRUE(rounds());
  linear.activation = Activation::relu;
  linear.gated = true;
  EXPECT_TRUE(rounds());
}

TEST(KernelText, FewGatedRoundsTheActivation) {
  LinearSpec linear = gelu();
  linear.gated = true;
  linear.gate_first = false;
  linear.bias = false;
  linear.dtype = DType::f16;
  const sm90::FewTile tile{1, 1, 40, 12, 1, 1};
  const KernelText match = kernel_text(linear, tile, {9, 0, true});
  EXPECT_EQ(match.name, "f16_match_gelu_tanh_768to3072_gated_upfirst__f1x1x40s12");
  EXPECT_EQ(match.threads, 160);
  EXPECT_NE(match.text.find(
                "Activate<ingot::activation::gelu_tanh, ingot::device::f16>, "
                "ingot::device::RoundActivated<ingot::device::f16>, ingot::device::Multiply>, true, 3072, "
                "768, true, false, false, 1, 1, 40, 12, 1, 1>;"),
            std::string::npos)
      << match.text;
  linear.numerics = Numerics::fast;
  const KernelText fast = kernel_text(linear, tile, {9, 0, true});
  EXPECT_EQ(fast.text.find("RoundActivated"), std::string::npos);
  EXPECT_NE(fast.text.find("Multiply>, false, 3072"), std::string::npos) << fast.text;
}

TEST(KernelText, PortableKernelsDoNotDependOnTheGatesOrder) {
  LinearSpec linear = gelu();
  linear.gated = true;
  linear.aligned = false;
  const sm80::Tile tile{64, 64, 64, 4, 2, 2};
  const KernelText gate_first = kernel_text(linear, tile, {8, 6, false});
  linear.gate_first = false;
  const KernelText up_first = kernel_text(linear, tile, {8, 6, false});
  EXPECT_EQ(gate_first.text, up_first.text);
  EXPECT_EQ(gate_first.name, up_first.name);
  EXPECT_EQ(gate_first.name, "bf16_match_gelu_tanh_768to3072_gated_bias_unaligned__p64x64x64s4w2x2");
  EXPECT_EQ(gate_first.threads, 128);
  EXPECT_EQ(gate_first.shared_bytes, 4 * (64 + 64) * 64 * 2);
  EXPECT_EQ(gate_first.cluster, 1);
  EXPECT_NE(gate_first.text.find("#include \"sm80/linear.cuh\""), std::string::npos);
  EXPECT_NE(gate_first.text.find("3072, 768, true, true, true, 64, 64, 64, 4, 2, 2, false>;"),
            std::string::npos)
      << gate_first.text;
}

TEST(KernelText, F32RoundsNowhere) {
  LinearSpec linear = gelu();
  linear.dtype = DType::f32;
  linear.gated = true;
  const KernelText kernel = kernel_text(linear, sm80::Tile{64, 64, 16, 4, 2, 2}, {8, 0, false});
  EXPECT_NE(kernel.text.find("#include \"f32/linear.cuh\""), std::string::npos);
  EXPECT_NE(kernel.text.find("ingot::f32::Linear<Shape>"), std::string::npos);
  EXPECT_EQ(kernel.text.find("RoundActivated"), std::string::npos);
  EXPECT_NE(kernel.text.find("3072, 768, true, true, false, 64,"), std::string::npos) << kernel.text;
  EXPECT_EQ(kernel.shared_bytes, 4 * (64 + 64) * 16 * 4);
}

TEST(KernelText, WithoutStepsTheStoreRounds) {
  LinearSpec linear;
  linear.out = 768;
  linear.in = 3072;
  const KernelText kernel = kernel_text(linear, sm90::FewTile{1, 1, 40, 12, 1, 4}, {9, 0, true});
  EXPECT_NE(kernel.text.find("ingot::device::Chain<>, false, 768, 3072"), std::string::npos) << kernel.text;
  EXPECT_EQ(kernel.cluster, 4);
}

TEST(Target, ReadAndWritten) {
  for (const char* text : {"sm_80", "sm_86", "sm_90a", "sm_100", "sm_120", "sm_121"}) {
    const auto target = parse_target(text);
    ASSERT_TRUE(target) << text;
    EXPECT_EQ(to_string(*target), text);
  }
  EXPECT_EQ(*parse_target("sm90a"), (Target{9, 0, true}));
  EXPECT_EQ(*parse_target("sm120"), (Target{12, 0, false}));
  for (const char* text : {"", "sm", "sm_", "sm_75", "sm_80a", "sm_9x", "compute_90", "90", "sm_090",
                           "sm_1e9", "sm_99999999999999999999", "sm_-90", "sm_90a "}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::invalid_argument);
  }
  GpuDescription gpu;
  gpu.major = 9;
  EXPECT_EQ(target_of(gpu), (Target{9, 0, true}));
  gpu.major = 8;
  gpu.minor = 9;
  EXPECT_EQ(target_of(gpu), (Target{8, 9, false}));
}

TEST(Sources, EmbeddedFilesAreWholeAndClosed) {
  const auto all = kernel_sources();
  ASSERT_GE(all.size(), 10U);
  for (const SourceFile& file : all) {
    EXPECT_TRUE(file.text.starts_with("// SPDX-License-Identifier")) << file.name;
    EXPECT_TRUE(file.text.ends_with("\n")) << file.name;
    EXPECT_EQ(file.text.data()[file.text.size()], '\0') << file.name;
  }
  const auto gemm = included_sources("#include \"sm90/gemm.cuh\"\n", all);
  std::vector<std::string_view> names;
  for (const SourceFile& file : gemm) names.push_back(file.name);
  for (const char* name :
       {"sm90/gemm.cuh", "sm90/gemm_pipeline.cuh", "sm90/ptx.cuh", "sm90/wgmma.cuh", "sm90/layout.cuh",
        "epilogue.cuh", "activations.cuh", "linear_args.cuh", "numbers.cuh", "device/intrinsics.cuh"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
  for (const char* name : {"sm90/few.cuh", "sm80/linear.cuh", "f32/linear.cuh"})
    EXPECT_EQ(std::ranges::find(names, name), names.end()) << name;
}

TEST(Sources, IncludesAreFollowed) {
  const SourceFile files[] = {{"a.cuh", "#include \"c.cuh\"\n"},
                              {"b.cuh", "  # include\t\"a.cuh\" // why\nint b;"},
                              {"c.cuh", "#include \"a.cuh\"\n#include <b.cuh>\n// #include \"d.cuh\"\n"},
                              {"d.cuh", ""}};
  const auto names = [&](std::string_view text) {
    std::string joined;
    for (const SourceFile& file : included_sources(text, files)) joined += file.name;
    return joined;
  };
  EXPECT_EQ(names("#include \"b.cuh\""), "a.cuhb.cuhc.cuh");
  EXPECT_EQ(names("#include \"c.cuh\"\n#include \"gone.cuh\"\n#include \"d.cuh"), "a.cuhc.cuh");
  EXPECT_EQ(names("int x;\n#included \"d.cuh\"\n#"), "");
  EXPECT_EQ(names(""), "");
}

}  // namespace
}  // namespace ingot::jit
