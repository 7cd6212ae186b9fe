// SPDX-License-Identifier: Apache-2.0
//
// ATen operators as torch.compile writes them into kernel names. An operator missing here is still found where it is one
// word; those with '_' inside must be listed.
#pragma once

#include <string_view>

namespace ingot::trace::names {

/// Operators that only relabel a tensor: no arithmetic, no new memory. They are left out of KernelName::fused. clone and
/// _to_copy are not views: they write.
inline constexpr std::string_view kTritonViews[] = {
    "view", "_unsafe_view", "reshape", "_reshape_alias", "t", "transpose", "permute", "split", "split_with_sizes", "chunk",
    "slice", "select", "expand", "expand_as", "unsqueeze", "squeeze", "alias", "detach", "as_strided", "unbind", "narrow",
    "flatten", "unflatten", "movedim", "view_as", "view_as_real", "view_as_complex", "diagonal", "unfold", "swapaxes",
    "numpy_T", "lift_fresh_copy", "lift_fresh",
};

inline constexpr std::string_view kTritonOps[] = {
    // arithmetic
    "abs", "add", "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "copysign", "div", "div_", "exp", "exp2", "expm1",
    "floor", "floor_divide", "fmod", "frac", "hypot", "lerp", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul",
    "neg", "pow", "reciprocal", "remainder", "round", "rsqrt", "rsub", "sign", "sqrt", "square", "sub", "trunc", "true_divide",
    "ceil", "cos", "cosh", "acos", "acosh", "sin", "sinh", "asin", "asinh", "tan", "tanh", "atan", "atan2", "atanh", "erf",
    "erfc", "erfinv", "logaddexp", "logaddexp2", "nan_to_num", "special_expm1", "polar", "ldexp", "logit", "xlogy",
    // comparison and bits
    "eq", "ne", "ge", "gt", "le", "lt", "where", "isnan", "isinf", "isfinite", "logical_and", "logical_not", "logical_or",
    "logical_xor", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    "__and__", "__or__", "__lshift__", "__rshift__",
    // activations
    "celu", "elu", "elu_backward", "gelu", "gelu_backward", "glu", "glu_backward", "hardsigmoid", "hardswish",
    "hardswish_backward", "hardtanh", "hardtanh_backward", "leaky_relu", "leaky_relu_backward", "log_sigmoid",
    "log_sigmoid_forward", "mish", "prelu", "relu", "relu6", "selu", "sigmoid", "sigmoid_backward", "silu", "silu_backward",
    "softplus", "softplus_backward", "tanh_backward", "threshold", "threshold_backward",
    // reductions and softmax
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "cumsum", "cumprod", "linalg_vector_norm", "logsumexp", "max",
    "mean", "median", "min", "norm", "prod", "std", "std_mean", "sum", "var", "var_mean", "_softmax", "_softmax_backward_data",
    "_log_softmax", "_log_softmax_backward_data", "softmax", "log_softmax", "_safe_softmax", "logcumsumexp", "topk", "sort",
    // normalisation
    "native_layer_norm", "native_layer_norm_backward", "layer_norm", "native_group_norm", "native_group_norm_backward",
    "group_norm", "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "batch_norm", "rms_norm",
    "_fused_rms_norm", "_fused_rms_norm_backward", "cudnn_batch_norm", "instance_norm",
    // losses and dropout
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "mse_loss", "mse_loss_backward",
    "nll_loss", "nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "smooth_l1_loss",
    "huber_loss", "l1_loss", "native_dropout", "native_dropout_backward", "dropout", "bernoulli", "rand", "randn", "randint",
    "rand_like", "randn_like", "inductor_random", "inductor_seeds", "inductor_lookup_seed",
    // data movement
    "_to_copy", "arange", "cat", "clone", "constant_pad_nd", "contiguous", "copy", "copy_", "diagonal_copy", "embedding",
    "embedding_dense_backward", "empty", "empty_like", "eye", "fill", "fill_", "flip", "full", "full_like", "gather", "index",
    "index_add", "index_copy", "index_fill", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put",
    "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "index_select", "masked_fill", "masked_scatter", "new_empty",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "reflection_pad1d", "reflection_pad2d", "replication_pad2d",
    "repeat", "repeat_interleave", "roll", "rot90", "scalar_tensor", "scatter", "scatter_", "scatter_add", "scatter_reduce",
    "select_backward", "select_scatter", "slice_backward", "slice_scatter", "stack", "tril", "triu", "zeros", "zeros_like",
    "new_empty_strided", "empty_strided", "_assert_async", "bucketize", "searchsorted", "pad",
    // matrix products, convolution, attention
    "addmm", "_addmm_activation", "baddbmm", "addbmm", "addmv", "bmm", "mm", "mv", "matmul", "linear", "dot", "_int_mm",
    "_scaled_mm", "_grouped_mm", "_scaled_grouped_mm", "convolution", "convolution_backward", "einsum",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "scaled_dot_product_attention", "flex_attention", "flex_attention_backward",
    // pooling and resampling
    "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "adaptive_avg_pool2d", "avg_pool2d", "avg_pool2d_backward",
    "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "_low_memory_max_pool2d_with_offsets",
    "_low_memory_max_pool2d_offsets_to_indices", "upsample_bilinear2d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_bicubic2d", "_upsample_bilinear2d_aa", "grid_sampler_2d", "pixel_shuffle", "pixel_unshuffle",
    // collectives, quantisation and custom operators
    "all_gather_into_tensor", "all_reduce", "reduce_scatter_tensor", "wait_tensor", "quantize_per_tensor",
    "dequantize_per_tensor", "quantize_per_channel", "dequantize_per_channel", "fake_quantize_per_tensor_affine",
    "convert_element_type", "moe_forward", "moe_forward_shared", "unified_attention", "unified_attention_with_output",
    "rotary_embedding", "fused_add_rms_norm", "silu_and_mul", "static_scaled_fp8_quant", "dynamic_scaled_fp8_quant",
    "auto_functionalized", "mamba_mixer2",
};

}  // namespace ingot::trace::names
