// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors, and rounding to them.
#pragma once

#include "device/intrinsics.cuh"

namespace ingot {
namespace device {

// What a type is stored as, its products on the tensor cores, and whether the special function unit's tanh
// (relative error 2^-11) is finer than the type's own rounding.
struct bf16 {
  using Bits = u16;
  static constexpr bool approximate_activation = true;
  static INGOT_DEVICE Bits bits(float x) { return bf16_bits(x); }
  static INGOT_DEVICE u32 pair_bits(float low, float high) { return bf16_pair_bits(low, high); }
  static INGOT_DEVICE float value(Bits b) { return float_of_bf16(b); }
  static INGOT_DEVICE void multiply_add(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    multiply_add_bf16(d, a, b0, b1);
  }
};
struct f16 {
  using Bits = u16;
  static constexpr bool approximate_activation = false;
  static INGOT_DEVICE Bits bits(float x) { return f16_bits(x); }
  static INGOT_DEVICE u32 pair_bits(float low, float high) { return f16_pair_bits(low, high); }
  static INGOT_DEVICE float value(Bits b) { return float_of_f16(b); }
  static INGOT_DEVICE void multiply_add(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    multiply_add_f16(d, a, b0, b1);
  }
};
struct f32 {
  using Bits = float;
  static constexpr bool approximate_activation = false;
  static INGOT_DEVICE Bits bits(float x) { return x; }
  static INGOT_DEVICE float value(Bits b) { return b; }
};

/// x as the type would hold it.
template <class T>
INGOT_DEVICE float rounded(float x) {
  return T::value(T::bits(x));
}

/// The same for several numbers, two to a conversion.
template <class T, int N>
INGOT_DEVICE void round_all(float (&x)[N]) {
  if constexpr (sizeof(typename T::Bits) == 2 && N % 2 == 0) {
    INGOT_UNROLL
    for (int i = 0; i < N; i += 2) {
      const u32 pair = T::pair_bits(x[i], x[i + 1]);
      x[i] = T::value(static_cast<u16>(pair));
      x[i + 1] = T::value(static_cast<u16>(pair >> 16));
    }
  } else {
    INGOT_UNROLL
    for (int i = 0; i < N; ++i) x[i] = rounded<T>(x[i]);
  }
}

}  // namespace device
}  // namespace ingot
