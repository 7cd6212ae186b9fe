// SPDX-License-Identifier: Apache-2.0
//
// bf16 and f16 on a processor that knows neither: rounding a float to what they can hold, and packing the
// result. Branch-free integer arithmetic that compilers vectorise; no function of the standard library, so
// that the loops of every instruction set can include this without sharing out-of-line copies.
#pragma once

#include <cstdint>

#include "ingot/mlp.h"

namespace ingot::cpu {

#define INGOT_INLINE inline __attribute__((always_inline))

INGOT_INLINE std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
INGOT_INLINE float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

inline constexpr std::uint32_t sign_bit = 0x80000000U;
inline constexpr std::uint32_t infinity_bits = 0x7f800000U;
inline constexpr std::uint32_t quiet_bit = 0x00400000U;

/// How each dtype is held: Element<D>::type in memory, load and pack between memory and float; round returns
/// the nearest value the dtype holds (ties to even), as a float.
template <DType D>
struct Element;

template <>
struct Element<DType::f32> {
  using type = float;
  static INGOT_INLINE float load(float x) { return x; }
  static INGOT_INLINE float round(float x) { return x; }
  static INGOT_INLINE float pack(float rounded) { return rounded; }
};

template <>
struct Element<DType::bf16> {
  using type = std::uint16_t;
  static INGOT_INLINE float load(std::uint16_t x) { return float_of(static_cast<std::uint32_t>(x) << 16); }
  static INGOT_INLINE float round(float x) {
    const std::uint32_t u = bits_of(x);
    const std::uint32_t nearest = u + 0x7fffU + ((u >> 16) & 1U);
    const bool is_nan = (u & ~sign_bit) > infinity_bits;
    return float_of((is_nan ? u | quiet_bit : nearest) & 0xffff0000U);
  }
  static INGOT_INLINE std::uint16_t pack(float rounded) {
    return static_cast<std::uint16_t>(bits_of(rounded) >> 16);
  }
};

template <>
struct Element<DType::f16> {
  using type = std::uint16_t;
  static constexpr std::uint32_t least_normal = 0x38800000U;  // 2^-14
  static constexpr std::uint32_t overflow = 0x477ff000U;      // 65520: from here on the nearest is infinity

  static INGOT_INLINE float load(std::uint16_t x) {
    const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000U) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(x & 0x7fffU) << 13;
    // Moving the exponent's bias by a product with 2^112 makes subnormals right too.
    const float value = float_of(magnitude) * float_of(0x77800000U);
    const bool special = magnitude >= (0x7c00U << 13);
    return float_of(sign | (special ? magnitude | infinity_bits : bits_of(value)));
  }
  static INGOT_INLINE float round(float x) {
    const std::uint32_t u = bits_of(x);
    const std::uint32_t sign = u & sign_bit;
    const std::uint32_t magnitude = u & ~sign_bit;
    // Around x * 2^13 floats are as far apart as f16 around x (below 2^-14: as its subnormals): the sum
    // rounds.
    const std::uint32_t exponent = u & infinity_bits;
    const std::uint32_t scale = exponent < least_normal ? least_normal : exponent;
    const float shift = float_of(sign | (scale + (13U << 23)));
    const std::uint32_t nearest = bits_of((x + shift) - shift) | sign;  // keeps the sign of zero
    const std::uint32_t special =
        magnitude > infinity_bits ? (u | quiet_bit) & ~0x1fffU : sign | infinity_bits;
    return float_of(magnitude < overflow ? nearest : special);
  }
  static INGOT_INLINE std::uint16_t pack(float rounded) {
    const std::uint32_t u = bits_of(rounded);
    const std::uint32_t magnitude = u & ~sign_bit;
    // Subnormals count multiples of 2^-24: adding 0.5 leaves the count in the low bits.
    const std::uint32_t small = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
    const std::uint32_t normal = (magnitude - (112U << 23)) >> 13;
    const std::uint32_t special = 0x7c00U | ((magnitude >> 13) & 0x3ffU);
    const std::uint32_t low =
        magnitude < least_normal ? small : (magnitude >= infinity_bits ? special : normal);
    return static_cast<std::uint16_t>((u >> 16 & 0x8000U) | (low & 0x7fffU));
  }
};

}  // namespace ingot::cpu
