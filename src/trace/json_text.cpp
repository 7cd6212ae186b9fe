// SPDX-License-Identifier: Apache-2.0
#include "trace/json_text.h"

#include <cstdint>
#include <optional>

#include "trace/decimal.h"

namespace ingot::trace {
namespace {

constexpr char32_t replacement = 0xfffd;

std::optional<char32_t> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  char32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    char32_t digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<char32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<char32_t>(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<char32_t>(c - 'A' + 10);
    else
      return std::nullopt;
    value = value * 16 + digit;
  }
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '"':
    case '\\':
    case '/':
      return c;
    default:
      return '\0';
  }
}

}  // namespace

void append_utf8(char32_t c, std::string& out) {
  const auto byte = [&out](char32_t bits) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(bits)));
  };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6);
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  }
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&text](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  // Overlong forms, UTF-16 surrogates and code points beyond U+10FFFF show in the second byte.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

void unescape(std::string_view token, std::string& out) {
  out.clear();
  const std::string_view text = bare(token);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char kind = text[i + 1];
    if (kind != 'u') {
      const char plain = simple_escape(kind);
      if (plain == '\0') {
        out.push_back('\\');
        continue;
      }
      out.push_back(plain);
      ++i;
      continue;
    }
    const auto unit = hex4(text.substr(i + 2));
    if (!unit) {
      out.push_back('\\');
      continue;
    }
    i += 5;
    char32_t code_point = *unit;
    if (code_point >= 0xd800 && code_point < 0xe000) {
      code_point = replacement;
      if (*unit < 0xdc00 && i + 2 < text.size() && text[i + 1] == '\\' && text[i + 2] == 'u') {
        const auto low = hex4(text.substr(i + 3));
        if (low && *low >= 0xdc00 && *low < 0xe000) {
          code_point = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
          i += 6;
        }
      }
    }
    append_utf8(code_point, out);
  }
}

}  // namespace ingot::trace
