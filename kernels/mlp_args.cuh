// SPDX-License-Identifier: Apache-2.0
//
// What every kernel of a whole MLP is launched with, beside its own arguments; host and device read this one
// file. Widths are compile-time constants of the kernel, tokens are an argument.
#pragma once

namespace ingot {

struct MlpEpilogueArgs {
  const void* up_bias;    ///< [hidden], any alignment of the element; unread unless the kernel has up biases
  const void* gate_bias;  ///< [hidden]; unread unless it is gated, too
  const void* down_bias;  ///< [dim]; unread unless the kernel has a down bias
  void* y;                ///< [tokens, dim], rows y_stride apart
  long long y_stride;     ///< elements
};

}  // namespace ingot
