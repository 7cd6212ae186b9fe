// SPDX-License-Identifier: Apache-2.0
//
// What NVRTC's log says, and which of its targets serves a device. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jit/kernel.h"

namespace ingot::gpu {

struct Resources {
  int registers = 0;    ///< of a thread
  int local_bytes = 0;  ///< of a thread: its stack, spilled registers among it
  std::string remarks;  ///< warnings, and promises the assembler could not keep; joined to one line
};
/// From the log of the assembler's option -v; nothing when it does not tell of the kernel.
std::optional<Resources> parse_resources(std::string_view log, std::string_view kernel);

/// The first error of a log, with its file and line: "sm90/gemm.cuh(12): error: …". One line.
std::string first_error(std::string_view log);

/// `wanted`, or the newest target below it whose code it runs: of the same major number, and not
/// chip-specific. Nothing when `supported` (80, 90, 120, …) has none.
std::optional<jit::Target> compiled_target(const jit::Target& wanted, std::span<const int> supported);

}  // namespace ingot::gpu
