// SPDX-License-Identifier: Apache-2.0
//
// Characters of JSON text.
#pragma once

#include <string>
#include <string_view>

namespace ingot::trace {

constexpr bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// `text` without white space at its front.
inline std::string_view skip_space(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

/// The characters a JSON string token (with or without its quotes) stands for. Escapes that are none are kept
/// as they are written; half a surrogate pair becomes U+FFFD.
void unescape(std::string_view token, std::string& out);

/// Appends a code point as UTF-8.
void append_utf8(char32_t code_point, std::string& out);

/// Length of the valid UTF-8 sequence at the front of `text`, 0 when it is none.
std::size_t utf8_length(std::string_view text);

}  // namespace ingot::trace
