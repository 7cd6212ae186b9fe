// SPDX-License-Identifier: Apache-2.0
//
// A whole MLP in one launch, on the way to the driver. One file for each kernel (launch_narrow.cpp,
// launch_cluster.cpp) makes its tensor maps, arguments and grid.
#pragma once

#include <memory>

#include "gpu/launch.h"
#include "kernels/mlp_args.cuh"
#include "plan/mlp_kernel.h"

namespace ingot::gpu {

// Arguments as the kernels declare them: NarrowArgs of kernels/sm90/narrow.cuh, ClusterArgs of
// kernels/sm90/cluster.cuh.
struct NarrowArguments {
  CuTensorMap x, up_first, up_rest, down, down_tail;
  MlpEpilogueArgs epilogue;
  std::int32_t tokens, early_weights;
};
struct ClusterArguments {
  const void *x, *up, *gate, *down;
  MlpEpilogueArgs epilogue;
  std::int64_t x_stride;
  std::int32_t up_stride, gate_stride, down_stride, tokens;
};

/// What a kernel is prepared from. The module is the kernel's, compiled for `mlp` and the tile.
struct MlpKernelParts {
  std::shared_ptr<const Device> device;
  std::shared_ptr<const Module> module;
  MlpSpec mlp;          ///< biases as the weights have them
  LinearWeights first;  ///< fit_tensor_maps(); gated: both biases or none
  Linear down;          ///< the same

  const Driver& driver() const { return device->driver(); }
  MlpEpilogueArgs epilogue(const Matrix& y) const {
    return {.up_bias = first.up.bias,
            .gate_bias = first.gate.bias,
            .down_bias = down.bias,
            .y = const_cast<void*>(y.data),
            .y_stride = y.stride};
  }
};

/// A kernel with its weights, to be launched any number of times from any thread.
class PreparedMlpKernel {
 public:
  PreparedMlpKernel() = default;
  PreparedMlpKernel(const PreparedMlpKernel&) = delete;
  PreparedMlpKernel& operator=(const PreparedMlpKernel&) = delete;
  virtual ~PreparedMlpKernel() = default;

  /// y = mlp(x), both at 16-byte addresses and row strides. 1 <= tokens <= most_mapped_tokens. `scratch`:
  /// scratch_bytes() of the caller's workspace, contents undefined; null where there is none. `start`:
  /// ordinary or early. The context must be current. Allocates
  /// nothing, waits for nothing.
  virtual Result<void> launch(const Matrix& x, const Matrix& y, void* scratch, std::int64_t tokens,
                              CuStream stream, Start start) const = 0;
};

/// Errors device: the driver takes no map of these weights; unsupported: rows of theirs are too far apart.
using PreparedKernel = Result<std::unique_ptr<const PreparedMlpKernel>>;
PreparedKernel prepare_kernel(MlpKernelParts parts, const sm90::NarrowTile& tile);
PreparedKernel prepare_kernel(MlpKernelParts parts, const sm90::ClusterTile& tile);

}  // namespace ingot::gpu
