// SPDX-License-Identifier: Apache-2.0
//
// Weights as the CPU's GEMM reads them: f32. Those of the caller are read in place when they are f32 and
// expanded once when they are not (this GEMM library multiplies 16-bit types only on processors that have the
// instructions).
#pragma once

#include <vector>

#include "cpu/buffer.h"
#include "cpu/passes.h"
#include "plan/arguments.h"

namespace ingot::cpu {

struct CpuLinear {
  const float* weight = nullptr;  ///< [out, in]
  std::int64_t stride = 0;
  const float* bias = nullptr;  ///< [out]; `zeros` when the linear has none
};

struct CpuWeights {
  CpuLinear gate;  ///< not gated: the first linear
  CpuLinear up;    ///< weight null when not gated
  CpuLinear down;
  const float* zeros = nullptr;  ///< [max(dim, hidden)]: the bias of a linear without one
  std::vector<Buffer<float>> owned;

  std::size_t owned_bytes() const;
};

/// Error out_of_memory.
Result<CpuWeights> make_weights(const Mlp& mlp, const ResolvedWeights& weights, const Passes& passes);

}  // namespace ingot::cpu
