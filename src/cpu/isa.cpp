// SPDX-License-Identifier: Apache-2.0
#include "cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ingot::cpu {

std::string_view to_string(Isa isa) {
  constexpr std::array<std::string_view, all_isas.size()> names{"baseline", "avx2", "avx512"};
  return names[static_cast<std::size_t>(isa)];
}

#if defined(__x86_64__)

Isa widest_isa() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Isa::avx512;
  }
  // Every processor with AVX2 has F16C.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
  return Isa::baseline;
}

namespace {

struct MatrixExtensions {
  bool avx512_bf16 = false, avx512_fp16 = false, amx_bf16 = false, amx_int8 = false;
};

/// Leaf 7 (Intel's manual, CPUID): bf16 in sub-leaf 1, AMX and fp16 in sub-leaf 0. They matter only with the
/// state the operating system saves for AVX-512, which the builtin has checked.
MatrixExtensions matrix_extensions() {
  MatrixExtensions has;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_supports("avx512f")) return has;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) has.avx512_bf16 = (a & (1U << 5)) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    has.avx512_fp16 = (d & (1U << 23)) != 0;
    has.amx_bf16 = (d & (1U << 22)) != 0;
    has.amx_int8 = (d & (1U << 25)) != 0;
  }
  return has;
}

}  // namespace

bool has_bf16_instructions() {
  return matrix_extensions().avx512_bf16;  // every processor with AMX has it
}

std::string instruction_sets() {
  std::string sets = "sse2";
  const auto add = [&sets](bool has, std::string_view name) {
    if (has) sets.append(" ").append(name);
  };
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512vnni"), "avx512_vnni");
  const MatrixExtensions has = matrix_extensions();
  add(has.avx512_bf16, "avx512_bf16");
  add(has.avx512_fp16, "avx512_fp16");
  add(has.amx_bf16, "amx_bf16");
  add(has.amx_int8, "amx_int8");
  return sets;
}

#else

Isa widest_isa() {
  return Isa::baseline;
}
bool has_bf16_instructions() {
  return false;
}
std::string instruction_sets() {
  return "baseline";
}

#endif

}  // namespace ingot::cpu
