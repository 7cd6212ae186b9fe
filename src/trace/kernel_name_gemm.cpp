// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's GEMM names: nvjet, CUTLASS, cuBLAS, xmma, gemv; TensorRT-LLM's batched GEMMs; DeepGEMM.
#include <fmt/format.h>

#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

using enum Meaning;

// nvjet: types, tile, k × stages, cluster in this order among themselves, everything else anywhere. Later
// generations (sm120) write tile, stages, warp tile instead.
constexpr TokenRule kNvjetTokens[] = {
    {"nvjet", drop},     {"sm#*", arch},  {"#x#x#", wide_triple},  {"#x#", pair},
    {"#", stages},       {"%%%", layout}, {"%%%%", layout},        {"splitK", split_k},
    {"splitk", split_k}, {"bias", bias},  {"h", flag, "raster_h"}, {"v", flag, "raster_v"},
    {"*", flag},
};

// CUTLASS and cuBLAS. "relu" is a capability of the compiled epilogue, and so is "bias": whether they run is
// a launch argument, so neither is claimed as fused.
constexpr TokenRule kCutlassTokens[] = {
    {"cutlass", drop},
    {"cutlass3x", drop},
    {"sm#*", arch},
    {"tensorop", drop},
    {"bstensorop", flag, "block_scaled"},
    {"sptensorop", flag, "sparse"},
    {"wmma", flag},
    {"simt", flag},
    {"stages", drop},
    {"block", drop},
    {"scaled", drop},
    {"align#", alignment},
    {"%%", layout},
    {"%%%", layout},
    {"#x#x#", triple},
    {"#x#", pair},
    {"#", stages},
    {"splitK", split_k},
    {"stream", flag, "stream_k"},
    {"k", drop},
    {"f2f", drop},
    {"v#", drop},
    {"*", flag},
};

constexpr TokenRule kXmmaTokens[] = {
    {"xmma", drop},
    {"sm#*", arch},
    {"gemm", drop},
    {"implicit", drop},
    {"fprop", flag},
    {"dgrad", flag},
    {"wgrad", flag},
    {"sparse", flag},
    {"%%", layout},
    {"%", drop},  // layout of the output
    {"tilesize#x#x#", tile},
    {"stage#", stages},
    {"warpsize#x#x#", drop},
    {"warpgroupsize#x#x#", drop},
    {"cga#x#x#", cluster},
    {"tensor#x#x#", drop},
    {"sptensor#x#x#", drop},
    {"execute", drop},
    {"kernel", drop},
    {"5x", drop},
    {"51", drop},
    {"cublas", drop},
    {"cudnn", drop},
    {"trt", drop},
    {"g#", drop},
    {"*", flag},
};

// bmm_<out>_<a><b>_<accumulator>_t<tile>u<unroll>_s<stages>_…; biasM adds a bias along M.
constexpr TokenRule kBatchedTokens[] = {
    {"bmm", drop},
    {"gemm", drop},
    {"t#x#x#*", tile},
    {"s#", stages},
    {"cga#x#x#", cluster},
    {"%%", layout},
    {"sm#*", arch},
    {"biasM", bias},
    {"biasN", bias},
    {"swiGlu", fused, "swiglu"},
    {"geGlu", fused, "geglu"},
    {"relu2", fused, "relu2"},
    {"splitK#", split_k},
    {"transOut", flag},
    {"dynBatch", flag},
    {"*", drop},
};

// The first letter of a math core is the accumulator.
std::string_view accumulator_of(char letter) {
  switch (letter) {
    case 's':
      return "f32";
    case 'h':
      return "f16";
    case 'd':
      return "f64";
    case 'i':
      return "i32";
    default:
      return {};
  }
}

// "s1688tf32gemm" → "tf32": the type the tensor core multiplies in, where it is not the stored one.
std::string_view core_intermediate(std::string_view core) {
  std::size_t begin = 1;
  while (begin < core.size() && ((core[begin] >= '0' && core[begin] <= '9') || core[begin] == 'x')) ++begin;
  for (const std::string_view type : {"tf32", "bf16", "f16"}) {
    if (core.substr(begin).starts_with(type)) return type;
  }
  return {};
}

// CUTLASS 2 writes <output>_<core>_<input> and leaves out a type that equals the accumulator's.
void types_around_core(const Tokens& tokens, KernelName& out) {
  if (tokens.core.empty()) return;
  const std::string_view accumulator = accumulator_of(tokens.core[0]);
  const std::string_view intermediate = core_intermediate(tokens.core);
  const auto& after = tokens.types_after;
  out.dtype = after.empty() ? std::string(accumulator)
                            : operands(after[0], after.size() > 1 ? after[1] : std::string_view());
  if (intermediate == "tf32") {
    out.dtype = "tf32";
  } else if (!intermediate.empty()) {
    out.flags.push_back(fmt::format("math_{}", intermediate));
  }
  out.out_dtype = tokens.types_before.empty() ? accumulator : tokens.types_before.back();
}

