// SPDX-License-Identifier: Apache-2.0
//
// What the profiler needs of an engine beside its public face.
#pragma once

#include <memory>

#include "gpu/executor.h"
#include "ingot/engine.h"

namespace ingot {

struct EngineInside {
  /// The engine's GPU; null for an engine of the CPU.
  static std::shared_ptr<const gpu::Gpu> gpu(const Engine& engine);
};

}  // namespace ingot
