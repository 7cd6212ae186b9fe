// SPDX-License-Identifier: Apache-2.0
#include "trace/decimal.h"

#include <array>
#include <cstddef>

#include "ingot/trace.h"

namespace ingot::trace {
namespace {

constexpr std::int64_t largest_ns = std::int64_t{1} << 62;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A decimal number taken apart: value = ±digits × 10^exponent. Digits beyond the 30th only move the
/// exponent: no result type holds that many.
struct Decimal {
  static constexpr std::size_t most_digits = 30;
  std::array<std::uint8_t, most_digits> digits{};
  std::size_t count = 0;
  std::int64_t exponent = 0;
  bool negative = false;

  void push(char c, bool fraction) {
    if (count == 0 && c == '0') {
      exponent -= fraction ? 1 : 0;
    } else if (count < most_digits) {
      digits[count++] = static_cast<std::uint8_t>(c - '0');
      exponent -= fraction ? 1 : 0;
    } else {
      exponent += fraction ? 0 : 1;
    }
  }
};

/// [+-] digits [. digits] [e [+-] digits], the whole text.
std::optional<Decimal> take_apart(std::string_view text) {
  Decimal out;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) out.negative = text[at++] == '-';
  std::size_t seen = 0;
  for (; at < text.size() && is_digit(text[at]); ++at, ++seen) out.push(text[at], false);
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]); ++at, ++seen) out.push(text[at], true);
  }
  if (seen == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    bool down = false;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) down = text[at++] == '-';
    if (at == text.size()) return std::nullopt;
    std::int64_t power = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (power < 1'000'000'000) power = power * 10 + (text[at] - '0');
    }
    out.exponent += down ? -power : power;
  }
  if (at != text.size()) return std::nullopt;
  return out;
}

/// digits × 10^exponent rounded to the nearest integer, halves away from zero; nothing at or above 2^64.
std::optional<std::uint64_t> to_integer(const Decimal& d) {
  if (d.count == 0) return 0;
  const std::int64_t whole = static_cast<std::int64_t>(d.count) + d.exponent;  // digits before the point
  if (whole > 20) return std::nullopt;
  if (whole < 0) return 0;
  unsigned __int128 value = 0;
  for (std::int64_t i = 0; i < whole; ++i) {
    value =
        value * 10 + (i < static_cast<std::int64_t>(d.count) ? d.digits[static_cast<std::size_t>(i)] : 0U);
  }
  if (whole < static_cast<std::int64_t>(d.count) && d.digits[static_cast<std::size_t>(whole)] >= 5) ++value;
  if (value > ~std::uint64_t{0}) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

bool is_integer(const Decimal& d) {
  const std::int64_t whole = static_cast<std::int64_t>(d.count) + d.exponent;
  for (std::int64_t i = whole < 0 ? 0 : whole; i < static_cast<std::int64_t>(d.count); ++i) {
    if (d.digits[static_cast<std::size_t>(i)] != 0) return false;
  }
  return true;
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash == no_id ? hash - 1 : hash;
}

/// Digits alone, few enough not to overflow. Nothing: take the long way.
std::optional<std::uint64_t> plain_digits(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

/// What a trace writes nearly always: digits alone, or digits, a point and three more. Nothing: take the long
/// way.
std::optional<std::int64_t> plain_microseconds(std::string_view text) {
  constexpr std::size_t most = 16;  // enough for today's absolute stamps, and far from overflow
  std::size_t at = 0;
  std::int64_t value = 0;
  while (at < text.size() && at < most && is_digit(text[at])) value = value * 10 + (text[at++] - '0');
  if (at == 0 || value >= largest_ns / 1000) return std::nullopt;
  value *= 1000;
  if (at == text.size()) return value;
  if (text[at] != '.' || text.size() - at != 4) return std::nullopt;
  const char* const decimals = text.data() + at + 1;
  if (!is_digit(decimals[0]) || !is_digit(decimals[1]) || !is_digit(decimals[2])) return std::nullopt;
  return value + (decimals[0] - '0') * 100L + (decimals[1] - '0') * 10L + (decimals[2] - '0');
}

}  // namespace

std::optional<std::int64_t> microseconds_to_ns(std::string_view token) {
  const std::string_view text = bare(token);
  if (const auto quick = plain_microseconds(text)) return quick;
  auto decimal = take_apart(text);
  if (!decimal) return std::nullopt;
  decimal->exponent += 3;
  const auto magnitude = to_integer(*decimal);
  if (!magnitude || *magnitude > static_cast<std::uint64_t>(largest_ns)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(*magnitude);
  return decimal->negative ? -value : value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view token) {
  const std::string_view text = bare(token);
  if (const auto quick = plain_digits(text)) return quick;
  const auto decimal = take_apart(text);
  if (!decimal || !is_integer(*decimal) || (decimal->negative && decimal->count != 0)) return std::nullopt;
  return to_integer(*decimal);
}

std::optional<std::int64_t> parse_signed(std::string_view token) {
  const std::string_view text = bare(token);
  if (const auto quick = plain_digits(text)) return static_cast<std::int64_t>(*quick);
  const auto decimal = take_apart(text);
  if (!decimal || !is_integer(*decimal)) return std::nullopt;
  const auto magnitude = to_integer(*decimal);
  if (!magnitude || *magnitude > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(*magnitude);
  return decimal->negative ? -value : value;
}

std::uint64_t parse_id(std::string_view token) {
  const std::string_view text = bare(token);
  if (const auto quick = plain_digits(text)) return *quick;
  if (text.empty() || text == "-1" || text == "null") return no_id;
  // 2^64 - 1 is -1 written by an unsigned field: it falls together with no_id on purpose.
  if (const auto value = parse_unsigned(text)) return *value;
  return hash_text(text);
}

}  // namespace ingot::trace
