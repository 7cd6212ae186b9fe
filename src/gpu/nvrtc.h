// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's run-time compiler, opened at run time: it comes with PyTorch, as a Python package of its own, or
// with a CUDA toolkit, and is not needed to build or to start Ingot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "ingot/status.h"
#include "jit/kernel.h"
#include "jit/sources.h"

namespace ingot::gpu {

struct NvrtcVersion {
  int major = 0, minor = 0;
  auto operator<=>(const NvrtcVersion&) const = default;
};
/// The first one that compiles for every GPU Ingot knows (sm_120).
inline constexpr NvrtcVersion least_nvrtc{12, 8};

/// Where the library is looked for, best first: $INGOT_NVRTC (a file or a folder) and nothing else where it
/// is set; the packages of the Python environment in use; $CUDA_HOME; what the loader finds (or has loaded);
/// /usr/local/cuda*. Only files that exist, and names left to the loader. `root`: of the file system, for
/// tests.
std::vector<std::string> nvrtc_candidates(const base::Environment& environment, const std::string& root = "");

/// Thread-safe: compilations run side by side.
class Nvrtc : public jit::Compiler {
 public:
  virtual const std::string& file() const = 0;  ///< it was loaded from, absolute
  virtual NvrtcVersion version() const = 0;
};

/// The first candidate that opens, is not too old, and has its libnvrtc-builtins beside it. `sources`: what a
/// kernel's text may include. Error unsupported: what was found and what to do, one line.
Result<std::shared_ptr<const Nvrtc>> open_nvrtc(
    const base::Environment& environment, std::span<const jit::SourceFile> sources = jit::kernel_sources());

}  // namespace ingot::gpu
