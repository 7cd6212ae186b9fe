// SPDX-License-Identifier: Apache-2.0
//
// Sizes of tensors that lie one behind the other in device memory.
#pragma once

#include <cstddef>

namespace ingot::gpu {

inline constexpr std::size_t tensor_alignment = 256;  // bytes, as allocators give it

/// The bytes up to the next tensor.
constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
}

}  // namespace ingot::gpu
