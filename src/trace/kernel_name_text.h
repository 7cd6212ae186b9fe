// SPDX-License-Identifier: Apache-2.0
//
// Text tools under the kernel-name grammar: cleaning, C++ signatures, one-line patterns, element types.
// Everything is linear in the length of the name and total: no input is an error.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::trace::names {

/// A name as the tables see it: demangled, at most kMaxName bytes, printable ASCII only (anything else
/// becomes '?').
inline constexpr std::size_t kMaxName = 65536;
std::string clean(std::string_view name);

/// The parts of a C++ function signature; for a plain name, head is the whole text.
struct Signature {
  std::string_view full;
  std::string head;                ///< qualified name alone: no return type, template arguments, parameters
  std::string_view base;           ///< last component of head (a view into head: Signature must not be moved)
  std::string_view template_args;  ///< text between the brackets of the last component
};
/// Fills `signature` from text, which must outlive it.
void parse_signature(std::string_view text, Signature& signature);

/// Matches all of `text` against a pattern: '#' is a decimal number, '%' one layout letter (n or t, either
/// case), '*' the rest; every other character is itself. Numbers land in order; at most four are kept.
struct Numbers {
  std::array<int, 4> value{};
  std::size_t count = 0;
};
std::optional<Numbers> match(std::string_view pattern, std::string_view text);

/// Ingot's word for an element type in any spelling ("c10::BFloat16", "bf16", "DF16b", "MxE4m3" …), "" when
/// it is none.
std::string_view dtype_of(std::string_view spelling);
bool is_floating(std::string_view dtype);
/// Splits a run of type names without separators: "bf16f32" → {"bf16", "f32"}; empty when it is not such a
/// run.
std::vector<std::string_view> dtype_run(std::string_view text);

/// The first floating element type standing as a template or function argument, "" for none.
std::string_view first_floating_argument(std::string_view text);

/// The element type spelled at `begin` ("c10::Half", up to whatever ends it), "" when it is none.
std::string_view dtype_at(std::string_view text, std::size_t begin);

bool is_identifier(char c);
bool contains(std::string_view text, std::string_view part);
/// Position of `part` where an identifier begins with it, npos for none.
std::size_t find_identifier(std::string_view text, std::string_view part);
/// The identifier characters from `begin` on.
std::string_view identifier_at(std::string_view text, std::size_t begin);
std::vector<std::string_view> split(std::string_view text, char separator);
/// The comma-separated arguments from `begin` (just behind an opening bracket) to its closing bracket, nested
/// ones whole.
std::vector<std::string_view> arguments_at(std::string_view text, std::size_t begin);
std::string lower(std::string_view text);
/// Cuts to at most `columns` characters of ASCII, the last being '~' when something was cut.
std::string shorten(std::string_view text, std::size_t columns);

}  // namespace ingot::trace::names
