// SPDX-License-Identifier: Apache-2.0
//
// Finds where events begin and end in the event array, without parsing them: string- and brace-aware, 64
// bytes a step. Every event is scanned from a known state (outside any string), so a fault in one event
// cannot reach the next one unnoticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ingot::trace {

/// Where the object that begins at text[0] == '{' ends.
struct ObjectScan {
  enum class State : std::uint8_t {
    closed,   ///< `length` covers the object, closing brace included
    open,     ///< the text at hand ends first
    suspect,  ///< a raw line break stands inside a string: either a raw control character or a stray quote
  };
  State state = State::open;
  std::size_t length = 0;
};

/// Scans one object. `text` must be readable for 64 bytes past its end.
ObjectScan scan_object(std::string_view text);

/// The same without vector instructions; for tests.
ObjectScan scan_object_portable(std::string_view text);

/// Consecutive events found in the text at hand.
struct EventRun {
  enum class Stop : std::uint8_t {
    limit,      ///< as many events or bytes as asked for
    need_text,  ///< the text at hand ends before the next event does
    array_end,  ///< `next` stands at the closing bracket
    suspect,    ///< an event begins at `next` whose end is in doubt
    junk,       ///< something that is no event stands at `next`
  };
  struct Extent {
    const char* begin;
    const char* end;
  };
  std::vector<Extent> events;
  Stop stop = Stop::limit;
  const char* next = nullptr;
};

/// Splits `text`, which stands between two events of an array. `final` says that no text follows. Fills `run`
/// (its memory is used again).
void split_events(std::string_view text, bool final, std::size_t most_events, std::size_t most_bytes,
                  EventRun& run);

/// For damaged text: the first place where an event plainly ends, that is, a brace, a comma and a new event.
/// Only where there is none, and no text follows (`final`), a brace and the end of the array: that looks much
/// the same inside an event. Returns the position behind the brace, or nullptr. Looks at nothing but the
/// text: quotes are not counted.
const char* find_event_end(std::string_view text, bool final);

/// For damaged text: the first place where an event plainly begins (`{"ph":`, `{"name":`, …), or nullptr.
const char* find_event_begin(std::string_view text);

/// True when the bracket at `position` ends an event array: the end of the text, `}` or a further member
/// follows. Undecided (false, `need_text` set) when the text at hand ends too early.
bool ends_array(std::string_view text, const char* position, bool final, bool& need_text);

}  // namespace ingot::trace