// A name that only begins like the family's is none of it.
void forget(KernelName& out) {
  out = KernelName();
}

bool convolves(std::string_view core) {
  return core.ends_with("fprop") || core.ends_with("dgrad") || core.ends_with("wgrad") ||
         core.ends_with("cudnn");
}

void read_cutlass(Context& c) {
  std::string_view word = c.word;
  if (const auto number = match("cutlass_#_*", word)) {  // cutlass_80_… : the architecture as a bare number
    c.out.arch = fmt::format("sm{}", number->value[0]);
    word.remove_prefix(word.find('_', 8));
  }
  const Tokens tokens = read_tokens(word, kCutlassTokens, c.out);
  if (word.starts_with("cutlass3x") && tokens.types_after.size() >= 5) {  // a, b, accumulator, c, d
    c.out.dtype = operands(tokens.types_after[0], tokens.types_after[1]);
    if (c.out.dtype == "f32" && core_intermediate(tokens.core) == "tf32") c.out.dtype = "tf32";
    c.out.out_dtype = tokens.types_after[4];
  } else {
    types_around_core(tokens, c.out);
  }
  if (tokens.core.empty()) forget(c.out);
  if (convolves(tokens.core)) c.out.kind = KernelKind::convolution;
  if (c.out.stages == 0) c.out.stages.reset();  // 0: chosen by the builder, not stated
}

// ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn, volta_sgemm_64x64_nn,
// cudnn_infer_volta_scudnn_…
void read_cublas(Context& c) {
  std::string_view word = c.word;
  for (const std::string_view prefix : {"cudnn_infer_", "cudnn_train_", "trt_"}) {
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  }
  c.out.arch = word.substr(0, word.find('_'));
  if (const std::size_t next = word.find('_'); next != std::string_view::npos) word.remove_prefix(next + 1);
  const Tokens tokens = read_tokens(word, kCutlassTokens, c.out);
  types_around_core(tokens, c.out);
  if (tokens.core.empty() && c.out.family == "cublas") forget(c.out);
  if (convolves(tokens.core)) {
    c.out.kind = KernelKind::convolution;
    c.out.family = "cudnn";
  }
}

// sgemm_32x32x32_NN_vec: no architecture in front.
void read_plain_gemm(Context& c) {
  types_around_core(read_tokens(c.word, kCutlassTokens, c.out), c.out);
}

// sm80_xmma_gemm_f32f32_tf32f32_f32_…: stored input and output, multiplied and accumulated type, epilogue
// type.
void read_xmma(Context& c) {
  const Tokens tokens = read_tokens(c.word, kXmmaTokens, c.out);
  if (!tokens.runs.empty()) {
    c.out.dtype = tokens.runs[0].front();
    c.out.out_dtype = tokens.runs[0].back();
    if (tokens.runs.size() > 1 && tokens.runs[1].front() == "tf32") c.out.dtype = "tf32";
  }
  if (contains(c.word, "fprop") || contains(c.word, "dgrad") || contains(c.word, "wgrad")) {
    c.out.kind = KernelKind::convolution;
  }
  if (contains(c.word, "execute_split_k_kernel")) c.out.kind = KernelKind::gemm_helper;
  // Two-word switches arrive as single tokens; put them back together.
  for (const std::string_view phrase : {"segment_k_off", "segment_k", "split_k"}) {
    if (!contains(c.word, phrase) || has_flag(c.out, "segment_k_off")) continue;
    std::erase_if(c.out.flags, [&](const std::string& flag) {
      return contains(fmt::format("_{}_", phrase), fmt::format("_{}_", flag));
    });
    c.out.flags.emplace_back(phrase);
  }
}

struct TypeLetter {
  char letter;
  std::string_view dtype;
};
constexpr TypeLetter kNvjetTypes[] = {{'t', "bf16"}, {'h', "f16"}, {'s', "f32"},
                                      {'d', "f64"},  {'q', "fp8"}, {'o', "fp4"}};

std::string_view nvjet_type(char letter) {
  for (const TypeLetter& row : kNvjetTypes) {
    if (row.letter == letter) return row.dtype;
  }
  return {};
}

