// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot {

/// Microseconds in the unit a person would use: "12.3 us", "4.56 ms", "1.23 s".
std::string duration_text(double us);

}  // namespace ingot
