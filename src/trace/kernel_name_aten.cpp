// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's own kernels. A handful of templates run everything; the functor among their arguments names the
// operator they run.
#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

struct Functor {
  std::string_view pattern;  ///< an identifier of the template arguments begins with it
  std::string_view op;
  std::string_view flag = {};
  KernelKind kind = KernelKind::unknown;  ///< unknown: the template's
};

// Functors whose operator is not simply their own name (see kSuffixes). First match wins.
constexpr Functor kFunctors[] = {
    // GELU's two forms are two lambdas of one function: the tanh branch comes first in its source, then the
    // exact one
    // (the second spelling is LLVM's). Before the approximate argument existed there was only the exact form.
    {"GeluBackwardCUDAKernelImpl", "gelu_backward"},
    {"GeluType)::{lambda()#1}", "gelu_tanh"},
    {"GeluType)::{lambda()#2}", "gelu_erf"},
    {"GeluType)::'lambda'()", "gelu_tanh"},
    {"GeluType)::'lambda0'()", "gelu_erf"},
    {"GeluCUDAKernelImpl(at::TensorIteratorBase&)", "gelu_erf"},
    {"GeluCUDAKernelImpl(at::TensorIterator&)", "gelu_erf"},
    {"GeluCUDAKernelImpl", "gelu"},
    {"GeluTanhFunctor", "gelu_tanh"},
    {"GeluErfFunctor", "gelu_erf"},
    // relu runs as a clamp from below. The threshold kernel is its gradient (PyTorch before 1.10 ran both
    // with it), so
    // it is not called an activation.
    {"launch_clamp_scalar", "relu", "clamp"},
    {"clamp_min_scalar_kernel_impl", "relu", "clamp"},
    {"threshold_kernel_impl", "threshold"},
    {"sigmoid_kernel_cuda", "sigmoid"},
    {"tanh_kernel_cuda", "tanh"},
    {"silu_kernel", "silu"},
    {"direct_copy_kernel_cuda", "copy", {}, KernelKind::copy},
    {"bfloat16_copy_kernel_cuda", "copy", "to_bf16", KernelKind::copy},
    {"float16_copy_kernel_cuda", "copy", "to_f16", KernelKind::copy},
    {"CUDAFunctorOnSelf_add", "add", "scalar"},
    {"CUDAFunctorOnOther_add", "add", "scalar"},
    {"CUDAFunctor_add", "add"},
    {"FillFunctor", "fill"},
    {"MulFunctor", "mul"},
    {"MulScalarFunctor", "mul", "scalar"},
    {"pow_tensor_scalar_kernel_impl", "pow", "scalar"},
    {"pow_tensor_tensor_kernel", "pow"},
    {"div_true_kernel_cuda", "div"},
    {"DivFunctor", "div"},
    {"CompareEqFunctor", "eq"},
    {"CompareNEFunctor", "ne"},
    {"CompareGTFunctor", "gt"},
    {"CompareGEFunctor", "ge"},
    {"CompareLTFunctor", "lt"},
    {"CompareLEFunctor", "le"},
    {"BitwiseAndFunctor", "bitwise_and"},
    {"BitwiseOrFunctor", "bitwise_or"},
    {"and_kernel_cuda", "all"},
    {"or_kernel_cuda", "any"},
    {"MeanOps", "mean"},
    {"sum_functor", "sum"},
    {"prod_functor", "prod"},
    {"WelfordOps", "var"},
    {"NormTwoOps", "norm"},
    {"NormOneOps", "norm"},
    {"NormOps", "norm"},
    {"ArgMaxOps", "argmax"},
    {"ArgMinOps", "argmin"},
    {"MaxOps", "max"},
    {"MinOps", "min"},
    {"MaxNanFunctor", "max"},
    {"MinNanFunctor", "min"},
    {"batch_norm_update_stats_and_invert", "batch_norm", "statistics", KernelKind::norm},
    // multi_tensor_apply: whole lists of tensors, as optimizers and CUDA graphs use them.
    {"std::multiplies", "mul"},
    {"std::plus", "add"},
    {"std::minus", "sub"},
    {"std::divides", "div"},
    {"Copy<", "copy", {}, KernelKind::copy},
    {"FusedAdamMathFunctor", "adam", {}, KernelKind::other},
    {"FusedSgdMathFunctor", "sgd", {}, KernelKind::other},
    {"LpNormFunctor", "norm", {}, KernelKind::reduction},
    {"PointwiseOpScalarListFunctor", "addcdiv"},
    {"PointwiseOpScalarFunctor", "addcmul"},
    {"TernaryOpScalarFunctor", "lerp"},
};

