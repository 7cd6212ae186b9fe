// SPDX-License-Identifier: Apache-2.0
//
// Results as text for people and as JSON for programs. Every function returns the whole document; none
// prints.
#pragma once

#include <string>

#include "ingot/diff.h"
#include "ingot/explain.h"

namespace ingot::report {

struct TextOptions {
  bool color = false;  ///< ANSI colours; the caller knows whether a terminal reads
  int width = 110;     ///< columns to aim for
  bool all = false;    ///< every row of every table, not the top ones
};

std::string text(const Explanation& explanation, const TextOptions& options = {});
std::string text(const Diff& diff, const TextOptions& options = {});

/// schema "ingot.explain/1" and "ingot.diff/1"; ends with a newline.
std::string json(const Explanation& explanation);
std::string json(const Diff& diff);

}  // namespace ingot::report
