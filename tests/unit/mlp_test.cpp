// SPDX-License-Identifier: Apache-2.0
#include "ingot/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace ingot {
namespace {

const Mlp good{320, 1280, Activation::gelu_erf, true, true, DType::bf16};

std::string complaint(const Mlp& mlp, std::int64_t tokens = 1) {
  const Result<void> checked = validate(mlp, tokens);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
  return checked.error().message;
}

TEST(Mlp, AcceptsEverySizeThatFits) {
  EXPECT_EQ(complaint(good, 0), "");
  EXPECT_EQ(complaint(good, 4'000'000'000), "");
  Mlp largest = good;
  largest.dim = largest.hidden = max_width;
  EXPECT_EQ(complaint(largest, 1), "dim, hidden: a weight of 2147483647 x 2147483647 passes 2^63 bytes");
  largest.gated = false;
  largest.hidden = 1;
  EXPECT_EQ(complaint(largest, 1), "");
}

TEST(Mlp, NamesTheFieldThatIsOff) {
  Mlp mlp = good;
  mlp.dim = 0;
  EXPECT_EQ(complaint(mlp), "dim: 0 is not accepted, give 1 to 2147483647");
  mlp.dim = max_width + 1;
  EXPECT_EQ(complaint(mlp), "dim: 2147483648 is not accepted, give 1 to 2147483647");
  mlp = good;
  mlp.hidden = -5;
  EXPECT_EQ(complaint(mlp), "hidden: -5 is not accepted, give 1 to 2147483647");
  EXPECT_EQ(complaint(good, -1), "tokens: -1 is not accepted, give 0 or more");
  mlp = good;
  mlp.activation = static_cast<Activation>(99);
  EXPECT_EQ(complaint(mlp), "activation: 99 is not in the list");
  mlp = good;
  mlp.dtype = static_cast<DType>(7);
  EXPECT_EQ(complaint(mlp), "dtype: 7 is not in the list");
}

TEST(Mlp, RefusesTensorsWhoseBytesOverflow) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / (2 * 1280 * 4);
  EXPECT_EQ(complaint(good, most), "");
  EXPECT_EQ(complaint(good, most + 1),
            "tokens: " + std::to_string(most + 1) + " rows of 2560 pass 2^63 bytes");
  EXPECT_NE(complaint(good, std::numeric_limits<std::int64_t>::max()), "");
}

TEST(Mlp, CountsWorkAndBytes) {
  EXPECT_EQ(parameter_count(good), 3 * 320 * 1280 + 2 * 1280 + 320);
  EXPECT_DOUBLE_EQ(flops(good, 8192), 6.0 * 8192 * 320 * 1280);
  EXPECT_DOUBLE_EQ(least_bytes(good, 10), 2.0 * (3 * 320 * 1280 + 2 * 1280 + 320 + 2 * 10 * 320));
  const Mlp plain{8, 32, Activation::relu, false, false, DType::f32};
  EXPECT_EQ(parameter_count(plain), 2 * 8 * 32);
  EXPECT_DOUBLE_EQ(flops(plain, 3), 4.0 * 3 * 8 * 32);
  EXPECT_EQ(to_string(good), "320 -> 1280 gelu_erf gated, bias, bf16");
  EXPECT_EQ(to_string(plain), "8 -> 32 relu, no bias, f32");
}

TEST(Activation, EveryNameParsesBackToItself) {
  std::set<std::string_view> names;
  for (const ActivationInfo& info : activations()) {
    const Result<Activation> parsed = parse_activation(info.name);
    ASSERT_TRUE(parsed) << info.name;
    EXPECT_EQ(*parsed, info.id);
    EXPECT_EQ(to_string(info.id), info.name);
    EXPECT_FALSE(info.formula.empty());
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
  }
  EXPECT_GE(names.size(), 6U);
}

TEST(Activation, AnUnknownNameIsAnsweredWithTheNearest) {
  const Result<Activation> parsed = parse_activation("gelu_tan");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(parsed.error().message,
            "unknown activation 'gelu_tan', did you mean 'gelu_tanh'? accepted: relu, gelu_erf, gelu_tanh, "
            "quick_gelu, "
            "silu, identity");
  EXPECT_EQ(
      parse_activation("mish-mash").error().message,
      "unknown activation 'mish-mash'; accepted: relu, gelu_erf, gelu_tanh, quick_gelu, silu, identity");
}

// Values from the formulas by hand (Wolfram-style closed forms), not from the code under test.
TEST(Activation, KnownValues) {
  EXPECT_EQ(activate(Activation::relu, -2.0), 0.0);
  EXPECT_EQ(activate(Activation::relu, 2.5), 2.5);
  EXPECT_TRUE(std::isnan(activate(Activation::relu, std::nan(""))));
  EXPECT_NEAR(activate(Activation::gelu_erf, 1.0), 0.8413447460685429, 1e-15);    // Phi(1)
  EXPECT_NEAR(activate(Activation::gelu_erf, -1.0), -0.1586552539314571, 1e-15);  // Phi(1) - 1
  EXPECT_NEAR(activate(Activation::gelu_tanh, 1.0), 0.8411919906082768, 1e-13);
  EXPECT_NEAR(activate(Activation::silu, 1.0), 0.7310585786300049, 1e-15);  // 1 / (1 + 1/e)
  EXPECT_NEAR(activate(Activation::quick_gelu, 1.0), 1.0 / (1.0 + std::exp(-1.702)), 1e-15);
  EXPECT_EQ(activate(Activation::identity, -3.25), -3.25);
}

// Every activation is at most |x|, so errors are measured in f32 roundings (2^-24) of |x|.
template <class F>
double worst_approx_error() {
  double worst = 0;
  for (int step = -120000; step <= 120000; ++step) {
    const float x = static_cast<float>(step) * 0.000257F;
    const double error = std::abs(static_cast<double>(F::approx(x)) - F::exact(static_cast<double>(x)));
    if (x != 0) worst = std::max(worst, error / (std::abs(static_cast<double>(x)) * std::ldexp(1.0, -24)));
  }
  return worst;
}

TEST(Activation, FastFormsStayNearTheDefinition) {
#define INGOT_EXPECT(name, formula) EXPECT_LT(worst_approx_error<activation::name>(), 4) << #name;
  INGOT_ACTIVATIONS(INGOT_EXPECT)
#undef INGOT_EXPECT
}

TEST(Activation, FastFormsKeepSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
#define INGOT_EXPECT(name, formula)                                          \
  EXPECT_EQ(activation::name::approx(infinity), infinity) << #name;          \
  EXPECT_TRUE(std::isnan(activation::name::approx(std::nanf("")))) << #name; \
  EXPECT_EQ(activation::name::approx(0.0F), 0.0F) << #name;
  INGOT_ACTIVATIONS(INGOT_EXPECT)
#undef INGOT_EXPECT
}

TEST(DType, NamesParseBack) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    EXPECT_EQ(*parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("fp16").error().message,
            "unknown dtype 'fp16', did you mean 'f16'? accepted: f32, bf16, f16");
  EXPECT_EQ(*parse_numerics("match"), Numerics::match);
  EXPECT_EQ(parse_numerics("quick").error().message, "unknown numerics 'quick'; accepted: match, fast");
}

TEST(Catalogue, EveryModelIsValidAndNamedOnce) {
  std::set<std::string_view> names;
  for (const KnownModel& model : known_models()) {
    EXPECT_TRUE(validate(model.mlp, model.tokens)) << model.name;
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(model.gate.empty(), !model.mlp.gated) << model.name;
    EXPECT_EQ(model.tokens == 0, model.at.empty()) << model.name;
    EXPECT_GT(model.blocks, 0) << model.name;
  }
}

TEST(Catalogue, FindsByNameAndSuggests) {
  const Result<KnownModel> wan = find_model("wan2.1-1.3b");
  ASSERT_TRUE(wan);
  EXPECT_EQ(wan->mlp, (Mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16}));
  EXPECT_EQ(wan->tokens, 32760);
  const Result<KnownModel> typo = find_model("wan21-1.3b");
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message.find("did you mean 'wan2.1-1.3b'?"), std::string::npos)
      << typo.error().message;
}

}  // namespace
}  // namespace ingot
