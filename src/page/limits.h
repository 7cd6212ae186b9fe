// SPDX-License-Identifier: Apache-2.0
//
// What keeps a page small and readable whatever a trace holds: names of bounded length, tables of bounded
// length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/bench.h"
#include "ingot/diff.h"
#include "ingot/explain.h"

namespace ingot::page {

inline constexpr std::size_t name_bytes = 240;   ///< of a name, its ellipsis included
inline constexpr std::size_t text_bytes = 2000;  ///< of a sentence
inline constexpr std::size_t table_rows = 1000;

/// The text, or as much of its beginning as fits `most` bytes with an ellipsis; never half a UTF-8 sequence.
std::string cut(std::string_view text, std::size_t most = name_bytes);

/// Copies within the limits. A line is added to `left_out` for every table that ends early; the timeline is
/// not copied.
Explanation within_limits(const Explanation& explanation, std::vector<std::string>& left_out);
Diff within_limits(const Diff& diff, std::vector<std::string>& left_out);

}  // namespace ingot::page
