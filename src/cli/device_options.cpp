// SPDX-License-Identifier: Apache-2.0
#include "cli/device_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/env.h"
#include "base/nearest.h"
#include "gpu/device.h"

namespace ingot::cli {

namespace {

/// This machine's devices, then those that can only be planned for.
std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names{"cpu", "cuda"};
  names.insert(names.end(), gpu_generations().begin(), gpu_generations().end());
  return names;
}

bool is_generation(const std::string& name) {
  return std::ranges::find(gpu_generations(), name) != gpu_generations().end();
}

Result<DeviceDescription> describe_here(const DeviceOptions& options, bool runs) {
  if (options.device == "cuda") {
    if (runs) return Error{ErrorCode::unsupported, "device cuda: bench does not run there yet, plan does"};
    const auto driver = gpu::open_driver(base::read_environment());
    if (!driver) return driver.error();
    return gpu::describe(**driver, 0);
  }
  return describe_cpu(
      {.threads = options.threads, .remeasure = options.remeasure, .warn = [](const std::string& warning) {
         std::fprintf(stderr, "ingot: warning: %s; the measurement is not kept\n", warning.c_str());
       }});
}

}  // namespace

void DeviceOptions::add_to(CLI::App& app) {
  app.add_option("--device", device, "cpu, cuda; plan also takes sm80, sm86, sm89, sm90, sm100, sm120");
  app.add_option("--threads", threads, "CPU threads (default: one per processor)");
  app.add_flag("--remeasure", remeasure, "measure the CPU's rates again instead of using the stored ones");
}

Result<DeviceDescription> describe(const DeviceOptions& options, bool runs) {
  const std::vector<std::string_view> names = device_names();
  if (std::ranges::find(names, options.device) == names.end()) {
    return Error{ErrorCode::invalid_argument, unknown_name("device", options.device, names)};
  }
  if (!is_generation(options.device)) return describe_here(options, runs);
  if (!runs) return describe_gpu(options.device);
  return Error{ErrorCode::invalid_argument,
               fmt::format("device {}: can be planned for, give cpu or cuda to run on", options.device)};
}

}  // namespace ingot::cli
