// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ingot/status.h"

namespace ingot::base {

/// Writes a file whole: who reads it sees the old one or the new one, never half of one. Makes the folders
/// above it. Error unreadable: the system's reason; the old file stays.
Result<void> publish(const std::string& path, std::string_view bytes);

/// The whole file; empty when it cannot be read.
std::string read_whole(const std::string& path);

}  // namespace ingot::base