// Type tokens: input, accumulator, output ("tst"), or a, b, c, accumulator, output ("qqtst").
bool is_nvjet_types(std::string_view token) {
  return (token.size() == 3 || token.size() == 5) &&
         std::ranges::all_of(token, [](char letter) { return !nvjet_type(letter).empty(); });
}

void read_nvjet(Context& c) {
  read_tokens(c.word, kNvjetTokens, c.out);
  for (const std::string_view token : split(c.word, '_')) {
    if (!is_nvjet_types(token)) continue;
    c.out.dtype = token.size() == 3 ? std::string(nvjet_type(token[0]))
                                    : operands(nvjet_type(token[0]), nvjet_type(token[1]));
    c.out.out_dtype = nvjet_type(token.back());
    std::erase(c.out.flags, token);
    break;
  }
}

void read_batched(Context& c) {
  read_tokens(c.word, kBatchedTokens, c.out);
  const auto tokens = split(c.word, '_');
  if (tokens.size() < 4) return;
  c.out.out_dtype = dtype_of(tokens[1]);
  // Both operands in one token where they differ: "MxE2m1MxE4m3".
  const std::string_view pair = tokens[2];
  c.out.dtype = dtype_of(pair);
  for (std::size_t cut = 1; c.out.dtype.empty() && cut < pair.size(); ++cut) {
    const std::string_view a = dtype_of(pair.substr(0, cut)), b = dtype_of(pair.substr(cut));
    if (!a.empty() && !b.empty()) c.out.dtype = operands(a, b);
  }
}

// Vector kernels carry the stored type in a tensor argument; the leading ones are indices and the
// accumulator.
void read_gemv(Context& c) {
  const std::string_view text = c.signature.full;
  for (std::size_t at = 0;
       c.out.dtype.empty() && (at = text.find("cublasGemvTensor", at)) != std::string_view::npos;) {
    at += identifier_at(text, at).size();
    if (at < text.size() && text[at] == '<') c.out.dtype = dtype_at(text, at + 1);
  }
  if (c.out.dtype.empty()) c.out.dtype = first_floating_argument(c.signature.template_args);
  for (const std::string_view token : split(c.signature.base, '_')) {
    if (match("%%", token)) c.out.layout = lower(token);
  }
}

struct EpilogueFunctor {
  std::string_view type, op;
};
// Functors an epilogue was compiled with; unlike the "relu" of a kernel's name they always run.
constexpr EpilogueFunctor kEpilogueFunctors[] = {
    {"GELU_taylor", "gelu_tanh"},
    {"GELU", "gelu_erf"},
    {"LinearCombinationGELU", "gelu_erf"},
    {"ReLu", "relu"},
    {"ReLU", "relu"},
    {"LinearCombinationRelu", "relu"},
    {"SiLu", "silu"},
    {"LinearCombinationSilu", "silu"},
    {"Sigmoid", "sigmoid"},
    {"LinearCombinationSigmoid", "sigmoid"},
};

// The numbers of "cute::tuple<cute::C<128>, …>" or "GemmShape<128, 128, 32>" from behind its bracket.
std::vector<int> shape_at(std::string_view text, std::size_t begin) {
  std::vector<int> out;
  for (std::string_view element : arguments_at(text, begin)) {
    if (const std::size_t open = element.find('<'); open != std::string_view::npos)
      element.remove_prefix(open + 1);
    if (element.starts_with("(int)")) element.remove_prefix(5);
    if (const auto number = match("#*", element)) out.push_back(number->value[0]);
  }
  return out;
}

void set_tile(KernelName& out, const std::vector<int>& shape) {
  if (shape.size() == 3) out.tile = TileShape{shape[0], shape[1], shape[2]};
}

// CUTLASS templates spelled out. Version 3: MainloopSm90…<stages, cluster shape, schedule>, tile shape, a, …;
// version 2: …<GemmShape<tile>, …, element, …>.
void read_cutlass_template(Context& c) {
  const std::string_view text = c.signature.full;
  for (const EpilogueFunctor& row : kEpilogueFunctors) {
    const std::size_t at = find_identifier(text, row.type);
    if (at == std::string_view::npos || identifier_at(text, at) != row.type) continue;
    add_fused(c.out, row.op);
    break;
  }
  c.out.dtype = first_floating_argument(text);
  const std::size_t mainloop = text.find("MainloopSm");
  if (mainloop == std::string_view::npos) {
    constexpr std::string_view kShape = "GemmShape<";
    if (const std::size_t at = text.find(kShape); at != std::string_view::npos) {
      set_tile(c.out, shape_at(text, at + kShape.size()));
    }
    return;
  }
  const std::string_view name = identifier_at(text, mainloop);
  if (const auto arch = match("MainloopSm#*", name)) c.out.arch = fmt::format("sm{}", arch->value[0]);
  const std::size_t open = mainloop + name.size() + 1;
  if (open >= text.size()) return;
  if (const auto stages = match("#", arguments_at(text, open)[0])) c.out.stages = stages->value[0];
  constexpr std::string_view kTuple = "cute::tuple<";
  const std::size_t cluster = text.find(kTuple, open);
  const std::size_t tile = cluster == std::string_view::npos ? cluster : text.find(kTuple, cluster + 1);
  if (tile == std::string_view::npos) return;
  if (const auto shape = shape_at(text, cluster + kTuple.size()); shape.size() == 3) {
    c.out.cluster_m = shape[0];
    c.out.cluster_n = shape[1];
  }
  set_tile(c.out, shape_at(text, tile + kTuple.size()));
  c.out.dtype = first_floating_argument(text.substr(tile));
}

