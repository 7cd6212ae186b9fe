// SPDX-License-Identifier: Apache-2.0
#include "trace/event_parser.h"

#include <simdjson.h>

#include "trace/text_window.h"

namespace ingot::trace {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(TextWindow::padding >= simdjson::SIMDJSON_PADDING);

// The commonest keys stand first: they are compared in this order.
constexpr KeyTable event_keys({{"ph", Field::ph},
                               {"cat", Field::cat},
                               {"name", Field::name},
                               {"pid", Field::pid},
                               {"tid", Field::tid},
                               {"ts", Field::ts},
                               {"dur", Field::dur},
                               {"args", Field::args}});
constexpr KeyTable arg_keys({{"External id", Field::external_id},
                             {"correlation", Field::correlation},
                             {"Input Dims", Field::dims},
                             {"Input type", Field::types},
                             {"Concrete Inputs", Field::concrete},
                             {"device", Field::device},
                             {"stream", Field::stream},
                             {"registers per thread", Field::registers},
                             {"shared memory", Field::shared_memory},
                             {"grid", Field::grid},
                             {"block", Field::block},
                             {"bytes", Field::bytes},
                             {"external id", Field::external_id}});

std::string_view trimmed(std::string_view text) {
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

/// The text of a scalar or an array. No field Ingot reads is an object: one is passed over.
bool read_text(ondemand::value& value, std::string_view& out) {
  std::string_view text = value.raw_json_token();
  if (text.front() == '{') return true;
  if (text.front() == '[') {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return false;
    if (array.raw_json().get(text) != simdjson::SUCCESS) return false;
  }
  out = trimmed(text);
  return true;
}

bool read_args(ondemand::value& value, EventTokens& tokens) {
  if (value.raw_json_token().front() != '{') return true;
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return false;
    const Field which = arg_keys.find(field.key().raw());
    if (which != Field::unknown && !read_text(field.value(), tokens[which])) return false;
  }
  return true;
}

/// Walks every member of the event and of its args, wanted or not: a stray quote anywhere in them must show
/// as an error here, lest the event swallow its neighbours.
bool read_event(ondemand::value& value, EventTokens& tokens) {
  tokens.clear();
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return false;
    const Field which = event_keys.find(field.key().raw());
    if (which == Field::unknown) continue;
    if (which == Field::args) {
      if (!read_args(field.value(), tokens)) return false;
      continue;
    }
    if (!read_text(field.value(), tokens[which])) return false;
  }
  return true;
}

}  // namespace

struct EventParser::Json {
  ondemand::parser parser;
};

EventParser::EventParser(TraceBuilder& builder) : json_(std::make_unique<Json>()), builder_(builder) {}
EventParser::~EventParser() = default;

std::size_t EventParser::add_run(const EventRun& run, std::uint64_t first_offset) {
  // The run is made a JSON array in place: what stands before and behind it is overwritten for the time of
  // the parse.
  char* const open = const_cast<char*>(run.events.front().begin) - 1;
  char* const close = const_cast<char*>(run.events.back().end);
  const char before = *open;
  const char behind = *close;
  *open = '[';
  *close = ']';
  const auto length = static_cast<std::size_t>(close + 1 - open);

  std::size_t added = 0;
  ondemand::document document;
  ondemand::array array;
  if (json_->parser.iterate(open, length, length + simdjson::SIMDJSON_PADDING).get(document) ==
          simdjson::SUCCESS &&
      document.get_array().get(array) == simdjson::SUCCESS) {
    for (auto element : array) {
      ondemand::value value;
      if (std::move(element).get(value) != simdjson::SUCCESS) break;
      // simdjson does not look into what it passes over: brackets out of balance there would let it run on
      // into the next event, or stop early. Only an event that begins and ends where the splitter says is
      // taken.
      const char* const begin = value.raw_json_token().data();
      if (added == run.events.size() || begin != run.events[added].begin) break;
      if (!read_event(value, tokens_)) break;
      const char* next = nullptr;
      if (document.current_location().get(next) != simdjson::SUCCESS || next < run.events[added].end) break;
      if (next > (added + 1 == run.events.size() ? close : run.events[added + 1].begin)) break;
      builder_.add(tokens_, first_offset + static_cast<std::uint64_t>(begin - run.events.front().begin));
      ++added;
    }
  }
  *open = before;
  *close = behind;
  return added;
}

bool EventParser::add_one(std::string_view text, std::uint64_t offset) {
  ondemand::document document;
  ondemand::value value;
  if (json_->parser.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING)
          .get(document) != simdjson::SUCCESS) {
    return false;
  }
  if (document.get_value().get(value) != simdjson::SUCCESS || !read_event(value, tokens_)) return false;
  if (document.current_location().error() == simdjson::SUCCESS) return false;  // more follows the event
  builder_.add(tokens_, offset);
  return true;
}

}  // namespace ingot::trace
