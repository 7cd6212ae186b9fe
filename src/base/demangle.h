// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot {

/// A C++ name in readable form; text that is not a mangled name comes back as it is.
std::string demangle(std::string_view name);

}  // namespace ingot
