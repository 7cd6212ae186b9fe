// SPDX-License-Identifier: Apache-2.0
//
// The options that say which device, shared by bench and plan.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "ingot/bench.h"
#include "ingot/engine.h"

namespace ingot::cli {

struct DeviceOptions {
  std::string device = "cpu";
  int threads = 0;
  bool remeasure = false;

  /// --device --threads --remeasure
  void add_to(CLI::App& app);
};

/// The device's description, to plan with; measured rates for a CPU. Warnings go to standard error.
Result<DeviceDescription> describe(const DeviceOptions& options);
/// Whether they name a GPU of this machine, whose description has the driver's name for it.
bool is_gpu_here(const DeviceOptions& options);
/// To run on the device, which must be here. Error invalid_argument: a device that can only be planned for.
Result<EngineOptions> engine_options(const DeviceOptions& options);

}  // namespace ingot::cli