// An implementation's name is its operator's with one of these behind it, longest first.
constexpr std::string_view kSuffixes[] = {
    "_kernel_cuda_impl", "_cuda_kernel_impl", "_kernel_cuda", "_cuda_kernel", "_kernel_impl", "_cuda_impl",
    "_cuda_out",         "CUDAKernelImpl",    "_kernel",      "_functor",     "Functor",      "_cuda",
};
// Machinery around the functor that ends like one.
constexpr std::string_view kMachinery[] = {
    "gpu_kernel_impl",
    "gpu_kernel_impl_nocast",
    "gpu_index_kernel",
    "opmath_gpu_kernel",
    "gpu_kernel",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "BinaryFunctor",
    "UnaryOpFunctor",
    "BinaryOpScalarFunctor",
    "BinaryOpListAlphaFunctor",
    "BinaryOpScalarListFunctor",
    "index_kernel_impl",
};

// "CompareEq" → "compare_eq"
std::string snake(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] >= 'A' && text[i] <= 'Z';
    if (upper && i > 0 && text[i - 1] != '_' && !(text[i - 1] >= 'A' && text[i - 1] <= 'Z')) out += '_';
    out += lower(text.substr(i, 1));
  }
  return out;
}

std::string operator_from_suffix(std::string_view arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = identifier_at(arguments, i);
    if (word.empty()) continue;
    i += word.size();
    if (std::ranges::find(kMachinery, word) != std::end(kMachinery)) continue;
    for (const std::string_view suffix : kSuffixes) {
      if (word.size() > suffix.size() && word.ends_with(suffix))
        return snake(word.substr(0, word.size() - suffix.size()));
    }
  }
  return {};
}

// Type parameters of a functor or of its innermost lambda: the first bracket whose first element is an
// element type, and in it the first floating one ("bool, BFloat16" is a masked BFloat16).
std::vector<std::string_view> functor_types(std::string_view arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != '<' && arguments[i] != '(') continue;
    std::size_t end = i + 1;
    while (end < arguments.size() &&
           (is_identifier(arguments[end]) || arguments[end] == ':' || arguments[end] == ' '))
      ++end;
    if (end == arguments.size() || std::string_view(",>)").find(arguments[end]) == std::string_view::npos)
      continue;
    if (dtype_of(arguments.substr(i + 1, end - i - 1)).empty()) continue;
    return arguments_at(arguments, i + 1);
  }
  return {};
}

void read_functor(Context& c) {
  const std::string_view arguments = c.signature.template_args;
  const auto* row = std::ranges::find_if(kFunctors, [&](const Functor& functor) {
    return find_identifier(arguments, functor.pattern) != std::string_view::npos;
  });
  if (row != std::end(kFunctors)) {
    add_fused(c.out, row->op);
    if (!row->flag.empty()) c.out.flags.emplace_back(row->flag);
    if (row->kind != KernelKind::unknown) c.out.kind = row->kind;
  } else if (std::string op = operator_from_suffix(arguments); !op.empty()) {
    c.out.fused.push_back(std::move(op));
  }
  // One operand is a number from the host.
  for (const std::string_view scalar : {"AUnaryFunctor<", "BUnaryFunctor<", "BinaryOpScalarFunctor<"}) {
    if (contains(arguments, scalar) && !has_flag(c.out, "scalar")) c.out.flags.emplace_back("scalar");
  }

  const auto types = functor_types(arguments);
  if (types.empty()) return;
  std::string_view computed = dtype_of(types[0]);
  for (const std::string_view type : types) {
    if (is_floating(dtype_of(type))) {
      computed = dtype_of(type);
      break;
    }
  }
  // gpu_kernel_impl (as opposed to …_nocast) and LoadWithCast convert on the way in: the functor's type is
  // then not (all of) the inputs'.
  const bool casts = contains(arguments, "LoadWithCast") || contains(arguments, "gpu_kernel_impl<");
  if (casts) {
    c.out.flags.emplace_back("cast");
  } else {
    c.out.dtype = computed;
  }
  // Functors declare their result behind their operands; copies compute in the type they write.
  const bool copies = contains(arguments, "direct_copy_kernel_cuda");
  for (const std::string_view declares : {"BinaryFunctor<", "AUnaryFunctor<", "BUnaryFunctor<"}) {
    if (contains(arguments, declares) && types.size() > 2 && !casts) c.out.out_dtype = dtype_of(types[2]);
  }
  if (copies || (!casts && (contains(arguments, "CUDAFunctor") || contains(arguments, "GeluCUDA"))))
    c.out.out_dtype = computed;
  if (has_flag(c.out, "to_bf16")) c.out.out_dtype = "bf16";
  if (has_flag(c.out, "to_f16")) c.out.out_dtype = "f16";
}

