// SPDX-License-Identifier: Apache-2.0
#include "cli/device_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <system_error>
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

/// 0 for "cuda", N for "cuda:N"; nothing for another device.
std::optional<int> cuda_ordinal(const std::string& device) {
  constexpr std::string_view prefix = "cuda";
  if (!device.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = std::string_view(device).substr(prefix.size());
  if (rest.empty()) return 0;
  int ordinal = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), ordinal);
  const bool number = rest.size() > 1 && rest.front() == ':' && error == std::errc() &&
                      end == rest.data() + rest.size() && ordinal >= 0;
  return number ? std::optional(ordinal) : std::nullopt;
}

Result<DeviceDescription> describe_here(const DeviceOptions& options) {
  if (const auto ordinal = cuda_ordinal(options.device)) {
    const auto driver = gpu::open_driver(base::read_environment());
    if (!driver) return driver.error();
    return gpu::describe(**driver, *ordinal);
  }
  return describe_cpu(
      {.threads = options.threads, .remeasure = options.remeasure, .warn = [](const std::string& warning) {
         std::fprintf(stderr, "ingot: warning: %s; the measurement is not kept\n", warning.c_str());
       }});
}

Result<void> check_name(const DeviceOptions& options) {
  const std::vector<std::string_view> names = device_names();
  if (cuda_ordinal(options.device) || std::ranges::find(names, options.device) != names.end()) return {};
  return Error{ErrorCode::invalid_argument, unknown_name("device", options.device, names)};
}

}  // namespace

void DeviceOptions::add_to(CLI::App& app) {
  app.add_option("--device", device,
                 "cpu, cuda or cuda:N; plan also takes sm80, sm86, sm89, sm90, sm100, sm120");
  app.add_option("--threads", threads, "CPU threads (default: one per processor)");
  app.add_flag("--remeasure", remeasure, "measure the CPU's rates again instead of using the stored ones");
}

Result<DeviceDescription> describe(const DeviceOptions& options) {
  if (auto known = check_name(options); !known) return known.error();
  return is_generation(options.device) ? describe_gpu(options.device) : describe_here(options);
}

bool is_gpu_here(const DeviceOptions& options) {
  return cuda_ordinal(options.device).has_value();
}

Result<EngineOptions> engine_options(const DeviceOptions& options) {
  if (auto known = check_name(options); !known) return known.error();
  if (is_generation(options.device)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("device {}: can be planned for, give cpu or cuda to run on", options.device)};
  }
  if (const auto ordinal = cuda_ordinal(options.device))
    return EngineOptions{.device = DeviceKind::cuda, .ordinal = *ordinal};
  const auto description = describe_here(options);
  if (!description) return description.error();
  return EngineOptions{.description = *description};
}

}  // namespace ingot::cli
