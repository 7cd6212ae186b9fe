// SPDX-License-Identifier: Apache-2.0
//
// The rungs of the vendor's library: its products, and between them one small kernel for each bias,
// activation and product, as an unfused framework launches them. They are what two_kernel is measured
// against, so they take the library's fastest algorithms and round where the framework does.
#pragma once

#include "gpu/executor.h"
#include "gpu/gemm_choice.h"
#include "plan/arguments.h"

namespace ingot::gpu {

/// Weights checked already, all on the device. `rung`: matmul_add, unfused or epilogue. The first run for a
/// number of tokens chooses algorithms and waits for the stream; it cannot be captured.
Result<std::shared_ptr<const Executor>> prepare_library(std::shared_ptr<const Gpu> gpu,
                                                        std::shared_ptr<GemmChoices> library, const Mlp& mlp,
                                                        const ResolvedWeights& weights,
                                                        const PlanOptions& options);

}  // namespace ingot::gpu
