// SPDX-License-Identifier: Apache-2.0
//
// The options that say which device, shared by bench and plan.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "ingot/bench.h"

namespace ingot::cli {

struct DeviceOptions {
  std::string device = "cpu";
  int threads = 0;
  bool remeasure = false;

  /// --device --threads --remeasure
  void add_to(CLI::App& app);
};

/// The device's description; measured rates for a CPU. Warnings go to standard error. `runs`: something will
/// be run, so that the device must be here.
Result<DeviceDescription> describe(const DeviceOptions& options, bool runs);

}  // namespace ingot::cli
