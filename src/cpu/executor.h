// SPDX-License-Identifier: Apache-2.0
//
// The CPU as the engine sees it.
#pragma once

#include <memory>

#include "cpu/passes.h"
#include "cpu/pool.h"
#include "plan/executor.h"

namespace ingot::cpu {

/// Threads and loops shared by everything prepared on one engine.
struct CpuDevice {
  DeviceDescription description;
  std::unique_ptr<ThreadPool> pool;
  const Passes* passes = nullptr;
};

/// Error out_of_memory: threads cannot be started; invalid_argument: threads out of range.
Result<std::shared_ptr<const CpuDevice>> open(DeviceDescription description);

Result<std::shared_ptr<const Executor>> prepare(std::shared_ptr<const CpuDevice> device, const Mlp& mlp,
                                                const Weights& weights, const PrepareOptions& options);

}  // namespace ingot::cpu
