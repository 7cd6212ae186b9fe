// SPDX-License-Identifier: Apache-2.0
//
// Triton kernels. torch.compile names its own triton_<form>_fused_<operators>_<number>; the operators are in
// alphabetical order and hold '_' themselves, so they are split by the longest known operator.
#include <algorithm>
#include <unordered_set>

#include "trace/kernel_name_rules.h"
#include "trace/kernel_name_triton_ops.h"

namespace ingot::trace::names {
namespace {

using OpSet = std::unordered_set<std::string_view>;

const OpSet& known_ops() {
  static const OpSet ops(std::begin(kTritonOps), std::end(kTritonOps));
  return ops;
}
const OpSet& views() {
  static const OpSet ops(std::begin(kTritonViews), std::end(kTritonViews));
  return ops;
}

constexpr std::size_t kMaxOpWords = 9;

// The longest known operator at the beginning of `text` that ends with it or before a '_'; "" for none.
std::string_view longest_op(std::string_view text) {
  std::string_view best;
  std::size_t end = 0;
  for (std::size_t word = 0; word < kMaxOpWords && end < text.size(); ++word) {
    end = text.find('_', end + 1);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view candidate = text.substr(0, end);
    if (known_ops().contains(candidate) || views().contains(candidate)) best = candidate;
  }
  return best;
}

// Operators of "_unsafe_view_gelu_mul", views included. Words no operator begins with stay together as one.
std::vector<std::string> split_ops(std::string_view text) {
  std::vector<std::string> out;
  std::string unknown;
  while (!text.empty()) {
    std::string_view op = longest_op(text);
    if (op.empty()) {
      // One word further; a leading '_' belongs to the word behind it.
      const std::size_t end = std::min(text.size(), text.find('_', 1));
      if (!unknown.empty()) unknown += '_';
      unknown += text.substr(0, end);
      text.remove_prefix(end);
    } else {
      if (!unknown.empty()) out.push_back(std::move(unknown));
      unknown.clear();
      out.emplace_back(op);
      text.remove_prefix(op.size());
    }
    if (text.starts_with('_')) text.remove_prefix(1);
  }
  if (!unknown.empty()) out.push_back(std::move(unknown));
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Older Triton appended the specialised argument numbers: "_0d1d2d3de".
bool is_specialisation(std::string_view text) {
  return text.size() > 1 && text[0] >= '0' && text[0] <= '9' &&
         text.find_first_not_of("0123456789cde") == std::string_view::npos &&
         text.find('d') != std::string_view::npos;
}

// What a template instantiated for one of these is; any other is a matrix product.
struct Role {
  std::string_view op;
  KernelKind kind;
};
constexpr Role kTemplateRoles[] = {
    {"convolution", KernelKind::convolution},
    {"flex_attention", KernelKind::attention},
    {"flex_attention_backward", KernelKind::attention},
};
constexpr std::string_view kNorms[] = {
    "native_layer_norm",
    "layer_norm",
    "native_group_norm",
    "group_norm",
    "rms_norm",
    "_fused_rms_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit_functional",
    "native_layer_norm_backward",
    "batch_norm",
};
constexpr std::string_view kMoves[] = {
    "clone",     "_to_copy", "copy",         "copy_",  "cat",           "stack",          "constant_pad_nd",
    "embedding", "index",    "index_select", "gather", "slice_scatter", "select_scatter", "index_put",
    "scatter",   "repeat",   "roll",         "flip",   "moe_forward",   "contiguous",     "pad",
};

bool has(const std::vector<std::string>& ops, std::string_view op) {
  return std::ranges::find(ops, op) != ops.end();
}

// The rule gives the kind of the form (pointwise, reduction, template); the operators can make it more exact.
void read_inductor(Context& c) {
  KernelName& out = c.out;
  std::string_view rest = c.word;
  rest.remove_prefix(std::min(rest.size(), std::string_view("triton_").size()));
  if (!rest.starts_with('_')) rest.remove_prefix(std::min(rest.size(), rest.find('_')));  // "poi"
  if (rest.starts_with('_')) rest.remove_prefix(1);
  if (rest.starts_with("fused")) rest.remove_prefix(5);
  if (rest.starts_with('_')) rest.remove_prefix(1);
  // The number, and an older specialisation, behind the operators.
  for (int i = 0; i < 2; ++i) {
    const std::size_t cut = rest.rfind('_');
    const std::string_view last = cut == std::string_view::npos ? rest : rest.substr(cut + 1);
    if (!all_digits(last) && !is_specialisation(last)) break;
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(0, cut);
  }
  for (std::string& op : split_ops(rest)) {
    if (!views().contains(op)) out.fused.push_back(std::move(op));
  }
  const auto moves = [](const std::string& op) { return std::ranges::find(kMoves, op) != std::end(kMoves); };
  const auto fuses = [&](std::string_view op) { return has(out.fused, op); };
  if (out.kind == KernelKind::gemm) {
    for (const Role& role : kTemplateRoles) {
      if (fuses(role.op)) out.kind = role.kind;
    }
  } else if (out.kind == KernelKind::reduction) {
    // A root mean square or a variance, and its inverse root: a norm written out by hand.
    const bool by_hand = fuses("rsqrt") && ((fuses("mean") && fuses("pow")) || fuses("var_mean"));
    if (by_hand || std::ranges::any_of(kNorms, fuses)) out.kind = KernelKind::norm;
  } else if (out.kind == KernelKind::pointwise && !rest.empty() && std::ranges::all_of(out.fused, moves)) {
    out.kind = KernelKind::copy;  // views alone, too: the kernel moves what they rearrange
  }
  out.short_name = "triton ";
  for (std::size_t i = 0; i < out.fused.size(); ++i)
    out.short_name += (i == 0 ? "" : "\u00b7") + out.fused[i];
  if (out.fused.empty()) out.short_name += out.kind == KernelKind::copy ? "copy" : to_string(out.kind);
}

// _matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu: strides and types of y, x, w, then the blocks of m, n,
// k and the split of k.
void read_matmul_ogs(Context& c) {
  for (const std::string_view token : split(c.word, '_')) {
    if (const auto blocks = match("#x#x#x#", token)) {
      c.out.tile = TileShape{blocks->value[0], blocks->value[1], blocks->value[2]};
      c.out.split_k = blocks->value[3] > 1;
    } else if (token == "swiglu") {
      add_fused(c.out, "swiglu");
    } else if (const std::size_t first = token.find('x'), second = token.find('x', first + 1);
               second != std::string_view::npos) {
      const std::string_view y = dtype_of(token.substr(0, first)),
                             x = dtype_of(token.substr(first + 1, second - first - 1)),
                             w = dtype_of(token.substr(second + 1));
      if (y.empty() || x.empty() || w.empty()) continue;
      c.out.out_dtype = y;
      c.out.dtype = operands(x, w);
    }
  }
}

void no_types(Context&) {}

using enum KernelKind;
constexpr Rule kRules[] = {
    {"^triton_poi_", "triton-inductor", pointwise, "", "", read_inductor},
    {"^triton_red_", "triton-inductor", reduction, "", "", read_inductor},
    {"^triton_per_", "triton-inductor", reduction, "", "", read_inductor},
    {"^triton_tem_", "triton-inductor", gemm, "", "", read_inductor},
    {"^triton_for_", "triton-inductor", pointwise, "", "", read_inductor},
    {"^triton_spl_", "triton-inductor", other, "", "", read_inductor},
    {"^triton__", "triton-inductor", unknown, "", "", read_inductor},  // 2.0: nothing but a number
    {"^_matmul_ogs", "triton", gemm, "", "", read_matmul_ogs},
    {"^_p_matmul_ogs", "triton", gemm, "", "", read_matmul_ogs},
    {"^_finalize_matmul_scatter", "triton", gemm_helper, "matmul scatter", "", no_types},
    {"=_topk_forward", "triton", other, "topk (moe)", "topk", no_types},
    {"=_sum_bitmatrix_rows", "triton", reduction, "sum bitmatrix rows", "", no_types},
    {"~_combined_routing", "triton", other, "moe routing", "", no_types},
    {"~_routing_", "triton", other, "moe routing", "", no_types},
    {"~_expt_data", "triton", other, "moe routing", "", no_types},
    {"=_copy_page_indices_kernel", "triton", copy, "copy page indices", "copy", no_types},
    {"=fused_moe_kernel", "triton", gemm, "fused moe gemm", "", no_types},
    {"~matmul_kernel", "triton", gemm, "triton matmul", "", no_types},
    {"=_geglu_tanh_forward_kernel", "triton", pointwise, "gelu_tanh\u00b7mul", "gelu_tanh mul", no_types},
    {"=_swiglu_forward_kernel", "triton", pointwise, "silu\u00b7mul", "silu mul", no_types},
    {"=_rms_norm_forward_kernel", "triton", norm, "rms_norm", "rms_norm", no_types},
    {"=_layer_norm_fwd_kernel", "triton", norm, "layer_norm", "layer_norm", no_types},
    {"=_layer_norm_fwd_1pass_kernel", "triton", norm, "layer_norm", "layer_norm", no_types},
};

}  // namespace

std::span<const Rule> triton_rules() {
  return kRules;
}

}  // namespace ingot::trace::names
