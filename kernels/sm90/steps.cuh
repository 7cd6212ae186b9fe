// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "activations.cuh"
#include "element.cuh"

namespace ingot::sm90 {

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

/// From the sum of products to what is stored, on two neighbouring columns. kMatch rounds where separate linear and
/// pointwise kernels would store; otherwise float32 up to the one rounding of the result.
template <class Element, class Activation, bool kMatch>
struct Steps {
  static constexpr bool is_identity = same<Activation, activation::identity>;
  static INGOT_DEVICE Pair rounded(Pair v) {
    if constexpr (kMatch) return Element::unpack(Element::pack(v));
    return v;
  }
  static INGOT_DEVICE Pair biased(Pair v, Pair bias) { return {v.low + bias.low, v.high + bias.high}; }
  static INGOT_DEVICE Pair activated(Pair v) { return {Activation::approx(v.low), Activation::approx(v.high)}; }
  /// From a linear layer's stored result (plain) or from its sum (plain_from_sum) to the hidden tensor.
  static INGOT_DEVICE u32 plain(Pair linear) { return Element::pack(activated(linear)); }
  static INGOT_DEVICE u32 plain_from_sum(Pair linear) {
    if constexpr (is_identity) return Element::pack(linear);
    return plain(rounded(linear));
  }
  static INGOT_DEVICE u32 gated(Pair gate, Pair up) {
    const Pair a = rounded(activated(gate));
    return Element::pack({a.low * up.low, a.high * up.high});
  }
};

}  // namespace ingot::sm90
