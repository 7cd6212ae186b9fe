// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the closest of a list of names, for error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ingot {

/// The candidate with the smallest edit distance to `name` (insert, delete, replace one character: 1 each,
/// case ignored), or "" when none is closer than half its own length. Earlier candidates win ties.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

/// "unknown activation 'gelu_tan', did you mean 'gelu_tanh'? accepted: relu, gelu_erf, …"
std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string_view> candidates);

}  // namespace ingot
