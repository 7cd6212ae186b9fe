// SPDX-License-Identifier: Apache-2.0
//
// What to expect of a CPU nobody has measured: plain data, for `ingot plan` on a machine without a stored
// measurement. Rates per core at a typical all-core clock; `ingot bench`, `plan` and `doctor` replace them by
// measured ones.
#pragma once

#include <array>
#include <string_view>

namespace ingot::arch {

struct CpuEstimate {
  std::string_view isa;
  double gemm_gflops =
      0;  ///< f32, one core: multiply-add units x lanes x 2 x 2.5 GHz x 80 % reached by a GEMM
  double activation_ns = 0;  ///< one element of a GELU, one core
};

inline constexpr std::array cpu_estimates{
    CpuEstimate{"baseline", 16, 4.0},  // 128-bit, one multiply and one add per cycle
    CpuEstimate{"avx2", 64, 1.0},      // 256-bit, two multiply-adds per cycle
    CpuEstimate{"avx512", 128, 0.5},   // 512-bit, two multiply-adds per cycle
};

// Memory and caches of one socket; the last-level cache is shared, so its rate grows with cores and memory's
// does not.
inline constexpr double cache_gb_s_per_core = 25;
inline constexpr double memory_gb_s = 25;
inline constexpr double gemm_row_overhead = 4;   // packing the weights costs about as much as this many rows
inline constexpr double bf16_gemm_gflops = 200;  // one core with AVX512_BF16; AMX reaches three times that
inline constexpr double task_us = 10;            // waking a sleeping thread

}  // namespace ingot::arch
