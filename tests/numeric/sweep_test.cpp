// SPDX-License-Identifier: Apache-2.0
//
// Every activation, dtype, gating, layout, bias, size, number of tokens, numerics and rung against float64.
// One test per activation and dtype, so that they run side by side. Built with a sanitizer the sizes are
// fewer: the sanitizer is after memory and threads, which the small sizes reach in every branch; the release
// build sweeps them all.
#include "numeric/mlp_case.h"

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
};

class Sweep : public testing::TestWithParam<Fixed> {
 protected:
  static void SetUpTestSuite() { engine_ = new Engine(test::open_engine(2)); }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  static Engine* engine_;
};
Engine* Sweep::engine_ = nullptr;

/// The reference's rows below `tokens`.
cpu::Reference first_rows(const cpu::Reference& all, std::int64_t tokens, std::int64_t dim) {
  cpu::Reference some = all;
  while (!some.rows.empty() && some.rows.back() >= tokens) some.rows.pop_back();
  for (auto* values : {&some.exact, &some.framework, &some.matmul_add, &some.deviation}) {
    values->resize(some.rows.size() * static_cast<std::size_t>(dim));
  }
  return some;
}

void sweep_tokens(const PreparedMlp& prepared, const test::MlpCase& c, const cpu::Reference& all, Rung rung,
                  const std::string& what) {
  for (const std::int64_t tokens : token_counts) {
    const test::Output y = test::run_guarded(prepared, c, tokens, tokens % 2 == 0 ? 5 : 0);
    const cpu::Reference some = first_rows(all, tokens, c.mlp.dim);
    const cpu::Verdict verdict = cpu::judge(c.mlp, some, rung, y.data(), y.stride);
    EXPECT_TRUE(verdict.ok) << what << ", " << tokens << " tokens: error " << verdict.error << ", bound "
                            << verdict.bound << ", framework " << verdict.framework_error << ", worst value "
                            << verdict.worst << " deviations";
  }
}

TEST_P(Sweep, EveryRungKeepsItsContract) {
  const auto pool = cpu::ThreadPool::create(1);
  for (const std::int64_t dim : sizes) {
    for (const std::int64_t hidden : sizes) {
      for (const bool gated : {false, true}) {
        for (const bool bias : {false, true}) {
          const Mlp mlp{dim, hidden, GetParam().activation, gated, bias, GetParam().dtype};
          test::MlpCase c(mlp, most_tokens);
          const auto exact =
              cpu::reference(mlp, c.weights(GateLayout::separate), c.x_data(), c.x_stride, judged, **pool);
          ASSERT_TRUE(exact);
          for (const GateLayout layout :
               {GateLayout::separate, GateLayout::packed_value_first, GateLayout::packed_gate_first}) {
            if (!gated && layout != GateLayout::separate) continue;
            for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
              for (std::size_t r = 0; r < rung_count; ++r) {
                const Rung rung = static_cast<Rung>(r);
                const bool rounds = rung == Rung::epilogue || rung == Rung::one_pass;
                // The others always round where the framework does, and f32 has one way.
                if (numerics == Numerics::fast && (!rounds || mlp.dtype == DType::f32)) continue;
                const auto prepared =
                    engine_->prepare(mlp, c.weights(layout), {.numerics = numerics, .rung = rung});
                ASSERT_TRUE(prepared) << prepared.error().message;
                sweep_tokens(*prepared, c, *exact, rung,
                             to_string(mlp) + ", layout " + std::to_string(static_cast<int>(layout)) + ", " +
                                 std::string(to_string(numerics)) + ", " + std::string(to_string(rung)));
              }
            }
          }
        }
      }
    }
  }
}

std::vector<Fixed> all_fixed() {
  std::vector<Fixed> all;
  for (const ActivationInfo& activation : activations()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) all.push_back({activation.id, dtype});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Sweep, testing::ValuesIn(all_fixed()), [](const auto& instance) {
  return std::string(to_string(instance.param.activation)) + "_" +
         std::string(to_string(instance.param.dtype));
});

}  // namespace
}  // namespace ingot
