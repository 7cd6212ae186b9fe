// SPDX-License-Identifier: Apache-2.0
//
// One linear of a prepared MLP on the way to the driver: tensor maps, the kernel's arguments, grid and launch
// attributes.
#pragma once

#include <array>

#include "gpu/module.h"
#include "gpu/tensor_map.h"
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
  on_weights  ///< the same, but asks for its weights at once: that one writes x, and itself started as
              ///< `early` or `ordinary`
};

/// An error of the driver that names the kernel and the call.
Error failed(const Driver& driver, const Module& module, CuResult result, const char* call);

/// Launches a kernel of these arguments. `dependent`: the kernel before in the stream lets this one start
/// early, and this one waits for what it reads. Error unsupported: more blocks than a launch has.
Result<void> submit(const Driver& driver, const Module& module, void* arguments, std::int64_t blocks,
                    CuStream stream, bool dependent);

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
  EpilogueArgs epilogue(const Matrix& y) const;

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const Module> module_;
  LinearSpec linear_;
  KernelTile tile_;
  LinearWeights weights_;
  CuTensorMap weights_map_;  ///< sm90 tiles
};

}  // namespace ingot::gpu
