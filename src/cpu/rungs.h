// SPDX-License-Identifier: Apache-2.0
//
// The ways the CPU runs an MLP: phases of parallel tasks over tiles of tokens, each task GEMMs and passes.
#pragma once

#include "cpu/layout.h"
#include "cpu/passes.h"
#include "cpu/pool.h"
#include "cpu/weights.h"
#include "ingot/engine.h"

namespace ingot::cpu {

/// One run, all arguments checked.
struct Call {
  const Mlp& mlp;
  const CpuWeights& weights;
  const Passes& passes;
  ThreadPool& pool;
  Numerics numerics;
  bool packed;  ///< gate and up run as one linear
  Operands operands;
  Rung rung;
  Tile tile;
  Layout layout;
  const RunArguments& arguments;
};

/// Error out_of_memory: the GEMM library's own buffers.
Result<void> run(const Call& call);

}  // namespace ingot::cpu
