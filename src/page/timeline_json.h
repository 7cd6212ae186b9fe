// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ingot/timeline.h"

namespace ingot::page {

/// Appends a timeline as JSON in columns: of every lane the differences of starts, the lengths, rows and
/// names (assets/timeline.js reads it). Adds to `left_out` what the timeline does not hold.
void append_timeline(std::string& out, const Timeline& timeline, std::vector<std::string>& left_out);

/// Appends text as a JSON string; what is not UTF-8 is replaced.
void append_string(std::string& out, std::string_view text);

}  // namespace ingot::page
