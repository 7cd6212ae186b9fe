// SPDX-License-Identifier: Apache-2.0
//
// Kernels of serving and training libraries, and of nobody in particular, by what their names say they do.
#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

struct Activation {
  std::string_view pattern, op;
};
// Functors of "activation and multiply" kernels, in libraries where the plain name means the exact form.
constexpr Activation kActivations[] = {
    {"gelu_tanh", "gelu_tanh"}, {"gelu_new", "gelu_tanh"},
    {"gelu_fast", "gelu_tanh"}, {"gelu_quick", "gelu_quick"},
    {"gelu", "gelu_erf"},       {"silu", "silu"},
    {"relu", "relu"},
};

void read_activation(Context& c) {
  c.out.dtype = first_floating_argument(c.signature.template_args);
  const auto* row = std::ranges::find_if(kActivations, [&](const Activation& activation) {
    return contains(c.signature.full, activation.pattern);
  });
  if (row != std::end(kActivations)) add_fused(c.out, row->op);
  if (contains(c.signature.base, "mul")) add_fused(c.out, "mul");
}

// ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…), ncclKernel_AllReduce_RING_LL_Sum_float(…)
constexpr TokenRule kNcclTokens[] = {
    {"ncclDevKernel", Meaning::drop},
    {"ncclKernel", Meaning::drop},
    {"t", Meaning::drop},  // of "int8_t"
    {"*", Meaning::flag},
};
void read_nccl(Context& c) {
  const Tokens tokens = read_tokens(c.word, kNcclTokens, c.out);
  if (!tokens.types_before.empty()) c.out.dtype = tokens.types_before[0];
  c.out.short_name = "nccl";
  if (c.out.flags.empty()) return;
  c.out.short_name += " " + c.out.flags.front();
  c.out.flags.erase(c.out.flags.begin());
}

// Input and output element types in front.
void read_in_out(Context& c) {
  const auto arguments = arguments_at(c.signature.template_args, 0);
  c.out.dtype = first_floating_argument(c.signature.template_args);
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (dtype_of(arguments[i]) != c.out.dtype || c.out.dtype.empty()) continue;
    c.out.out_dtype = dtype_of(arguments[i + 1]);
    return;
  }
}

struct Namespace {
  std::string_view pattern, family;
};
constexpr Namespace kNamespaces[] = {
    {"vllm::", "vllm"},
    {"flashinfer::", "flashinfer"},
    {"tensorrt_llm::", "tensorrt-llm"},
    {"moe::dev::", "tensorrt-llm"},
    {"ck_tile::", "ck"},
    {"ck::", "ck"},
    {"_ZN7ck_tile", "ck"},  // mangled, where the name does not demangle
    {"_ZN2ck", "ck"},
    {"aiter::", "aiter"},
    {"_ZN5aiter", "aiter"},
    {"sgl_", "sglang"},
    {"deep_ep::", "deepep"},
    {"transformer_engine::", "transformer-engine"},
    {"cutlass::", "cutlass"},
    {"cudnn::", "cudnn"},
    {"cublasLt::", "cublas"},
    {"thrust::", "thrust"},
    {"cub::", "cub"},
    {"at::", "aten"},
    {"c10::", "aten"},
    {"c10d::", "symmetric-memory"},
    {"marlin::", "marlin"},
    {"gptq_marlin::", "marlin"},
    {"multimem_", "symmetric-memory"},
    {"one_shot_all_reduce", "symmetric-memory"},
    {"two_shot_all_reduce", "symmetric-memory"},
    {"nccl", "nccl"},
    {"triton_", "triton"},
    {"rocblas_", "rocblas"},
    {"nvshmem", "nvshmem"},
};

using enum KernelKind;