// ReduceOp<input, operation, index, output, …>
void read_reduction(Context& c) {
  read_functor(c);
  constexpr std::string_view kReduceOp = "ReduceOp<";
  const std::size_t at = c.signature.template_args.find(kReduceOp);
  if (at == std::string_view::npos) return;
  const auto arguments = arguments_at(c.signature.template_args, at + kReduceOp.size());
  c.out.dtype = dtype_of(arguments[0]);
  if (arguments.size() > 3) c.out.out_dtype = dtype_of(arguments[3]);
}

// softmax_warp_forward<input, output, accumulator, log2 of the row, log softmax?, …>
void read_softmax(Context& c) {
  const auto arguments = arguments_at(c.signature.template_args, 0);
  c.out.dtype = first_floating_argument(c.signature.template_args);
  const bool logarithm =
      contains(c.signature.template_args, "LogSoftMax") ||
      (c.signature.base.starts_with("softmax_warp") && arguments.size() > 4 && arguments[4] == "true");
  std::string op = logarithm ? "log_softmax" : "softmax";
  if (contains(lower(c.signature.base), "backward")) op += "_backward";
  c.out.fused.push_back(op);
  c.out.short_name = op;
}

// vectorized_layer_norm_kernel<input, accumulator, RMS instead?>
void read_layer_norm(Context& c) {
  const auto arguments = arguments_at(c.signature.template_args, 0);
  c.out.dtype = first_floating_argument(c.signature.template_args);
  c.out.short_name = arguments.size() > 2 && arguments[2] == "true" ? "rms_norm" : "layer_norm";
  c.out.fused.push_back(c.out.short_name);
}

// Indices and raw bytes only: the element type is not in the name.
void no_types(Context&) {}

