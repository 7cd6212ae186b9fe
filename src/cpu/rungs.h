// SPDX-License-Identifier: Apache-2.0
//
// The ways the CPU runs an MLP: phases of parallel tasks over tiles of tokens, each task GEMMs and passes.
#pragma once

#include <cstddef>

#include "cpu/passes.h"
#include "cpu/pool.h"
#include "cpu/weights.h"
#include "ingot/engine.h"

namespace ingot::cpu {

/// Where a run keeps what: offsets into the caller's workspace, sizes in elements of the type named.
struct Layout {
  std::size_t first = 0;   ///< MLP's dtype [tokens, width]: what a linear wrote
  std::size_t second = 0;  ///< the same size: what a pass over `first` wrote
  std::size_t scratch =
      0;  ///< scratch_bytes per thread: x, tile, sums, weights, each f32 and aligned to a cache line
  std::size_t scratch_bytes = 0;
  std::size_t x_elements = 0;       ///< 16-bit: a tile of x as f32
  std::size_t tile_elements = 0;    ///< sums of gate (and up) of one step
  std::size_t sum_elements = 0;     ///< 16-bit: sums of the output
  std::size_t weight_elements = 0;  ///< 16-bit: a block of weights as f32
  std::size_t bytes = 0;            ///< total; the largest size_t when it would overflow
};
Layout layout(const Mlp& mlp, std::int64_t tokens, Rung rung, const Tile& tile, int threads);

/// One run, all arguments checked.
struct Call {
  const Mlp& mlp;
  const CpuWeights& weights;
  const Passes& passes;
  ThreadPool& pool;
  Numerics numerics;
  bool packed;  ///< gate and up run as one linear
  Rung rung;
  Tile tile;
  Layout layout;
  const RunArguments& arguments;
};

/// Error out_of_memory: the GEMM library's own buffers.
Result<void> run(const Call& call);

}  // namespace ingot::cpu
