// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ingot/status.h"

namespace ingot::base {

/// The names of files being written end so; one that stays behind is what a killed process left.
inline constexpr std::string_view part_suffix = ".part";

/// Writes a file whole: who reads it sees the old one or the new one, never half of one, whichever threads
/// and processes write it at once. (Power loss may leave half.) Makes the folders above it. A device or a
/// pipe is written to as it is. Error unreadable: the system's reason; the old file stays.
Result<void> publish(const std::string& path, std::string_view bytes);

/// The whole file; empty when it cannot be read.
std::string read_whole(const std::string& path);

}  // namespace ingot::base
