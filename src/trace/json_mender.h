// SPDX-License-Identifier: Apache-2.0
//
// Makes JSON of text that nearly is: the faults seen in real traces, none of which a strict parser forgives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::trace {

enum class BackslashQuote : std::uint8_t {
  escapes,   ///< `\"` is a quote inside the string, as JSON has it
  may_close  ///< `\"` closes the string where a closing quote fits: `"C:\temp\"`, a path nobody escaped
};

/// Rewrites one object. Mended are: control characters in strings (a space), bytes that are no UTF-8
/// (U+FFFD), escapes that are none (`\p` becomes `\\p`), quotes inside a string (one ends a string only when
/// the JSON around it goes on behind it), nan and inf (null), missing values (null), needless commas and a
/// brace that closes the object too early. False: beyond mending. Nesting costs one byte a level and no
/// recursion.
bool mend_json(std::string_view object, BackslashQuote style, std::string& out);

}  // namespace ingot::trace
