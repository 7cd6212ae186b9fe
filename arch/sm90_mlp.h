// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of a whole MLP on Hopper (arch/sm90_narrow.h, arch/sm90_cluster.h) must know of it: what
// decides a tile. Plain data.
#pragma once

#include <cstdint>

namespace ingot::arch::sm90 {

struct MlpShape {
  std::int64_t dim = 0, hidden = 0;
  bool gated = false;
  bool up_bias = false, down_bias = false;  ///< gated: up_bias is of both
  bool activated = false;  ///< hidden is more than the first linear's result: activation or product
  bool rounds = false;     ///< numerics `match`: that result is rounded to 16 bits
  bool short_tanh = true;  ///< bf16: the activation is a few instructions; f16 takes the C library's
};

/// Bytes that must pass the memory: x and y once, the weights once.
constexpr double bytes(const MlpShape& m, std::int64_t tokens) {
  const double matrices = m.gated ? 3 : 2, t = static_cast<double>(tokens);
  const double dim = static_cast<double>(m.dim), hidden = static_cast<double>(m.hidden);
  return 2 * (2 * t * dim + matrices * dim * hidden);
}
/// Multiply-adds of all products.
constexpr double multiply_adds(const MlpShape& m, std::int64_t tokens) {
  const double matrices = m.gated ? 3 : 2;
  return matrices * static_cast<double>(tokens) * static_cast<double>(m.dim) * static_cast<double>(m.hidden);
}

}  // namespace ingot::arch::sm90
