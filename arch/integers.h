// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic of the kernels' models.
#pragma once

#include <cstdint>

namespace ingot::arch {

/// How many groups of b hold a; a >= 0, b >= 1.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace ingot::arch
