// SPDX-License-Identifier: Apache-2.0
//
// AMD's GEMM and convolution names: Tensile (rocBLAS, hipBLASLt), MIOpen, Composable Kernel.
#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

using enum Meaning;

// "Bias" says that the kernel can add one, not that it does: linear layers without bias run the same kernels.
constexpr TokenRule kTensileTokens[] = {
    {"MT#x#x#", tile}, {"ISA*", arch, "gfx"}, {"MI#x#x#", flag},  {"Bias", flag},
    {"GSUAMB", drop},  {"GSUAMBSK", drop},    {"UserArgs", drop}, {"*", drop},
};

struct TypeCode {
  std::string_view code, dtype;
};
constexpr TypeCode kTensileTypes[] = {
    {"F8", "fp8"}, {"B8", "fp8"}, {"I8", "i8"},  {"B", "bf16"}, {"H", "f16"}, {"S", "f32"},
    {"D", "f64"},  {"I", "i32"},  {"X", "tf32"}, {"C", ""},     {"Z", ""},
};

// Cijk_Alik_Bljk_BBS_BH_…: the operands' index order (the summation index l first: transposed a, plain b),
// then the types of input, output and accumulator, or one letter for all three with the "B" (beta) joined on.
void read_tensile(Context& c) {
  read_tokens(c.word, kTensileTokens, c.out);
  const auto tokens = split(c.word, '_');
  std::size_t first = 0;
  while (first < tokens.size() && !tokens[first].starts_with("Cij")) ++first;
  if (first + 3 >= tokens.size()) return;
  const std::string_view a = tokens[first + 1], b = tokens[first + 2];
  if (a.size() > 2 && b.size() > 2 && a[0] == 'A' && b[0] == 'B') {
    c.out.layout = {a[1] == 'l' ? 't' : 'n', b[1] == 'l' ? 'n' : 't'};
  }
  std::string_view types = tokens[first + 3];
  std::vector<std::string_view> read;
  while (!types.empty()) {
    const TypeCode* found = nullptr;
    for (const TypeCode& row : kTensileTypes) {
      if (found == nullptr && types.starts_with(row.code)) found = &row;
    }
    if (found == nullptr) break;
    read.push_back(found->dtype);
    types.remove_prefix(found->code.size());
  }
  if (read.empty()) return;
  c.out.dtype = read[0];
  c.out.out_dtype = read.size() >= 3 ? read[1] : read[0];
  for (const std::string_view token : tokens) {
    if (const auto split_u = match("GSU#", token); split_u && split_u->value[0] > 1) c.out.split_k = true;
    if (const auto stream = match("SK#", token); stream && stream->value[0] > 0)
      c.out.flags.emplace_back("stream_k");
  }
}

// igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32_…_gkgs: direction, layout, type, block tile; gkgs splits the
// summation.
constexpr TokenRule kIgemmTokens[] = {
    {"igemm", drop},  // not an integer math core
    {"fwd", flag},   {"bwd", flag},     {"wrw", flag},     {"nhwc", flag},
    {"nchw", flag},  {"bt#x#x#", tile}, {"gkgs", split_k}, {"*", drop},
};

void read_igemm(Context& c) {
  const Tokens tokens = read_tokens(c.word, kIgemmTokens, c.out);
  if (!tokens.types_before.empty()) c.out.dtype = tokens.types_before[0];
}

// Rmsnorm2dFusedAddEnum 1 and 2 add the residual first; 0 does not.
void read_ck_rmsnorm(Context& c) {
  const std::string_view text = c.signature.full;
  c.out.dtype = first_floating_argument(text);
  const bool adds = contains(text, "Rmsnorm2dFusedAddEnum)1") || contains(text, "Rmsnorm2dFusedAddEnum)2") ||
                    contains(text, "Rmsnorm2dFusedAddEnumE1") || contains(text, "Rmsnorm2dFusedAddEnumE2");
  add_fused(c.out, adds ? "add rms_norm" : "rms_norm");
  c.out.short_name = adds ? "add rms_norm" : "rms_norm";
}

void read_anywhere(Context& c) {
  c.out.dtype = first_floating_argument(c.signature.full);
}

void no_types(Context&) {}

constexpr Rule kRules[] = {
    {"*_PostGSU", "tensile", KernelKind::gemm_helper, "splitK reduce", "", no_types},
    {"^Cijk_", "tensile", KernelKind::gemm, "", "", read_tensile},
    {"^Custom_Cijk_", "tensile", KernelKind::gemm, "", "", read_tensile},
    {"^igemm_", "miopen", KernelKind::convolution, "", "", read_igemm},
    {"^batched_transpose_", "miopen", KernelKind::copy, "batched transpose", "transpose", no_types},
    {"^SubTensorOpWithCastTensor", "miopen", KernelKind::copy, "cast tensor", "cast", no_types},
    {"^SubTensorOpWithScalar", "miopen", KernelKind::pointwise, "scale or set tensor", "", no_types},
    {"^SubTensorOpWithSubTensor", "miopen", KernelKind::copy, "copy tensor", "copy", no_types},
    {"^Op2dTensor", "miopen", KernelKind::pointwise, "tensor op", "", no_types},
    {"^OpTensor", "miopen", KernelKind::pointwise, "tensor op", "", no_types},
    {"^miopenSp3AsmConv", "miopen", KernelKind::convolution, "winograd convolution", "", no_types},
    {"^miopenGcnAsmConv", "miopen", KernelKind::convolution, "convolution", "", no_types},
    {"^MIOpenConv", "miopen", KernelKind::convolution, "convolution", "", no_types},
    {"^MIOpenBatchNorm", "miopen", KernelKind::norm, "batch_norm", "batch_norm", no_types},
    {"^MIOpenSoftmax", "miopen", KernelKind::reduction, "softmax", "softmax", no_types},
    {"^Im2d2Col", "miopen", KernelKind::copy, "im2col", "im2col", no_types},
    {"^Im2Col", "miopen", KernelKind::copy, "im2col", "im2col", no_types},
    {"*Rmsnorm2dFwd", "ck", KernelKind::norm, "", "", read_ck_rmsnorm},
    {"*Layernorm2dFwd", "ck", KernelKind::norm, "layer_norm", "layer_norm", read_anywhere},
    {"*FmhaFwdSplitKVCombine", "ck", KernelKind::attention, "attention fwd combine", "", read_anywhere},
    {"*FmhaFwd", "ck", KernelKind::attention, "flash attention fwd", "", read_anywhere},
    {"*FmhaBwd", "ck", KernelKind::attention, "flash attention bwd", "", read_anywhere},
};

}  // namespace

std::span<const Rule> rocm_rules() {
  return kRules;
}

}  // namespace ingot::trace::names
