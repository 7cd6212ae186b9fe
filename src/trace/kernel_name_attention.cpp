// SPDX-License-Identifier: Apache-2.0
//
// Attention and cuDNN.
#include <fmt/format.h>

#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

using enum Meaning;

// Flash_fwd_kernel_traits<head dimension, rows of q, rows of k and v, warps, …, element>.
void read_flash(Context& c) {
  const std::string_view text = c.signature.full;
  c.out.dtype = first_floating_argument(c.signature.template_args);
  const std::size_t at = text.find("_kernel_traits<");
  if (at == std::string_view::npos) return;
  const auto arguments = arguments_at(text, text.find('<', at) + 1);
  std::vector<int> numbers;
  for (const std::string_view argument : arguments) {
    const auto number = match("#", argument);
    if (!number) break;
    numbers.push_back(number->value[0]);
  }
  if (numbers.size() >= 3) c.out.tile = TileShape{numbers[1], numbers[2], numbers[0]};
}

// fmha_cutlassF_bf16_aligned_64x64_rf_sm80
constexpr TokenRule kFmhaTokens[] = {
    {"fmha", drop}, {"cutlassF", drop}, {"cutlassB", drop}, {"aligned", flag},
    {"#x#", tile},  {"sm#", arch},      {"*", drop},
};

void read_fmha_cutlass(Context& c) {
  const Tokens tokens = read_tokens(c.word, kFmhaTokens, c.out);
  if (!tokens.types_before.empty()) c.out.dtype = tokens.types_before[0];
}

// fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext: words run together,
// each with its value behind it.
void read_fmha_gen(Context& c) {
  const std::string_view word = c.word;
  const std::size_t kernel = word.find("Kernel");
  if (word.starts_with("fmhaSm") && kernel != std::string_view::npos) {
    c.out.arch = fmt::format("sm{}", word.substr(6, kernel - 6));
  }
  const auto value = [&](std::string_view key, std::size_t from) -> std::string_view {
    const std::size_t at = from == std::string_view::npos ? from : word.find(key, from);
    return at == std::string_view::npos ? std::string_view() : word.substr(at + key.size());
  };
  const auto type = [](std::string_view text) -> std::string_view {
    for (const std::string_view spelling : {"E4m3", "E2m1", "Bfloat16", "Fp16"}) {
      if (text.starts_with(spelling)) return dtype_of(spelling);
    }
    return {};
  };
  const auto number = [](std::string_view text) {
    const auto found = match("#*", text);
    return found ? found->value[0] : 0;
  };
  c.out.dtype = type(value("_Qkv", 0));
  const std::size_t output = word.find('O', std::min(word.size(), word.find("_Qkv")));
  if (output != std::string_view::npos) c.out.out_dtype = type(word.substr(output + 1));
  const std::size_t tile = word.find("VarSeqQ");
  if (tile != std::string_view::npos) {
    const int m = number(value("SeqQ", tile)), n = number(value("Kv", tile));
    if (m > 0 && n > 0) c.out.tile = TileShape{m, n, number(value("H", word.find('O')))};
  }
  for (const std::string_view flag :
       {"PagedKv", "SlidingOrChunkedCausal", "Causal", "Dense", "Persistent", "Context", "Generation"}) {
    if (contains(word, flag) && !(flag == "Causal" && has_flag(c.out, "SlidingOrChunkedCausal")))
      c.out.flags.emplace_back(flag);
  }
}

// cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0. The
// "f16" of these names also runs bf16, so it says no type.
constexpr TokenRule kCudnnSdpaTokens[] = {
    {"sm#", arch}, {"f16", drop}, {"#x#x#", triple}, {"cga#x#x#", cluster}, {"*", drop},
};

void read_cudnn_sdpa(Context& c) {
  // The second triple counts warps; only cga names the cluster.
  read_tokens(c.word, kCudnnSdpaTokens, c.out);
  if (!contains(c.word, "_cga")) c.out.cluster_m = c.out.cluster_n = std::nullopt;
  if (contains(c.word, "bprop")) c.out.short_name = "flash attention bwd";
}

void read_anywhere(Context& c) {
  c.out.dtype = first_floating_argument(c.signature.full);
}
void no_types(Context&) {}

