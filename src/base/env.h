// SPDX-License-Identifier: Apache-2.0
//
// The one place that reads environment variables.
#pragma once

#include <optional>
#include <string>

namespace ingot::base {

/// What Ingot takes from its environment. A variable that is unset or empty is an empty string.
struct Environment {
  std::string ingot_cache;     ///< INGOT_CACHE: folder for compiled kernels and measurements
  std::string xdg_cache_home;  ///< XDG_CACHE_HOME
  std::string home;            ///< HOME
  std::string ingot_nvrtc;     ///< INGOT_NVRTC: the run-time compiler's library, or the folder that holds it
  std::string ingot_cublaslt;  ///< INGOT_CUBLASLT: the vendor's GEMM library, or the folder that holds it
  std::string
      ingot_driver;       ///< INGOT_DRIVER: the GPU driver's library, if not libcuda.so.1 of the loader path
  std::string cuda_home;  ///< CUDA_HOME, else CUDA_PATH: a CUDA toolkit
  std::string virtual_env;  ///< VIRTUAL_ENV, else CONDA_PREFIX: the Python environment in use
  bool no_color = false;    ///< NO_COLOR is set (https://no-color.org)
};

Environment read_environment();

/// $INGOT_CACHE, else $XDG_CACHE_HOME/ingot, else ~/.cache/ingot; nothing when none of the three is set.
std::optional<std::string> cache_folder(const Environment& environment);

}  // namespace ingot::base
