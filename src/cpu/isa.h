// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets of this processor, as far as Ingot's own loops tell them apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::cpu {

/// Sets the element-wise loops are compiled for, each including the ones before it.
enum class Isa : std::uint8_t {
  baseline,  ///< what the compiler targets by default (x86-64: SSE2)
  avx2,      ///< AVX2, FMA and F16C
  avx512,    ///< AVX-512 F, BW, DQ, VL
};
inline constexpr std::array all_isas{Isa::baseline, Isa::avx2, Isa::avx512};
std::string_view to_string(Isa isa);

/// The widest set this processor and operating system offer.
Isa widest_isa();

/// Whether it multiplies bf16 itself (AVX512_BF16 or AMX).
bool has_bf16_instructions();

/// Matrix extensions that matter to the GEMM library: "avx2 fma f16c avx512 avx512_bf16 amx_bf16 …".
std::string instruction_sets();

}  // namespace ingot::cpu
