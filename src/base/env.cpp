// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <cstdlib>

namespace ingot::base {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_of(const char* name, const char* fallback) {
  std::string value = variable(name);
  return value.empty() ? variable(fallback) : value;
}

}  // namespace

Environment read_environment() {
  return {.ingot_cache = variable("INGOT_CACHE"),
          .xdg_cache_home = variable("XDG_CACHE_HOME"),
          .home = variable("HOME"),
          .ingot_nvrtc = variable("INGOT_NVRTC"),
          .ingot_cublaslt = variable("INGOT_CUBLASLT"),
          .ingot_driver = variable("INGOT_DRIVER"),
          .cuda_home = first_of("CUDA_HOME", "CUDA_PATH"),
          .virtual_env = first_of("VIRTUAL_ENV", "CONDA_PREFIX"),
          .no_color = !variable("NO_COLOR").empty()};
}

std::optional<std::string> cache_folder(const Environment& environment) {
  if (!environment.ingot_cache.empty()) return environment.ingot_cache;
  if (!environment.xdg_cache_home.empty()) return environment.xdg_cache_home + "/ingot";
  if (!environment.home.empty()) return environment.home + "/.cache/ingot";
  return std::nullopt;
}

}  // namespace ingot::base
