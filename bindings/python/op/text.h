// SPDX-License-Identifier: Apache-2.0
//
// Texts of messages. PyTorch's headers carry a {fmt} of their own in the same place, which is not to be used.
#pragma once

#include <sstream>
#include <string>

namespace ingot::torch_op {

/// The parts one behind the other.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return std::move(stream).str();
}

}  // namespace ingot::torch_op
