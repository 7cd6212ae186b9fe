// SPDX-License-Identifier: Apache-2.0
#include "trace/event_splitter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "trace/block_scan.h"

namespace ingot::trace {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

const char* skip_space(const char* at, const char* end) {
  while (at != end && is_space(*at)) ++at;
  return at;
}

template <class Scan>
ObjectScan scan_object_with(std::string_view text) {
  using State = ObjectScan::State;
  std::uint64_t in_string_carry = 0;  // all ones while a string is open across blocks
  bool escape_carry = false;
  unsigned depth = 0;
  for (std::size_t base = 0; base < text.size(); base += 64) {
    const BlockMasks m = Scan::masks(text.data() + base);
    const std::size_t left = text.size() - base;
    const std::uint64_t valid = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    std::uint64_t quotes = m.quotes;
    if ((m.backslashes != 0) || escape_carry) quotes &= ~escaped_bytes(m.backslashes, escape_carry);
    const std::uint64_t in_string = prefix_xor(quotes) ^ in_string_carry;
    in_string_carry = std::uint64_t{0} - (in_string >> 63);

    const std::uint64_t opens = m.opens & ~in_string;
    std::uint64_t braces = (opens | (m.closes & ~in_string)) & valid;
    std::uint64_t usable = valid;  // what stands before the object's end
    std::size_t length = 0;
    for (; braces != 0; braces &= braces - 1) {
      const std::uint64_t lowest = braces & (~braces + 1);
      if ((opens & lowest) != 0) {
        ++depth;
      } else if (--depth == 0) {
        usable &= lowest | (lowest - 1);
        length = base + static_cast<std::size_t>(std::countr_zero(lowest)) + 1;
        break;
      }
    }
    if ((m.newlines & in_string & usable) != 0) return {State::suspect, 0};
    if (length != 0) return {State::closed, length};
  }
  return {State::open, 0};
}

/// Text that a brace, the first key of an event and its colon may take, laid out generously.
constexpr std::size_t event_key_room = 256;

/// Keys an event may begin with, in any writer's order.
constexpr std::array<std::string_view, 11> event_keys = {"ph",  "cat",  "name", "pid", "tid", "ts",
                                                         "dur", "args", "id",   "s",   "bp"};

/// `{`, a quoted event key, `:`.
bool begins_event(const char* at, const char* end) {
  if (at == end || *at != '{') return false;
  at = skip_space(at + 1, end);
  if (at == end || *at != '"') return false;
  const std::string_view rest(at + 1, static_cast<std::size_t>(end - at - 1));
  for (const std::string_view key : event_keys) {
    if (rest.size() <= key.size() || rest.compare(0, key.size(), key) != 0 || rest[key.size()] != '"')
      continue;
    at = skip_space(at + key.size() + 2, end);
    return at != end && *at == ':';
  }
  return false;
}

const char* find_char(const char* at, const char* end, char c) {
  return at == end ? nullptr
                   : static_cast<const char*>(std::memchr(at, c, static_cast<std::size_t>(end - at)));
}

}  // namespace

ObjectScan scan_object(std::string_view text) {
  return scan_object_with<FastScan>(text);
}
ObjectScan scan_object_portable(std::string_view text) {
  return scan_object_with<PortableScan>(text);
}

bool ends_array(std::string_view text, const char* position, bool final, bool& need_text) {
  const char* const end = text.data() + text.size();
  const char* at = skip_space(position + 1, end);
  if (at != end && *at == ',')
    at = skip_space(at + 1, end);
  else if (at != end)
    return *at == '}';
  if (at == end) {
    need_text = !final;
    return final;
  }
  return *at == '"';
}

const char* find_event_end(std::string_view text, bool final) {
  const char* const end = text.data() + text.size();
  const char* array_end = nullptr;
  for (const char* at = find_char(text.data(), end, '}'); at != nullptr; at = find_char(at + 1, end, '}')) {
    const char* next = skip_space(at + 1, end);
    if (next != end && *next == ',') next = skip_space(next + 1, end);
    if (begins_event(next, end)) return at + 1;
    bool need_text = false;
    if (final && array_end == nullptr && next != end && *next == ']' &&
        ends_array(text, next, final, need_text)) {
      array_end = at + 1;
    }
  }
  return array_end;
}

const char* find_event_begin(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* at = find_char(text.data(), end, '{');
  while (at != nullptr && !begins_event(at, end)) at = find_char(at + 1, end, '{');
  return at;
}

void split_events(std::string_view text, bool final, std::size_t most_events, std::size_t most_bytes,
                  EventRun& run) {
  using Stop = EventRun::Stop;
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  run.events.clear();
  const auto stop = [&run](Stop why, const char* next) {
    run.stop = why;
    run.next = next;
  };
  for (;;) {
    while (at != end && (is_space(*at) || *at == ',')) ++at;
    if (at == end) return stop(Stop::need_text, at);
    if (*at == ']') {
      bool need_text = false;
      if (ends_array(text, at, final, need_text)) return stop(Stop::array_end, at);
      return stop(need_text ? Stop::need_text : Stop::junk, at);
    }
    if (*at != '{') return stop(Stop::junk, at);
    if (run.events.size() == most_events) return stop(Stop::limit, at);
    if (!run.events.empty() && static_cast<std::size_t>(at - run.events.front().begin) >= most_bytes) {
      return stop(Stop::limit, at);
    }
    const ObjectScan object = scan_object({at, static_cast<std::size_t>(end - at)});
    if (object.state == ObjectScan::State::open) return stop(Stop::need_text, at);
    if (object.state == ObjectScan::State::suspect) return stop(Stop::suspect, at);
    const char* const behind = at + object.length;
    // Behind an event comes a comma and the next one, or the array's end; else its closing brace was none. A
    // missing comma is forgiven where a new event plainly begins.
    const char* next = skip_space(behind, end);
    const bool comma = next != end && *next == ',';
    if (comma) next = skip_space(next + 1, end);
    if (next == end && !final) return stop(Stop::need_text, at);
    const bool goes_on = next == end || *next == ']' || (comma && (*next == '{' || *next == ','));
    if (!goes_on && !begins_event(next, end)) {
      return stop(
          final || static_cast<std::size_t>(end - next) > event_key_room ? Stop::suspect : Stop::need_text,
          at);
    }
    run.events.push_back({at, behind});
    at = next;
  }
}

}  // namespace ingot::trace
