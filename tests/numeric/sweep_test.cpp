// SPDX-License-Identifier: Apache-2.0
//
// Every activation, dtype, gating, layout, bias, size, number of tokens, numerics and rung against float64.
// One test per activation and dtype, so that they run side by side. Built with a sanitizer the sizes are
// fewer: the sanitizer is after memory and threads, which the small sizes reach in every branch; the release
// build sweeps them all.
#include "numeric/mlp_case.h"
#include "plan/choose.h"

namespace ingot {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INGOT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INGOT_SANITIZED 1
#endif
#endif

#if defined(INGOT_SANITIZED)
const std::vector<std::int64_t> sizes{1, 17, 77};
const std::vector<std::int64_t> token_counts{0, 1, 5, 64};
#else
const std::vector<std::int64_t> sizes{1, 3, 17, 64, 77, 320, 1000};
const std::vector<std::int64_t> token_counts{0, 1, 5, 64, 1000};
#endif
constexpr std::int64_t most_tokens = 1000;

// First and last rows of every token count, and both sides of tile borders.
const std::vector<std::int64_t> judged{0, 1, 2, 3, 4, 31, 62, 63, 64, 190, 192, 384, 500, 768, 998, 999};

struct Fixed {
  Activation activation;
  DType dtype;
  bool gated;
  bool native_bf16;
};

class Sweep : public testing::TestWithParam<Fixed> {
 protected:
  const Engine engine_ = test::open_engine(2, GetParam().native_bf16);
};

/// The reference's rows below `tokens`.
cpu::Reference first_rows(const cpu::Reference& all, std::int64_t tokens, std::int64_t dim) {
  cpu::Reference some = all;
  while (!some.rows.empty() && some.rows.back() >= tokens) some.rows.pop_back();
  for (auto* values :
       {&some.exact, &some.framework, &some.matmul_add, &some.deviation, &some.matmul_add_deviation}) {
    values->resize(some.rows.size() * static_cast<std::size_t>(dim));
  }
  return some;
}

void sweep_tokens(const PreparedMlp& prepared, const test::MlpCase& c, const cpu::Reference& all, Rung rung,
                  GateLayout layout, Numerics numerics) {
  for (const std::int64_t tokens : token_counts) {
    // The two packed orders differ in two pointers, which a thousand tokens follow no further than 64.
    if (layout == GateLayout::packed_gate_first && tokens > 64) continue;
    const test::Output y = test::run_guarded(prepared, c, tokens, tokens % 2 == 0 ? 5 : 0);
    const cpu::Verdict verdict =
        cpu::judge(c.mlp, first_rows(all, tokens, c.mlp.dim), rung, y.data(), y.stride);
    EXPECT_TRUE(verdict.ok) << tokens << " tokens of " << to_string(c.mlp) << ", layout "
                            << static_cast<int>(layout) << ", " << to_string(numerics) << ", "
                            << to_string(rung) << ": " << verdict.reason << "; error " << verdict.error
                            << ", framework " << verdict.framework_error << ", bound " << verdict.bound
                            << ", worst value " << verdict.worst << " deviations";
  }
}

void sweep_rungs(const Engine& engine, const Mlp& mlp, cpu::ThreadPool& pool) {
  test::MlpCase c(mlp, most_tokens);
  const auto exact =
      cpu::reference(mlp, c.weights(GateLayout::separate), c.x_data(), c.x_stride, judged, pool);
  ASSERT_TRUE(exact);
  for (const GateLayout layout :
       {GateLayout::separate, GateLayout::packed_value_first, GateLayout::packed_gate_first}) {
    if (!mlp.gated && layout != GateLayout::separate) continue;
    for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
      for (std::size_t r = 0; r < rung_count; ++r) {
        const Rung rung = static_cast<Rung>(r);
        if (is_compiled_rung(rung)) continue;  // no CPU has it
        const bool rounds = rung == Rung::epilogue || rung == Rung::one_pass;
        // The others always round where the framework does, and f32 has one way.
        if (numerics == Numerics::fast && (!rounds || mlp.dtype == DType::f32)) continue;
        const auto prepared = engine.prepare(mlp, c.weights(layout), {.numerics = numerics, .rung = rung});
        ASSERT_TRUE(prepared) << prepared.error().message;
        sweep_tokens(*prepared, c, *exact, rung, layout, numerics);
      }
    }
  }
}

TEST_P(Sweep, EveryRungKeepsItsContract) {
  const auto pool = cpu::ThreadPool::create(1);
  const Fixed& fixed = GetParam();
  for (const std::int64_t dim : sizes) {
    for (const std::int64_t hidden : sizes) {
      for (const bool bias : {false, true}) {
        sweep_rungs(engine_, {dim, hidden, fixed.activation, fixed.gated, bias, fixed.dtype}, **pool);
      }
    }
  }
}

std::vector<Fixed> all_fixed() {
  std::vector<Fixed> all;
  for (const ActivationInfo& activation : activations()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const bool gated : {false, true}) {
        all.push_back({activation.id, dtype, gated, false});
        if (dtype == DType::bf16 && cpu::has_gemm_bf16()) all.push_back({activation.id, dtype, gated, true});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Sweep, testing::ValuesIn(all_fixed()), [](const auto& instance) {
  const Fixed& fixed = instance.param;
  return std::string(to_string(fixed.activation)) + "_" + std::string(to_string(fixed.dtype)) +
         (fixed.gated ? "_gated" : "") + (fixed.native_bf16 ? "_native" : "");
});

}  // namespace
}  // namespace ingot
