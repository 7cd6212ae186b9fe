// SPDX-License-Identifier: Apache-2.0
//
// Weights as the rungs read them: the caller's, in place, whatever their dtype. Only biases are copied, as
// f32.
#pragma once

#include <vector>

#include "cpu/buffer.h"
#include "cpu/passes.h"
#include "plan/arguments.h"

namespace ingot::cpu {

struct CpuLinear {
  const void* weight = nullptr;  ///< [out, in] of the MLP's dtype
  std::int64_t stride = 0;       ///< elements
  const float* bias = nullptr;   ///< [out]; `zeros` when the linear has none
};

struct CpuWeights {
  CpuLinear gate;  ///< not gated: the first linear
  CpuLinear up;    ///< weight null when not gated
  CpuLinear down;
  const float* zeros = nullptr;  ///< [max(dim, hidden)]
  std::vector<Buffer<float>> owned;

  std::size_t owned_bytes() const;
};

/// Error out_of_memory.
Result<CpuWeights> make_weights(const Mlp& mlp, const ResolvedWeights& weights, const Passes& passes);

}  // namespace ingot::cpu
