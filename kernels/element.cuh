// SPDX-License-Identifier: Apache-2.0
//
// The 16-bit element types as the kernels see them: two neighbours in one 32-bit register. Device code only, no
// headers, so that NVRTC takes it as is.
#pragma once

#define INGOT_DEVICE __device__ __forceinline__

namespace ingot {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct Pair {
  float low, high;
};

struct Bf16 {
  static constexpr bool is_bf16 = true;
  static INGOT_DEVICE u32 pack(Pair v) {  // both rounded to nearest even
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(v.high), "f"(v.low));
    return r;
  }
  static INGOT_DEVICE Pair unpack(u32 v) { return {__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u)}; }
  static INGOT_DEVICE float load(u16 v) { return __uint_as_float(u32(v) << 16); }
};

struct Fp16 {
  static constexpr bool is_bf16 = false;
  static INGOT_DEVICE u32 pack(Pair v) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(v.high), "f"(v.low));
    return r;
  }
  static INGOT_DEVICE Pair unpack(u32 v) {
    Pair r;
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}"
        : "=f"(r.low), "=f"(r.high)
        : "r"(v));
    return r;
  }
  static INGOT_DEVICE float load(u16 v) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
    return r;
  }
};

/// A 16-bit value from memory at 2-byte alignment (a bias, read only during the kernel).
template <class Element>
INGOT_DEVICE float load_element(const void* base, long long index) {
  u16 v;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(static_cast<const u16*>(base) + index));
  return Element::load(v);
}

}  // namespace ingot
