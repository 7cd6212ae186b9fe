// SPDX-License-Identifier: Apache-2.0
//
// Launches kernels/sm90/cluster.cuh.
#include <cstddef>
#include <limits>

#include "arch/integers.h"
#include "gpu/mlp_launch.h"

namespace ingot::gpu {

static_assert(sizeof(MlpEpilogueArgs) == 40 && sizeof(ClusterArguments) == 96 &&
              offsetof(ClusterArguments, epilogue) == 32 && offsetof(ClusterArguments, x_stride) == 72 &&
              offsetof(ClusterArguments, up_stride) == 80 && offsetof(ClusterArguments, tokens) == 92);

namespace {

class PreparedCluster final : public PreparedMlpKernel {
 public:
  PreparedCluster(MlpKernelParts parts, const sm90::ClusterTile& tile)
      : parts_(std::move(parts)), tile_(tile) {
    weights_.up = parts_.first.up.weight;
    weights_.up_stride = static_cast<std::int32_t>(parts_.first.up.row_stride);
    weights_.gate = parts_.first.gate.weight;
    weights_.gate_stride = static_cast<std::int32_t>(parts_.first.gate.row_stride);
    weights_.down = parts_.down.weight;
    weights_.down_stride = static_cast<std::int32_t>(parts_.down.row_stride);
  }

  Result<void> launch(const Matrix& x, const Matrix& y, void*, std::int64_t tokens, CuStream stream,
                      Start start) const override {
    ClusterArguments arguments = weights_;
    arguments.x = x.data;
    arguments.x_stride = x.stride;
    arguments.epilogue = parts_.epilogue(y);
    arguments.tokens = static_cast<std::int32_t>(tokens);
    const std::int64_t clusters = arch::ceil_div(tokens, tile_.tokens);
    return submit(parts_.driver(), *parts_.module, &arguments, clusters * tile_.blocks, stream,
                  start != Start::ordinary);
  }

 private:
  MlpKernelParts parts_;
  sm90::ClusterTile tile_;
  ClusterArguments weights_{};  ///< all but what a launch brings
};

}  // namespace

PreparedKernel prepare_kernel(MlpKernelParts parts, const sm90::ClusterTile& tile) {
  for (const Linear* linear : {&parts.first.up, &parts.first.gate, &parts.down}) {
    if (linear->row_stride > std::numeric_limits<std::int32_t>::max())
      return Error{ErrorCode::unsupported, "weights: rows are 2^31 elements apart, or more"};
  }
  return std::unique_ptr<const PreparedMlpKernel>(std::make_unique<PreparedCluster>(std::move(parts), tile));
}

}  // namespace ingot::gpu