using enum KernelKind;
constexpr Rule kRules[] = {
    {"=vectorized_elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=unrolled_elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=elementwise_kernel_manual_unroll", "aten", pointwise, "", "", read_functor},
    {"=vectorized_templated_elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=unrolled_elementwise_kernel_for_multi_outputs", "aten", pointwise, "", "", read_functor},
    {"=elementwise_kernel_with_index", "aten", pointwise, "", "", read_functor},
    {"=modern_elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=legacy_elementwise_kernel", "aten", pointwise, "", "", read_functor},
    {"=reduce_kernel", "aten", reduction, "", "", read_reduction},
    {"=multi_tensor_apply_kernel", "aten", pointwise, "", "", read_functor},
    {"~index_elementwise_kernel", "aten", copy, "index", "index", no_types},
    {"=vectorized_gather_kernel", "aten", copy, "gather", "gather", no_types},
    {"~_scatter_gather_elementwise_kernel", "aten", copy, "scatter or gather", "", no_types},
    {"~CatArrayBatchedCopy", "aten", copy, "cat", "cat"},
    {"~indexSelect", "aten", copy, "index_select", "index_select"},
    {"~indexFunc", "aten", copy, "index_add", "index_add"},
    {"=indexing_backward_kernel", "aten", other, "index backward", "index_backward"},
    {"~embedding_backward", "aten", other, "embedding backward", "embedding_backward"},
    {"~roll_cuda_kernel", "aten", copy, "roll", "roll"},
    {"~flip_cuda_kernel", "aten", copy, "flip", "flip"},
    {"~triu_tril_kernel", "aten", pointwise, "triu or tril", ""},
    {"~layer_norm_grad_input", "aten", norm, "layer_norm backward", "layer_norm_backward"},
    {"~GammaBetaBackward", "aten", norm, "layer_norm backward", "layer_norm_backward"},
    {"~vectorized_layer_norm_kernel", "aten", norm, "", "", read_layer_norm},
    {"~LayerNormForward", "aten", norm, "", "", read_layer_norm},
    {"~RowwiseMoments", "aten", norm, "norm statistics", "moments"},
    {"~vectorized_rms_norm_kernel", "aten", norm, "rms_norm", "rms_norm"},
    {"~rms_norm_kernel", "aten", norm, "rms_norm", "rms_norm"},
    {"~GroupNorm", "aten", norm, "group_norm", "group_norm"},
    {"~batch_norm_backward", "aten", norm, "batch_norm backward", "batch_norm_backward"},
    {"~batch_norm_collect_statistics", "aten", norm, "batch_norm statistics", "batch_norm"},
    {"~batch_norm_transform_input", "aten", norm, "batch_norm", "batch_norm"},
    {"~batch_norm", "aten", norm, "batch_norm", "batch_norm"},
    {"~softmax_warp", "aten", reduction, "", "", read_softmax},
    {"~cunn_SoftMax", "aten", reduction, "", "", read_softmax},
    {"~cunn_SpatialSoftMax", "aten", reduction, "", "", read_softmax},
    {"~softMax", "aten", reduction, "", "", read_softmax},
    {"~nll_loss_forward", "aten", reduction, "nll_loss", "nll_loss"},
    {"~nll_loss_backward", "aten", pointwise, "nll_loss backward", "nll_loss_backward"},
    {"~fused_dropout_kernel", "aten", pointwise, "dropout", "native_dropout"},
    {"~masked_scale_kernel", "aten", pointwise, "dropout backward", "native_dropout_backward"},
    {"~distribution_elementwise", "aten", pointwise, "random", "random"},
    {"~max_pool_forward", "aten", other, "max_pool", "max_pool"},
    {"~max_pool_backward", "aten", other, "max_pool backward", "max_pool_backward"},
    {"~avg_pool", "aten", other, "avg_pool", "avg_pool"},
    {"~adaptive_average_pool", "aten", other, "adaptive_avg_pool", "adaptive_avg_pool"},
    {"~upsample_", "aten", other, "upsample", "upsample"},
    {"~conv_depthwise", "aten", convolution, "depthwise convolution", "convolution"},
    {"~im2col_kernel", "aten", copy, "im2col", "im2col"},
    {"~col2im", "aten", other, "col2im", "col2im"},
    {"~vol2col", "aten", copy, "vol2col", "im2col"},
    {"~tensor_kernel_scan", "aten", other, "scan", "cumsum"},
    {"~gatherTopK", "aten", other, "topk", "topk"},
    {"~gatherMedian", "aten", other, "median", "median"},
    {"~radixFindKthValues", "aten", other, "topk", "topk"},
    {"~computeBlockwise", "aten", other, "topk", "topk"},
    {"~bitonicSort", "aten", other, "sort", "sort"},
    {"^at_cuda_detail::cub::DeviceRadixSort", "aten", other, "sort", "sort", no_types},
    {"^at_cuda_detail::cub::DeviceScan", "aten", other, "scan", "cumsum", no_types},
    {"^at_cuda_detail::cub::DeviceReduce", "aten", reduction, "reduce", "", no_types},
    {"^at_cuda_detail::cub::DeviceSelect", "aten", other, "select", "nonzero", no_types},
    {"^at_cuda_detail::cub::", "aten", other, "", "", no_types},
    {"^at::native::", "aten", other, ""},
    {"^at::cuda::", "aten", other, ""},
};

}  // namespace

std::span<const Rule> aten_rules() {
  return kRules;
}

}  // namespace ingot::trace::names
