// SPDX-License-Identifier: Apache-2.0
//
// Device code as text: every file of kernels/, part of the library since the build.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"

namespace ingot::jit {

/// Named as `#include "…"` names it: "sm90/gemm.cuh".
using SourceFile = base::EmbeddedFile;

/// All of them.
std::span<const SourceFile> kernel_sources();

/// The files of `all` that `text` includes, directly or through another, in the order of `all`. Conditions
/// are not looked at, so it may be more than a compiler reads; a file that is not in `all` is left out.
std::vector<SourceFile> included_sources(std::string_view text, std::span<const SourceFile> all);

}  // namespace ingot::jit
