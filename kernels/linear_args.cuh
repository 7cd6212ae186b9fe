// SPDX-License-Identifier: Apache-2.0
//
// What one linear's kernel is launched with; host and device read this one file. Widths are compile-time
// constants of the kernel, tokens are an argument.
#pragma once

namespace ingot {

struct EpilogueArgs {
  const void* up_bias;    ///< [out], any alignment of the element; unread unless the epilogue adds a bias
  const void* gate_bias;  ///< [out]
  void* y;                ///< [tokens, out], rows y_stride apart
  long long y_stride;     ///< elements
};

struct LinearArgs {
  const void* x;  ///< [tokens, in], rows x_stride apart
  long long x_stride;
  const void* up;  ///< [out, in], rows up_stride apart
  long long up_stride;
  const void* gate;  ///< [out, in]; unread unless gated
  long long gate_stride;
  long long tokens;
  EpilogueArgs epilogue;
};

}  // namespace ingot
