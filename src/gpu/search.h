// SPDX-License-Identifier: Apache-2.0
//
// Where NVIDIA's libraries lie, which come with PyTorch, as Python packages, or with a CUDA toolkit.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/env.h"

namespace ingot::gpu {

/// Where a library is looked for under these file names, best first: the packages of the Python environment
/// in use; $CUDA_HOME; what the loader finds (or has loaded); /usr/local/cuda*. Only files that exist, and
/// names left to the loader. `root`: of the file system, for tests.
std::vector<std::string> library_candidates(std::span<const char* const> names,
                                            const base::Environment& environment,
                                            const std::string& root = "");

/// A file, or those of the names that a folder holds.
std::vector<std::string> named_candidates(std::span<const char* const> names,
                                          const std::string& file_or_folder);

}  // namespace ingot::gpu