constexpr Rule kAttention[] = {
    {"*flash_fwd_splitkv_combine", "flash-attention", KernelKind::attention, "flash attention fwd combine",
     "", read_flash},
    {"*flash_fwd_splitkv", "flash-attention", KernelKind::attention, "flash attention fwd splitKV", "",
     read_flash},
    {"*flash_fwd", "flash-attention", KernelKind::attention, "flash attention fwd", "", read_flash},
    {"*flash_bwd_dot_do_o", "flash-attention", KernelKind::attention, "flash attention bwd dot", "",
     read_flash},
    {"*flash_bwd_convert", "flash-attention", KernelKind::attention, "flash attention bwd convert", "",
     read_flash},
    {"*flash_bwd", "flash-attention", KernelKind::attention, "flash attention bwd", "", read_flash},
    {"FlashAttnFwdCombine", "flash-attention", KernelKind::attention, "flash attention fwd combine", "",
     read_anywhere},
    {"FlashAttnFwd", "flash-attention", KernelKind::attention, "flash attention fwd", "", read_anywhere},
    {"FlashAttnBwd", "flash-attention", KernelKind::attention, "flash attention bwd", "", read_anywhere},
    {"fmha_cutlassF", "mem-efficient", KernelKind::attention, "mem-efficient attention fwd", "",
     read_fmha_cutlass},
    {"fmha_cutlassB", "mem-efficient", KernelKind::attention, "mem-efficient attention bwd", "",
     read_fmha_cutlass},
    {"^fmhaSm", "tensorrt-llm", KernelKind::attention, "flash attention fwd", "", read_fmha_gen},
    {"^fmha_", "fmha", KernelKind::attention, "flash attention fwd", "", no_types},
    {"*_sdpa_", "cudnn", KernelKind::attention, "flash attention fwd", "", read_cudnn_sdpa},
    {"^cudnn_generated_fort_native_sdpa", "cudnn", KernelKind::attention, "flash attention fwd", "",
     read_cudnn_sdpa},
    {"=attn_fwd", "triton", KernelKind::attention, "flash attention fwd", "", no_types},
    {"=_attn_fwd", "triton", KernelKind::attention, "flash attention fwd", "", no_types},
    {"=attn_fwd_inner", "triton", KernelKind::attention, "flash attention fwd", "", no_types},
    {"~bwd_kernel_dk_dv", "triton", KernelKind::attention, "flash attention bwd", "", no_types},
    {"~bwd_kernel_dq", "triton", KernelKind::attention, "flash attention bwd", "", no_types},
    {"~_attn_bwd", "triton", KernelKind::attention, "flash attention bwd", "", no_types},
    {"~kernel_unified_attention", "vllm", KernelKind::attention, "unified attention", "", no_types},
    {"=reduce_segments", "vllm", KernelKind::attention, "unified attention reduce", "", no_types},
    {"~BatchPrefillWith", "flashinfer", KernelKind::attention, "flash attention prefill", "", read_anywhere},
    {"~SinglePrefillWith", "flashinfer", KernelKind::attention, "flash attention prefill", "", read_anywhere},
    {"~BatchDecodeWith", "flashinfer", KernelKind::attention, "attention decode", "", read_anywhere},
    {"~SingleDecodeWith", "flashinfer", KernelKind::attention, "attention decode", "", read_anywhere},
    {"~PersistentVariableLengthMergeStates", "flashinfer", KernelKind::attention, "attention merge states",
     "", read_anywhere},
    {"~paged_attention_v2_reduce", "vllm", KernelKind::attention, "paged attention reduce", "", nullptr},
    {"~paged_attention", "vllm", KernelKind::attention, "paged attention", "", nullptr},
    {"~merge_attn_states", "vllm", KernelKind::attention, "attention merge states", "", nullptr},
    {"^FlashMLA", "flash-mla", KernelKind::attention, "flash mla", "", read_anywhere},
    {"*flash_mla", "flash-mla", KernelKind::attention, "flash mla", "", read_anywhere},
};

constexpr Rule kCudnn[] = {
    {"~bn_fw", "cudnn", KernelKind::norm, "batch_norm", "batch_norm"},
    {"~bn_bw", "cudnn", KernelKind::norm, "batch_norm bwd", "batch_norm_backward"},
    {"~nchwToNhwc", "cudnn", KernelKind::copy, "nchw to nhwc", "copy"},
    {"~nhwcToNchw", "cudnn", KernelKind::copy, "nhwc to nchw", "copy"},
    {"~nhwcToFoldedNhwc", "cudnn", KernelKind::copy, "fold nhwc", "copy"},
    {"~scalePackedTensor", "cudnn", KernelKind::pointwise, "scale tensor"},
    {"cask_cudnn", "cudnn", KernelKind::convolution, "convolution offsets", "", no_types},
    {"^cudnn::winograd", "cudnn", KernelKind::convolution, "winograd convolution"},
    {"=dgrad_engine", "cudnn", KernelKind::convolution, "convolution dgrad"},
    {"~dgrad2d", "cudnn", KernelKind::convolution, "convolution dgrad"},
    {"~wgrad_alg", "cudnn", KernelKind::convolution, "convolution wgrad"},
    {"~wgrad2d", "cudnn", KernelKind::convolution, "convolution wgrad"},
    {"~reduce_wgrad", "cudnn", KernelKind::convolution, "convolution wgrad reduce"},
    {"~implicit_convolve", "cudnn", KernelKind::convolution, "implicit gemm convolution"},
    {"~explicit_convolve", "cudnn", KernelKind::convolution, "convolution"},
    {"~convolve_common_engine", "cudnn", KernelKind::convolution, "convolution"},
    {"~precomputed_convolve", "cudnn", KernelKind::convolution, "implicit gemm convolution"},
    {"~conv2d_grouped_direct", "cudnn", KernelKind::convolution, "grouped convolution"},
    {"~fft2d_", "cudnn", KernelKind::convolution, "fft convolution"},
    {"~pooling_", "cudnn", KernelKind::other, "pooling"},
    {"~softmax_fw", "cudnn", KernelKind::reduction, "softmax", "softmax"},
    {"~softmax_bw", "cudnn", KernelKind::reduction, "softmax bwd", "softmax_backward"},
    {"^cudnn::ops::", "cudnn", KernelKind::other, ""},
    {"^cudnn::cnn::", "cudnn", KernelKind::convolution, "convolution"},
};

}  // namespace

std::span<const Rule> attention_rules() {
  return kAttention;
}
std::span<const Rule> cudnn_rules() {
  return kCudnn;
}

}  // namespace ingot::trace::names
