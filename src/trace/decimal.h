// SPDX-License-Identifier: Apache-2.0
//
// Numbers as a trace spells them, read from their text without passing through a double.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::trace {

/// Decimal microseconds (`5235574055193.598`, `12`, `1.5e3`, also as a JSON string) to nanoseconds, rounded
/// to the nearest. Exact for every value the result can hold. Nothing for text that is no number (nan, inf,
/// words) and for values beyond ±2^62 ns, so that a start plus a duration never overflows.
std::optional<std::int64_t> microseconds_to_ns(std::string_view token);

/// An id as unsigned 64-bit: numbers and numeric strings are their value; -1, null and "" are no_id; anything
/// else (words, numbers beyond 2^64) is a stable hash of its text, so that equal ids stay equal.
std::uint64_t parse_id(std::string_view token);

/// An unsigned number or numeric string; nothing when it is none or does not fit.
std::optional<std::uint64_t> parse_unsigned(std::string_view token);

/// A signed number or numeric string; nothing when it is none or does not fit.
std::optional<std::int64_t> parse_signed(std::string_view token);

/// The text without surrounding white space and one pair of quotes.
inline std::string_view bare(std::string_view token) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!token.empty() && is_space(token.front())) token.remove_prefix(1);
  while (!token.empty() && is_space(token.back())) token.remove_suffix(1);
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token.remove_prefix(1);
    token.remove_suffix(1);
  }
  return token;
}

}  // namespace ingot::trace