void no_types(Context&) {}

void read_fp8(Context& c) {
  c.out.dtype = "fp8";
}

constexpr Rule kRules[] = {
    {"^nvjet", "nvjet", KernelKind::gemm, "", "", read_nvjet},
    {"cutlass3x_", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_tensorop", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_simt", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_wmma", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_7", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_8", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"cutlass_9", "cutlass", KernelKind::gemm, "", "", read_cutlass},
    {"*_xmma_", "xmma", KernelKind::gemm, "", "", read_xmma},
    {"^maxwell_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^pascal_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^volta_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^turing_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^ampere_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^hopper_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^trt_", "cublas", KernelKind::gemm, "", "", read_cublas},
    {"^cudnn_infer_", "cudnn", KernelKind::convolution, "", "", read_cublas},
    {"^cudnn_train_", "cudnn", KernelKind::convolution, "", "", read_cublas},
    {"~splitKreduce_kernel", "cublas", KernelKind::gemm_helper, "splitK reduce", "", no_types},
    {"cask_cublas::computeOffsets", "cublas", KernelKind::gemm_helper, "gemm offsets", "", no_types},
    {"^cublasLt::epilogue", "cublas", KernelKind::gemm_helper, "gemm epilogue", "", no_types},
    {"^cublasLt::globalKernel", "cublas", KernelKind::gemm_helper, "gemm epilogue", "", no_types},
    {"^internal::gemvx", "cublas", KernelKind::gemm, "gemv", "", read_gemv},
    {"~gemv", "cublas", KernelKind::gemm, "gemv", "", read_gemv},
    {"~gemmSN_", "cublas", KernelKind::gemm, "gemm small n", "", read_gemv},
    {"=gemmk1_kernel", "cublas", KernelKind::gemm, "gemm k=1", "", read_gemv},
    {"=gemm_kernel1x1", "cublas", KernelKind::gemm, "gemm 1x1", "", read_gemv},
    {"~gemm_kernel2x2", "cublas", KernelKind::gemm, "gemm 2x2", "", read_gemv},
    {"=dot_kernel", "cublas", KernelKind::gemm, "dot", "", read_gemv},
    {"=reduce_1Block_kernel", "cublas", KernelKind::gemm_helper, "dot reduce", "", no_types},
    {"~sgemm_largek", "cublas", KernelKind::gemm, "sgemm large k", "", read_gemv},
    {"^sgemm_", "cublas", KernelKind::gemm, "", "", read_plain_gemm},
    {"^dgemm_", "cublas", KernelKind::gemm, "", "", read_plain_gemm},
    {"^hgemm_", "cublas", KernelKind::gemm, "", "", read_plain_gemm},
    {"~axpy_kernel", "cublas", KernelKind::pointwise, "axpy"},
    {"~scal_kernel", "cublas", KernelKind::pointwise, "scal"},
    {"^bmm_", "tensorrt-llm", KernelKind::gemm, "", "", read_batched},
    {"^gemm_Bfloat16_", "tensorrt-llm", KernelKind::gemm, "", "", read_batched},
    {"^gemm_Fp", "tensorrt-llm", KernelKind::gemm, "", "", read_batched},
    {"deep_gemm::transpose", "deepgemm", KernelKind::copy, "transpose (deepgemm)", "", no_types},
    {"deep_gemm::", "deepgemm", KernelKind::gemm, "deepgemm fp8", "", read_fp8},
    {"cutlass::gemm::kernel::GemmUniversal", "cutlass", KernelKind::gemm, "", "", read_cutlass_template},
    {"cutlass::gemm::kernel::", "cutlass", KernelKind::gemm, "", "", read_cutlass_template},
};

}  // namespace

std::span<const Rule> gemm_rules() {
  return kRules;
}

}  // namespace ingot::trace::names
