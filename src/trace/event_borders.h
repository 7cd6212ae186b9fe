// SPDX-License-Identifier: Apache-2.0
//
// Where events begin and end in damaged text, told from the text alone: quotes cannot be trusted there.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/text_index.h"

namespace ingot::trace {

/// Text that an event's first brace, key and colon may take, laid out generously.
inline constexpr std::size_t event_key_room = 256;

/// True when `{`, a key that events have, and `:` stand at the front of `text`.
bool begins_event(std::string_view text);

/// The first place where an event plainly begins, or nullptr.
const char* find_event_begin(std::string_view text);

/// The first place where an event plainly ends, that is, a brace, a comma and a new event. Only where there
/// is none, and no text follows (`final`), a brace and the end of the array: that looks much the same inside
/// an event. Returns the position behind the brace, or nullptr.
const char* find_event_end(std::string_view text, bool final);

enum class Answer : std::uint8_t { no, yes, need_text };

/// Does the ']' at the front of `text` end an event array? The end of the text, `}` or a further member
/// follows then.
Answer ends_array(std::string_view text, bool final);

/// Position behind the brace that closes the object at the front of `text`, by quotes and braces; nullptr
/// when the text ends first or a control character stands inside a string, which says that quotes are out of
/// step. `text` must be readable for 64 bytes past its end.
const char* find_object_end(std::string_view text, TextIndex& index);

}  // namespace ingot::trace
