// SPDX-License-Identifier: Apache-2.0
//
// One linear of a prepared MLP on the way to the driver: tensor maps, the kernel's arguments, grid and launch
// attributes.
#pragma once

#include <array>

#include "gpu/module.h"
#include "ingot/engine.h"
#include "kernels/linear_args.cuh"
#include "plan/linear.h"

namespace ingot::gpu {

/// What cuLaunchKernelEx reads: a 1-D grid, the cluster, and whether the kernel may start before the one
/// before it in the stream has ended.
class LaunchShape {
 public:
  LaunchShape(const KernelShape& kernel, std::uint32_t blocks, CuStream stream, bool dependent);
  LaunchShape(const LaunchShape&) = delete;
  LaunchShape& operator=(const LaunchShape&) = delete;

  const CuLaunchConfig* config() const { return &config_; }

 private:
  CuLaunchConfig config_;
  std::array<CuLaunchAttribute, 2> attributes_;
};

// Arguments as the kernels declare them: GemmArgs of kernels/sm90/gemm_pipeline.cuh, FewArgs of
// kernels/sm90/few.cuh, LinearArgs of kernels/linear_args.cuh.
struct GemmArguments {
  CuTensorMap x, w, y, y_tail;
  EpilogueArgs epilogue;
  std::int32_t tokens, group_rows, early_weights;
};
struct FewArguments {
  CuTensorMap w, x;
  EpilogueArgs epilogue;
  std::int32_t tokens, early_weights;
};

/// How a kernel starts beside the one before it in its stream.
enum class Start {
  ordinary,   ///< once that one has ended
  early,      ///< is set up while that one runs, reads and writes nothing until it has ended
  on_weights  ///< the same, but asks for its weights at once: that one writes x, and itself started as `early`
              ///< or `ordinary`
};

/// A row-major matrix in the device's memory, rows `stride` elements apart.
struct Matrix {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// Weights of a linear, strides filled in; gate: gated only. Biases are null where the linear has none.
struct LinearWeights {
  Linear up, gate;
};

/// Whether the sm90 kernels can load these weights: addresses and strides of 16 bytes, and gate and up as far
/// apart as one tensor map spans.
bool fit_tensor_maps(const LinearWeights& weights, DType dtype, bool gated);
/// Numbers of tokens up to here fit the sm90 kernels' 32-bit coordinates.
inline constexpr std::int64_t most_mapped_tokens = (std::int64_t{1} << 31) - 4096;

/// A linear with its kernel and weights, to be launched any number of times from any thread.
class PreparedLinear {
 public:
  /// Error device: the driver takes no map of these weights.
  static Result<PreparedLinear> make(std::shared_ptr<const Device> device,
                                     std::shared_ptr<const Module> module, const LinearSpec& linear,
                                     const KernelTile& tile, const LinearWeights& weights);

  /// y = linear(x). Tokens >= 1. A portable kernel takes `early` as `ordinary`. The context must be current.
  /// Allocates nothing, waits for nothing.
  Result<void> launch(const Matrix& x, const Matrix& y, std::int64_t tokens, CuStream stream,
                      Start start) const;

 private:
  PreparedLinear() = default;
  Result<void> launch_tile(const sm90::GemmTile& tile, const Matrix& x, const Matrix& y, std::int64_t tokens,
                           CuStream stream, Start start) const;
  Result<void> launch_tile(const sm90::FewTile& tile, const Matrix& x, const Matrix& y, std::int64_t tokens,
                           CuStream stream, Start start) const;
  Result<void> launch_tile(const sm80::Tile& tile, const Matrix& x, const Matrix& y, std::int64_t tokens,
                           CuStream stream, Start start) const;
  Result<void> submit(void* arguments, std::int64_t blocks, CuStream stream, bool dependent) const;
  Error failed(CuResult result, const char* call) const;
  EpilogueArgs epilogue(const Matrix& y) const;

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const Module> module_;
  LinearSpec linear_;
  KernelTile tile_;
  LinearWeights weights_;
  CuTensorMap weights_map_;  ///< sm90 tiles
};

}  // namespace ingot::gpu
