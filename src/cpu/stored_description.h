// SPDX-License-Identifier: Apache-2.0
//
// Measured rates of this machine's CPU, kept in the cache folder as JSON (schema "ingot.cpu/1").
#pragma once

#include <optional>
#include <string>

#include "ingot/plan.h"
#include "ingot/status.h"

namespace ingot::cpu {

std::string to_json(const DeviceDescription& description);
/// Nothing when the text is not a description with every rate present, finite and positive.
std::optional<DeviceDescription> from_json(const std::string& text);

/// Where the measurement for this many threads is kept; nothing without a cache folder.
std::optional<std::string> description_path(int threads);

/// The stored measurement, if it is of the same processor, caches, library, instruction set and threads as
/// `expected`.
std::optional<DeviceDescription> load_description(const DeviceDescription& expected);

/// Writes it for load_description to find, by atomic rename. Error unreadable: the system's reason.
Result<void> store_description(const DeviceDescription& description);

}  // namespace ingot::cpu
