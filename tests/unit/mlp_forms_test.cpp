// SPDX-License-Identifier: Apache-2.0
//
// Every form an MLP is written in, and what must not be taken for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/explain.h"
#include "unit/program.h"

namespace ingot {
namespace {

using test::OpArgs;
using test::Program;
using test::shapes;
using testing::Optional;

constexpr int tokens = 64, dim = 32, hidden = 128;

Explanation explained(const Program& program) {
  return explain(program.trace()).value();
}

/// The one MLP of a program; a failure and an empty row when there is none or several.
MlpRow only_mlp(const Program& program) {
  Explanation e = explained(program);
  EXPECT_EQ(e.mlps.size(), 1U);
  return e.mlps.empty() ? MlpRow{} : std::move(e.mlps.front());
}

void linear(Program& p, int m, int k, int n, bool bias = true) {
  p.op("aten::linear", shapes({{m, k}, {n, k}, bias ? std::vector<int>{n} : std::vector<int>{}}), [&] {
    p.op("aten::t", shapes({{n, k}}));
    if (bias) {
      p.op("aten::addmm", shapes({{n}, {m, k}, {k, n}, {}, {}}), [&] { p.kernel(test::gemm_bias_kernel); });
    } else {
      p.op("aten::mm", shapes({{m, k}, {k, n}}), [&] { p.kernel(test::gemm_kernel); });
    }
  });
}
void unary(Program& p, const char* op, int m, int n, const std::string& kernel,
           const std::string& concrete = "") {
  p.op(op, shapes({{m, n}, {}}, concrete), [&] { p.kernel(kernel); });
}
void product(Program& p, int m, int n) {
  p.op("aten::mul", shapes({{m, n}, {m, n}}), [&] { p.kernel(test::mul_kernel); });
}

TEST(MlpForms, LinearActivationLinear) {
  Program p;
  linear(p, tokens, dim, hidden);
  unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
  linear(p, tokens, hidden, dim);
  const MlpRow mlp = only_mlp(p);
  EXPECT_EQ(mlp.activation, "relu");
  EXPECT_FALSE(mlp.gated);
  EXPECT_FALSE(mlp.packed.has_value());
  EXPECT_THAT(mlp.bias, Optional(true));
  EXPECT_THAT(mlp.tokens, Optional(tokens));
  EXPECT_THAT(mlp.dim, Optional(dim));
  EXPECT_THAT(mlp.hidden, Optional(hidden));
  // x, W1, b1 → h; h → h; h, W2, b2 → y, two bytes each.
  EXPECT_THAT(mlp.bytes_per_call,
              Optional(2U * (2 * tokens * dim + 2 * dim * hidden + 4 * tokens * hidden + hidden + dim)));
  EXPECT_THAT(mlp.fused_bytes_per_call, Optional(2U * (2 * tokens * dim + 2 * dim * hidden + hidden + dim)));
}

TEST(MlpForms, DropoutCopiesAndCastsBetweenDoNotHideIt) {
  Program p;
  linear(p, tokens, dim, hidden);
  unary(p, "aten::gelu", tokens, hidden, test::gelu_tanh_kernel);
  p.op("aten::dropout", shapes({{tokens, hidden}}));
  p.op("aten::to", shapes({{tokens, hidden}}), [&] {
    p.op("aten::copy_", shapes({{tokens, hidden}}), [&] { p.kernel("copy_kernel"); });
  });
  linear(p, tokens, hidden, dim);
  const MlpRow mlp = only_mlp(p);
  EXPECT_EQ(mlp.activation, "gelu_tanh");
  EXPECT_THAT(mlp.kernels_per_call, Optional(4.0));
}

TEST(MlpForms, GeluFormComesFromTheArgumentBeforeTheKernel) {
  Program p;
  linear(p, tokens, dim, hidden);
  unary(p, "aten::gelu", tokens, hidden, test::gelu_tanh_kernel, R"(["", "none"])");
  linear(p, tokens, hidden, dim);
  EXPECT_EQ(only_mlp(p).activation, "gelu_erf");
}

TEST(MlpForms, GateThenUpOrUpThenGate) {
  for (const bool up_first : {false, true}) {
    Program p;
    linear(p, tokens, dim, hidden, false);
    if (up_first) linear(p, tokens, dim, hidden, false);
    unary(p, "aten::silu", tokens, hidden, "silu");
    if (!up_first) linear(p, tokens, dim, hidden, false);
    product(p, tokens, hidden);
    linear(p, tokens, hidden, dim, false);
    const MlpRow mlp = only_mlp(p);
    EXPECT_EQ(mlp.activation, "silu");
    EXPECT_TRUE(mlp.gated);
    EXPECT_THAT(mlp.packed, Optional(false));
    EXPECT_THAT(mlp.bias, Optional(false));
    EXPECT_THAT(mlp.hidden, Optional(hidden));
    EXPECT_THAT(mlp.kernels_per_call, Optional(5.0));
  }
}

TEST(MlpForms, PackedProjectionCutInTwo) {
  Program p;
  linear(p, tokens, dim, 2 * hidden);
  p.op("aten::chunk", shapes({{tokens, 2 * hidden}}), [&] {
    p.op("aten::split", shapes({{tokens, 2 * hidden}}));
  });
  unary(p, "aten::gelu", tokens, hidden, test::gelu_tanh_kernel);
  product(p, tokens, hidden);
  linear(p, tokens, hidden, dim);
  const MlpRow mlp = only_mlp(p);
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(mlp.packed, Optional(true));
  EXPECT_THAT(mlp.hidden, Optional(hidden));
}

TEST(MlpForms, CompiledMatmulsWithOnePointwiseKernelBetween) {
  struct Case {
    std::string kernel;
    int first_linears, first_width;
    bool gated;
  };
  for (const Case& c : {Case{"triton_poi_fused_gelu_view_2", 1, hidden, false},
                        Case{"triton_poi_fused__unsafe_view_mul_silu_0", 2, hidden, true},
                        Case{"triton_poi_fused_gelu_mul_split_1", 1, 2 * hidden, true}}) {
    Program p;
    p.op("Torch-Compiled Region: 0/0", {}, [&] {
      for (int i = 0; i < c.first_linears; ++i) {
        p.op("aten::mm", shapes({{tokens, dim}, {dim, c.first_width}, {tokens, c.first_width}}),
             [&] { p.kernel(test::gemm_kernel); });
      }
      p.op(c.kernel, shapes({{tokens, c.first_width}, {tokens, hidden}, {}}), [&] { p.kernel(c.kernel); });
      p.op("aten::mm", shapes({{tokens, hidden}, {hidden, dim}, {tokens, dim}}),
           [&] { p.kernel(test::gemm_kernel); });
    });
    const MlpRow mlp = only_mlp(p);
    EXPECT_EQ(mlp.gated, c.gated) << c.kernel;
    EXPECT_EQ(mlp.packed.value_or(false), c.gated && c.first_linears == 1) << c.kernel;
    EXPECT_THAT(mlp.hidden, Optional(hidden)) << c.kernel;
    EXPECT_THAT(mlp.kernels_per_call, Optional(c.first_linears + 2.0)) << c.kernel;
  }
}

TEST(MlpForms, MatmulAndBiasAddApart) {
  Program p;
  for (const auto& [k, n] : {std::pair{dim, hidden}, std::pair{hidden, dim}}) {
    p.op("aten::matmul", shapes({{tokens, k}, {k, n}}), [&, k = k, n = n] {
      p.op("aten::mm", shapes({{tokens, k}, {k, n}}), [&] { p.kernel(test::gemm_kernel); });
    });
    p.op("aten::add", shapes({{tokens, n}, {n}, {}}), [&] { p.kernel(test::add_kernel); });
    if (n == hidden) unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
  }
  const MlpRow mlp = only_mlp(p);
  EXPECT_EQ(mlp.activation, "relu");
  EXPECT_THAT(mlp.bias, Optional(true));
}

TEST(MlpForms, EpilogueOfTheLibrary) {
  Program p;
  p.op("aten::_addmm_activation",
       shapes({{hidden}, {tokens, dim}, {dim, hidden}, {}, {}, {}}, R"(["", "", "", "1", "1", "True"])"),
       [&] { p.kernel(test::gemm_bias_kernel); });
  linear(p, tokens, hidden, dim);
  const MlpRow mlp = only_mlp(p);
  EXPECT_EQ(mlp.activation, "gelu_tanh");
  EXPECT_THAT(mlp.kernels_per_call, Optional(2.0));
}

TEST(MlpForms, ActivationsWrittenOutByHand) {
  const auto scale = [](Program& p, const char* by) {
    p.op("aten::mul", shapes({{tokens, hidden}, {}}, std::string("[\"\", \"") + by + "\"]"),
         [&] { p.kernel("scale"); });
  };
  const auto plus = [](Program& p) {
    p.op("aten::add", shapes({{tokens, hidden}, {tokens, hidden}, {}}), [&] { p.kernel(test::add_kernel); });
  };
  struct Case {
    const char* activation;
    std::function<void(Program&)> body;
  };
  const Case cases[] = {
      {"silu",
       [&](Program& p) {
         unary(p, "aten::sigmoid", tokens, hidden, "sigmoid");
         product(p, tokens, hidden);
       }},
      {"quick_gelu",
       [&](Program& p) {
         scale(p, "1.702");
         unary(p, "aten::sigmoid", tokens, hidden, "sigmoid");
         product(p, tokens, hidden);
       }},
      {"gelu_tanh",
       [&](Program& p) {
         scale(p, "0.5");
         unary(p, "aten::pow", tokens, hidden, "pow");
         scale(p, "0.044715");
         plus(p);
         scale(p, "0.7978845608");
         unary(p, "aten::tanh", tokens, hidden, "tanh");
         plus(p);
         product(p, tokens, hidden);
       }},
  };
  for (const Case& c : cases) {
    Program p;
    linear(p, tokens, dim, hidden);
    c.body(p);
    linear(p, tokens, hidden, dim);
    EXPECT_EQ(only_mlp(p).activation, c.activation);
  }
  Program other;  // x·σ(1.5x) is neither
  linear(other, tokens, dim, hidden);
  scale(other, "1.5");
  unary(other, "aten::sigmoid", tokens, hidden, "sigmoid");
  product(other, tokens, hidden);
  linear(other, tokens, hidden, dim);
  EXPECT_TRUE(explained(other).mlps.empty());
}

TEST(MlpForms, SigmoidGate) {
  Program p;
  linear(p, tokens, dim, 2 * hidden);
  p.op("aten::chunk", shapes({{tokens, 2 * hidden}}));
  unary(p, "aten::sigmoid", tokens, hidden, "sigmoid");
  product(p, tokens, hidden);
  linear(p, tokens, hidden, dim);
  const MlpRow mlp = only_mlp(p);
  EXPECT_EQ(mlp.activation, "sigmoid");
  EXPECT_TRUE(mlp.gated);
}

TEST(MlpForms, GraphLaunchByKernelNamesAlone) {
  Program p;
  p.op("Torch-Compiled Region: 0/0", {}, [&] {
    p.graph({"triton_red_fused_add_native_layer_norm_1", test::gemm_bias_kernel,
             "triton_poi_fused_gelu_view_2", test::gemm_bias_kernel,
             "triton_red_fused_add_native_layer_norm_4", test::gemm_kernel, test::gemm_kernel,
             "triton_poi_fused_mul_silu_3", test::gemm_kernel, "triton_red_fused_native_layer_norm_5",
             test::gemm_kernel, "triton_poi_fused_mul_silu_6", test::gemm_kernel});
  });
  const Explanation e = explained(p);
  ASSERT_EQ(e.mlps.size(), 3U);
  for (const MlpRow& mlp : e.mlps) {
    EXPECT_EQ(mlp.evidence, "names");
    EXPECT_FALSE(mlp.tokens || mlp.dim || mlp.hidden || mlp.bytes_per_call);
    if (mlp.activation == "gelu") {
      EXPECT_FALSE(mlp.gated);
      EXPECT_THAT(mlp.bias, Optional(true));
    } else {
      EXPECT_TRUE(mlp.gated);
      EXPECT_FALSE(mlp.bias.has_value());
      EXPECT_THAT(mlp.packed, Optional(mlp.kernels_per_call == 3.0));
    }
  }
}

TEST(MlpForms, WhatIsNotOne) {
  const std::pair<const char*, std::function<void(Program&)>> cases[] = {
      {"widths that do not fit",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
         linear(p, tokens, hidden, dim + 8);
       }},
      {"other tokens",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
         linear(p, tokens / 2, hidden, dim);
       }},
      {"no activation",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         linear(p, tokens, hidden, dim);
       }},
      {"a norm between",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
         p.op("aten::layer_norm", shapes({{tokens, hidden}}),
              [&] { p.kernel("vectorized_layer_norm_kernel"); });
         linear(p, tokens, hidden, dim);
       }},
      {"a product with something else",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
         product(p, tokens, hidden);
         linear(p, tokens, hidden, dim);
       }},
      {"attention's products",
       [](Program& p) {
         p.op("aten::matmul", shapes({{2, 4, 16, 8}, {2, 4, 8, 16}}), [&] { p.kernel(test::gemm_kernel); });
         p.op("aten::relu", shapes({{2, 4, 16, 16}}), [&] { p.kernel(test::relu_kernel); });
         p.op("aten::matmul", shapes({{2, 4, 16, 16}, {2, 4, 16, 8}}), [&] { p.kernel(test::gemm_kernel); });
       }},
      {"a residual added before the activation",
       [](Program& p) {
         linear(p, tokens, dim, hidden);
         p.op("aten::add", shapes({{tokens, hidden}, {tokens, hidden}, {}}),
              [&] { p.kernel(test::add_kernel); });
         unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
         linear(p, tokens, hidden, dim);
       }},
      {"a reduction fused with the activation",
       [](Program& p) {
         p.graph({test::gemm_kernel, "triton_red_fused_gelu_native_layer_norm_2", test::gemm_kernel});
       }},
  };
  for (const auto& [what, body] : cases) {
    Program p;
    body(p);
    EXPECT_TRUE(explained(p).mlps.empty()) << what;
  }
}

