// SPDX-License-Identifier: Apache-2.0
//
// Launches kernels/sm90/cluster.cuh.
#include "gpu/mlp_launch.h"

namespace ingot::gpu {

PreparedKernel prepare_kernel(MlpKernelParts, const sm90::ClusterTile&) {
  return Error{ErrorCode::unsupported, "not written yet"};
}

}  // namespace ingot::gpu