// Matched in the qualified name, lower-cased, '_' left out; first match wins, so the special stands before
// the general.
constexpr Rule kRoles[] = {
    {"nccldevkernel", "nccl", communication, "", "", read_nccl},
    {"ncclkernel", "nccl", communication, "", "", read_nccl},
    {"ncclsymk", "nccl", communication, "nccl symmetric"},
    {"allreducefusedrmsnorm", "", communication, "all-reduce rms_norm", "rms_norm"},
    {"allreducefusion", "", communication, "all-reduce fused", ""},
    {"allreduce", "", communication, "all-reduce"},
    {"reducescatter", "", communication, "reduce-scatter"},
    {"allgather", "", communication, "all-gather"},
    {"alltoall", "", communication, "all-to-all"},
    {"crossdevicereduce", "", communication, "all-reduce"},
    {"nvshmem", "", communication, "nvshmem"},
    {"deepep::", "", communication, "expert dispatch or combine"},
    {"fusedaddrmsnorm", "", norm, "add rms_norm", "add rms_norm"},
    {"rmsnormbackward", "", norm, "rms_norm backward", "rms_norm_backward"},
    {"rmsnormbwd", "", norm, "rms_norm backward", "rms_norm_backward"},
    {"rmsnorm", "", norm, "rms_norm", "rms_norm"},
    {"layernormbackward", "", norm, "layer_norm backward", "layer_norm_backward"},
    {"layernormbwd", "", norm, "layer_norm backward", "layer_norm_backward"},
    {"lnbwdkernel", "", norm, "layer_norm backward", "layer_norm_backward"},
    {"layernorm", "", norm, "layer_norm", "layer_norm"},
    {"lnfwdkernel", "", norm, "layer_norm", "layer_norm"},
    {"groupnorm", "", norm, "group_norm", "group_norm"},
    {"batchnorm", "", norm, "batch_norm", "batch_norm"},
    {"rotaryembedding", "", pointwise, "rotary_embedding", "rotary_embedding"},
    {"applyrope", "", pointwise, "rotary_embedding", "rotary_embedding"},
    {"reshapeandcache", "", copy, "reshape and cache", "copy"},
    {"concatandcache", "", copy, "concat and cache", "copy"},
    {"appendpagedkvcache", "", copy, "append kv cache", "copy"},
    {"copyblocks", "", copy, "copy blocks", "copy"},
    {"siluandmulscaled", "", pointwise, "silu\u00b7mul quantise", "silu mul", read_in_out},
    {"actandmul", "", pointwise, "", "", read_activation},
    {"activationkernel", "", pointwise, "", "", read_activation},
    {"topkgating", "", other, "topk gating (moe)", "softmax topk"},
    {"moealign", "", other, "moe align"},
    {"moesorting", "", other, "moe sorting"},
    {"routing", "", other, "moe routing"},
    {"finalizekernel", "", reduction, "moe finalize"},
    {"finalizemoe", "", reduction, "moe finalize"},
    {"expandinputrows", "", copy, "moe expand rows", "copy"},
    {"moesum", "", reduction, "moe sum"},
    {"fusedmoe", "", gemm, "fused moe gemm"},
    {"marlinrepack", "", copy, "repack weights", "copy"},
    {"marlin", "", gemm, "marlin gemm"},
    {"attention", "", attention, "attention"},
    {"attn", "", attention, "attention"},
    {"fmha", "", attention, "attention"},
    {"splitkreduce", "", gemm_helper, "splitK reduce"},
    {"gemv", "", gemm, "gemv"},
    {"gemm", "", gemm, ""},
    {"matmul", "", gemm, ""},
    {"quantizewithblocksize", "", other, "block quantise", "quantize"},
    {"scaledfp8quant", "", other, "fp8 quantise", "quantize", read_in_out},
    {"fp8quant", "", other, "fp8 quantise", "quantize"},
    {"dequant", "", other, "dequantise", "dequantize"},
    {"quantize", "", other, "quantise", "quantize"},
    {"quant", "", other, "quantise", "quantize"},
    {"convfwd", "", convolution, "convolution"},
    {"convolution", "", convolution, "convolution"},
    {"conv2d", "", convolution, "convolution"},
    {"conv1d", "", convolution, "convolution"},
    {"groupedconv", "", convolution, "convolution"},
    {"winograd", "", convolution, "winograd convolution"},
    {"wgrad", "", convolution, "convolution wgrad"},
    {"dgrad", "", convolution, "convolution dgrad"},
    {"crossentropy", "", reduction, "cross_entropy", "cross_entropy"},
    {"logsoftmax", "", reduction, "log_softmax", "log_softmax"},
    {"softmax", "", reduction, "softmax", "softmax"},
    {"sampling", "", other, "sampling"},
    {"radixsort", "", other, "sort", "sort"},
    {"topk", "", other, "topk", "topk"},
    {"transpose", "", copy, "transpose", "transpose"},
    {"permute", "", copy, "permute", "permute"},
    {"gather", "", copy, "gather", "gather"},
    {"embeddingbackward", "", other, "embedding backward", "embedding_backward"},
    {"embedding", "", copy, "embedding", "embedding"},
    {"swiglubackward", "", pointwise, "swiglu backward", "swiglu_backward"},
    {"swiglu", "", pointwise, "swiglu", "swiglu"},
    {"geglutanh", "", pointwise, "gelu_tanh\u00b7mul", "gelu_tanh mul"},
    {"geglu", "", pointwise, "geglu", "geglu"},
    {"gelubackward", "", pointwise, "gelu backward", "gelu_backward"},
    {"gelubwd", "", pointwise, "gelu backward", "gelu_backward"},
    {"gelutanh", "", pointwise, "gelu_tanh", "gelu_tanh"},
    {"gelu", "", pointwise, "gelu", "gelu"},
    {"silubackward", "", pointwise, "silu backward", "silu_backward"},
    {"silu", "", pointwise, "silu", "silu"},
    {"relubackward", "", pointwise, "relu backward", "relu_backward"},
    {"leakyrelu", "", pointwise, "leaky_relu", "leaky_relu"},
    {"relu", "", pointwise, "relu", "relu"},
    {"dropout", "", pointwise, "dropout", "dropout"},
    {"casttranspose", "", copy, "cast transpose", "cast transpose"},
    {"castkernel", "", copy, "cast", "cast"},
    {"memcpy", "", copy, "copy", "copy"},
    {"fillbuffer", "", copy, "fill", "fill"},
    {"memset", "", copy, "fill", "fill"},
    {"adam", "", other, "adam", "adam"},
    {"devicescan", "", other, "scan"},
    {"devicereduce", "", reduction, "reduce"},
};

}  // namespace

std::span<const Rule> role_rules() {
  return kRoles;
}

std::string_view family_of_namespace(std::string_view qualified_name) {
  for (const Namespace& row : kNamespaces) {
    if (qualified_name.starts_with(row.pattern)) return row.family;
  }
  return {};
}

}  // namespace ingot::trace::names
