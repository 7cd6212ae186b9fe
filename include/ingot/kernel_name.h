// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's name says. Libraries and compilers write tile sizes, types and fused operators into the
// names of their kernels; decode() reads them with a table of rules, and claims nothing the name does not
// say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::trace {

/// What kind of work a kernel does, as far as its name tells.
enum class KernelKind {
  unknown,
  gemm,         ///< matrix product, batched or not, gemv included
  gemm_helper,  ///< part of the GEMM before it: split-K reduction, offset computation
  attention,
  convolution,
  norm,       ///< layer, RMS, batch or group norm
  pointwise,  ///< one output per input element
  reduction,
  copy,           ///< copies, casts, transposes, concatenation, gathers
  communication,  ///< collectives between devices
  other,          ///< a known family with none of the above roles (quantise, sort, routing …)
};
std::string_view to_string(KernelKind kind);

struct TileShape {
  int m = 0, n = 0,
      k = 0;  ///< k is 0 where the name has none. In nvjet names the first number runs over PyTorch's N.
};

struct KernelName {
  std::string family;  ///< "cutlass", "cublas", "xmma", "nvjet", "triton-inductor", "triton", "aten",
                       ///< "tensile", …; "" unknown
  KernelKind kind = KernelKind::unknown;
  std::string short_name;  ///< for tables: a few words, at most ~60 characters, no template arguments
  std::string arch;        ///< "sm90", "gfx942", "ampere" as the name has it; "" none
  std::string
      dtype;  ///< inputs: bf16 f16 f32 tf32 f64 fp8 fp4 i8 …; "fp4*fp8" where the operands differ; "" unknown
  std::string out_dtype;  ///< output where the name has it
  std::string layout;     ///< operand layout letters ("tn", "nn", "nt"), lower case; "" none
  std::optional<TileShape> tile;
  std::optional<int> stages;     ///< pipeline depth
  std::optional<int> alignment;  ///< elements ("align8" → 8); 1 is a finding
  std::optional<int> cluster_m, cluster_n;
  bool split_k = false;
  /// True only where the name proves it (nvjet "bias"); else unset. "Bias" in Tensile's and "bias" in
  /// CUTLASS's names is a capability: products without bias run the same kernels. It is then a flag.
  std::optional<bool> bias;
  /// Operators in the name, in the name's order: {"gelu", "mul"}; views are left out. GELU is "gelu_tanh" or
  /// "gelu_erf" where the name tells the form. An operand that is a number from the host leaves the flag
  /// "scalar": {"mul"} with "scalar" is no product of two tensors.
  std::vector<std::string> fused;
  /// Remaining tokens worth showing ("coopA", "bz", "2cta", "segment_k_off"); "cast": converts on the way in.
  std::vector<std::string> flags;
};

/// Decodes any kernel name, mangled or not. Never fails: an unknown name comes back with kind unknown and
/// itself, shortened, as short_name.
KernelName decode(std::string_view name);

/// The C++ name behind a mangled one ("_ZN…"); any other name, and one that does not demangle, as it is.
/// ROCm's ".kd" at the end is dropped. Names whose text would be millions of bytes stay mangled.
std::string demangle(std::string_view name);

/// The activation a pointwise kernel or operator computes, in Ingot's words: relu, gelu_erf, gelu_tanh, silu,
/// sigmoid, tanh, "gelu" where the form is not known; "" when it is none. Takes kernel or operator names.
std::string activation_of(const KernelName& kernel, std::string_view full_name);

}  // namespace ingot::trace
