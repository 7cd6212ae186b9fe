// SPDX-License-Identifier: Apache-2.0
#include "engine/warm.h"

#include <gtest/gtest.h>

#include <set>

#include "fake/compiler.h"
#include "plan/linear.h"

namespace ingot {
namespace {

const Mlp geglu{768, 3072, Activation::gelu_erf, true, true, DType::bf16};

WarmOptions options(const char* generation) {
  WarmOptions made;
  made.gpu = describe_gpu(generation)->gpu;
  return made;
}

std::set<std::string> texts(const Mlp& mlp, const WarmOptions& options) {
  std::set<std::string> out;
  const auto kernels = kernels_to_warm(mlp, options);
  EXPECT_TRUE(kernels);
  if (!kernels) return out;
  for (const jit::KernelText& kernel : *kernels) {
    EXPECT_TRUE(out.insert(kernel.text).second) << "twice: " << kernel.name;
    EXPECT_EQ(kernel.target, jit::target_of(options.gpu));
  }
  return out;
}

TEST(Warm, TheKernelsThatTheEngineWillAskFor) {
  for (const char* generation : {"sm80", "sm90", "sm120"}) {
    WarmOptions warming = options(generation);
    const std::set<std::string> all = texts(geglu, warming);
    for (const std::int64_t tokens : {1, 7, 77, 1000, 8192, 65536}) {
      // Separate weights: their order in memory is known only to the engine.
      for (const bool gate_first : {true, false}) {
        const KernelRoute route = choose_route(geglu, tokens, warming.gpu, {});
        ASSERT_TRUE(route.found());
        const jit::Target target = jit::target_of(warming.gpu);
        if (route.takes_one) {
          const MlpSpec whole = mlp_spec(geglu, gate_first, Numerics::match);
          EXPECT_TRUE(all.contains(jit::kernel_text(whole, route.one.tile, target).text))
              << generation << tokens;
          continue;
        }
        const LinearSpec first = first_linear(geglu, gate_first, Numerics::match);
        EXPECT_TRUE(all.contains(jit::kernel_text(first, route.pair.first, target).text))
            << generation << tokens;
        const LinearSpec second = second_linear(geglu, Numerics::match);
        EXPECT_TRUE(all.contains(jit::kernel_text(second, route.pair.second, target).text))
            << generation << tokens;
      }
    }
    warming.tokens = {8192};
    const std::set<std::string> one = texts(geglu, warming);
    EXPECT_EQ(one.size(), std::string(generation) == "sm90" ? 3U : 2U) << "two gate orders where they differ";
    warming.layout = GateLayout::packed_value_first;
    EXPECT_EQ(texts(geglu, warming).size(), 2U);
  }
}

TEST(Warm, OneKernelWhereThatIsTaken) {
  const Mlp narrow{320, 1280, Activation::gelu_erf, true, true, DType::bf16};
  WarmOptions warming = options("sm90");
  warming.tokens = {8192};
  const MlpSpec spec = mlp_spec(narrow, true, Numerics::match);
  const std::int64_t of_class = token_class(8192).representative;
  const auto warmed = [&](std::optional<MlpTile> tile) {
    TuningTable tuned("", "");
    tuned.add(TunedMlp{spec, of_class, tile, 1});
    std::set<std::string> out;
    const auto kernels = kernels_to_warm(narrow, warming, &tuned);
    for (const jit::KernelText& kernel : *kernels) out.insert(kernel.text);
    return out;
  };
  const jit::Target target{9, 0, true};
  for (const MlpTile& tile : rank_mlp_kernels(spec, 8192, warming.gpu, 100)) {
    std::set<std::string> expected;
    for (const bool gate_first : {true, false})
      expected.insert(jit::kernel_text(mlp_spec(narrow, gate_first, Numerics::match), tile, target).text);
    EXPECT_EQ(warmed(tile), expected) << label(tile);
  }
  EXPECT_EQ(warmed(std::nullopt).size(), 3U) << "two gate orders of the first linear, and the second";
}

TEST(Warm, AGpuWithoutKernels) {
  WarmOptions warming = options("sm80");
  warming.gpu.major = 7;
  const auto kernels = kernels_to_warm(geglu, warming);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, ErrorCode::unsupported);
}

TEST(Warm, CompilesOnceAndSaysWhichWereThere) {
  const test::TemporaryFolder folder;
  const auto compiler = std::make_shared<test::FakeCompiler>();
  std::vector<jit::KernelText> kernels;
  for (int i = 0; i < 5; ++i) kernels.push_back(test::fake_kernel(i));
  WarmOptions warming = options("sm90");
  warming.threads = 3;
  std::vector<double> fractions;
  warming.progress = [&](double fraction, const std::string&) { fractions.push_back(fraction); };
  for (const bool first : {true, false}) {
    jit::CachedKernelStore store(compiler, jit::DiskCache(folder.path()), {});
    const auto warmed = warm(store, kernels, warming);
    ASSERT_TRUE(warmed);
    ASSERT_EQ(warmed->size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ((*warmed)[i].name, kernels[i].name);
      EXPECT_EQ((*warmed)[i].compiled, first);
    }
  }
  EXPECT_EQ(compiler->compiled, 5);
  ASSERT_EQ(fractions.size(), 10U);
  EXPECT_DOUBLE_EQ(fractions[4], 1);
}

TEST(Warm, WhatCannotBeKeptIsAnError) {
  const auto compiler = std::make_shared<test::FakeCompiler>();
  jit::CachedKernelStore nowhere(compiler, jit::DiskCache("/proc/no/folder"), {});
  const auto unkept = warm(nowhere, {test::fake_kernel(1)}, options("sm90"));
  ASSERT_FALSE(unkept);
  EXPECT_EQ(unkept.error().code, ErrorCode::unreadable);

  const test::TemporaryFolder folder;
  compiler->fails = true;
  jit::CachedKernelStore store(compiler, jit::DiskCache(folder.path()), {});
  const auto failed = warm(store, {test::fake_kernel(1), test::fake_kernel(2)}, options("sm90"));
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().message.starts_with("kernel_1 does not compile"));
}

TEST(Warm, ChecksItsOptions) {
  WarmOptions warming = options("sm90");
  warming.tokens = {16, 0};
  auto refused = warm_cache(geglu, warming);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "tokens: 0 is not accepted, give 1 or more");
  warming.tokens.clear();
  warming.threads = -1;
  refused = warm_cache(geglu, warming);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace ingot
