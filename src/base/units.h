// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ingot {

/// Microseconds in the unit a person would use: "12.3 us", "4.56 ms", "1.23 s".
std::string duration_text(double us);
/// Memory and files in powers of 1024: "12 B", "48 KiB", "1.5 MiB", "141.0 GiB".
std::string memory_text(std::uint64_t bytes);

}  // namespace ingot
