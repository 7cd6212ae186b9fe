// SPDX-License-Identifier: Apache-2.0
//
// Kernels compiled ahead of their first use: which ones, and through a store. warm_cache() of ingot/cache.h
// puts both together.
#pragma once

#include <vector>

#include "ingot/cache.h"
#include "jit/store.h"
#include "plan/tuning.h"

namespace ingot {

/// Every kernel once, sorted by name. Pure. `tuned`: measured choices, which come before forecasts. Error
/// unsupported: the planner has no kernels for such a GPU.
Result<std::vector<jit::KernelText>> kernels_to_warm(const Mlp& mlp, const WarmOptions& options,
                                                     const TuningTable* tuned = nullptr);

/// In `kernels`' order. Errors: the first kernel's that fails, in their order; the others are made all the
/// same.
Result<std::vector<WarmedKernel>> warm(jit::CachedKernelStore& store,
                                       const std::vector<jit::KernelText>& kernels,
                                       const WarmOptions& options);

}  // namespace ingot