TEST(MlpForms, UnknownCardGivesNoEstimate) {
  Program p("Some Future GPU");
  linear(p, tokens, dim, hidden);
  unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
  linear(p, tokens, hidden, dim);
  const Explanation e = explained(p);
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_FALSE(e.mlps[0].fused_us_estimate.has_value());
  EXPECT_FALSE(e.card.has_value());
  for (const KernelRow& k : e.kernels) EXPECT_FALSE(k.peak_share.has_value());
}

TEST(MlpForms, BiasCopyIsChargedToItsLinear) {
  Program p;
  p.op("aten::addmm", shapes({{hidden}, {tokens, dim}, {dim, hidden}, {}, {}}),
       [&] { p.memcpy_dtod(2 * tokens * hidden).memset(4).kernel(test::gemm_kernel); });
  unary(p, "aten::relu", tokens, hidden, test::relu_kernel);
  linear(p, tokens, hidden, dim);
  const Explanation e = explained(p);
  ASSERT_EQ(e.mlps.size(), 1U);
  EXPECT_EQ(e.mlps[0].memcpys_per_call, 1);
  EXPECT_EQ(e.mlps[0].memsets_per_call, 1);
  std::vector<std::string> ids;
  for (const Finding& f : e.findings) ids.push_back(f.id);
  EXPECT_THAT(ids, testing::IsSupersetOf({"bias-copy", "tile-counter-memset", "unfused-mlp"}));
}

}  // namespace
}  // namespace ingot
