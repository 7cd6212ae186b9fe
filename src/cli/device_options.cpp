// SPDX-License-Identifier: Apache-2.0
#include "cli/device_options.h"

#include <array>
#include <cstdio>

#include "base/nearest.h"

namespace ingot::cli {

namespace {
constexpr std::array<std::string_view, 1> devices{"cpu"};
}

void DeviceOptions::add_to(CLI::App& app) {
  app.add_option("--device", device, "cpu");
  app.add_option("--threads", threads, "CPU threads (default: one per processor)");
  app.add_flag("--remeasure", remeasure, "measure the CPU's rates again instead of using the stored ones");
}

Result<DeviceDescription> describe(const DeviceOptions& options) {
  if (options.device != devices.front()) {
    return Error{ErrorCode::invalid_argument, unknown_name("device", options.device, devices)};
  }
  return describe_cpu(
      {.threads = options.threads, .remeasure = options.remeasure, .warn = [](const std::string& warning) {
         std::fprintf(stderr, "ingot: warning: %s; the measurement is not kept\n", warning.c_str());
       }});
}

}  // namespace ingot::cli
