// SPDX-License-Identifier: Apache-2.0
#include "trace/event_borders.h"

#include <array>
#include <cstring>

#include "trace/json_text.h"

namespace ingot::trace {
namespace {

/// Keys an event may begin with, in any writer's order.
constexpr std::array<std::string_view, 11> event_keys = {"ph",  "cat",  "name", "pid", "tid", "ts",
                                                         "dur", "args", "id",   "s",   "bp"};

std::string_view after(std::string_view text, const char* position) {
  return text.substr(static_cast<std::size_t>(position - text.data()));
}

const char* find(std::string_view text, char c) {
  return text.empty() ? nullptr : static_cast<const char*>(std::memchr(text.data(), c, text.size()));
}

}  // namespace

bool begins_event(std::string_view text) {
  if (text.empty() || text.front() != '{') return false;
  text = skip_space(text.substr(1));
  if (text.empty() || text.front() != '"') return false;
  text.remove_prefix(1);
  for (const std::string_view key : event_keys) {
    if (text.size() <= key.size() || text.compare(0, key.size(), key) != 0 || text[key.size()] != '"')
      continue;
    text = skip_space(text.substr(key.size() + 1));
    return !text.empty() && text.front() == ':';
  }
  return false;
}

const char* find_event_begin(std::string_view text) {
  for (const char* at = find(text, '{'); at != nullptr; at = find(after(text, at + 1), '{')) {
    if (begins_event(after(text, at))) return at;
  }
  return nullptr;
}

const char* find_event_end(std::string_view text, bool final) {
  const char* array_end = nullptr;
  for (const char* at = find(text, '}'); at != nullptr; at = find(after(text, at + 1), '}')) {
    std::string_view next = skip_space(after(text, at + 1));
    if (!next.empty() && next.front() == ',') next = skip_space(next.substr(1));
    if (begins_event(next)) return at + 1;
    const bool bracket = final && array_end == nullptr && !next.empty() && next.front() == ']';
    if (bracket && ends_array(next, final) == Answer::yes) array_end = at + 1;
  }
  return array_end;
}

Answer ends_array(std::string_view text, bool final) {
  text = skip_space(text.substr(1));
  const bool comma = !text.empty() && text.front() == ',';
  if (comma) text = skip_space(text.substr(1));
  if (text.empty()) return final ? Answer::yes : Answer::need_text;
  return text.front() == (comma ? '"' : '}') ? Answer::yes : Answer::no;
}

const char* find_object_end(std::string_view text, TextIndex& index) {
  index.reset(text);
  std::size_t depth = 0;
  for (std::size_t at = index.bracket(0); at != text.size(); at = index.bracket(at + 1)) {
    if (text[at] == '{') ++depth;
    if (text[at] != '}' || --depth != 0) continue;
    return index.first_control() < at ? nullptr : text.data() + at + 1;
  }
  return nullptr;
}

}  // namespace ingot::trace
