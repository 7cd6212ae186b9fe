// SPDX-License-Identifier: Apache-2.0
//
// The hot path: parses events and hands the text of their fields to the builder.
//
// It walks the text by an index of quotes and brackets and touches little else: the members of an event and
// of its args by their keys, every other value stepped over unread. A general parser does the same work
// twice, once to find where events end and once inside them; simdjson On-Demand takes 2.3 times the
// instructions on the same trace. simdjson still checks UTF-8 and reads what stands around the events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/event_fields.h"
#include "trace/text_index.h"
#include "trace/trace_builder.h"

namespace ingot::trace {

class EventParser {
 public:
  explicit EventParser(TraceBuilder& builder) : builder_(builder) {}

  enum class Stop : std::uint8_t {
    limit,      ///< enough for now
    need_text,  ///< the text at hand ends before the next event does
    array_end,  ///< `next` stands at the closing bracket
    damaged,    ///< the event at `next` is not JSON, or its end is in doubt
    junk,       ///< something that is no event stands at `next`
  };
  struct Run {
    Stop stop;
    const char* next;
  };

  /// Adds events from `text`, which stands between two events of an array. An event is added whole or not at
  /// all. `final` says that no text follows; `offset` is where `text` begins in the whole. `text` must be
  /// readable for TextWindow::padding behind its end, and zero there.
  Run add_events(std::string_view text, bool final, std::uint64_t offset);

  /// Adds the one event that `text` is. False: it is not JSON, nothing was added. Padding as above.
  bool add_one(std::string_view text, std::uint64_t offset);

 private:
  enum class Level : std::uint8_t { event, args };

  template <Level level>
  const char* members(const char* at);
  const char* event(const char* open);
  const char* fail(const char* at);
  const char* quote(const char* from) { return base_ + index_.quote(static_cast<std::size_t>(from - base_)); }
  const char* match(const char* open) { return base_ + index_.match(static_cast<std::size_t>(open - base_)); }
  void reset(std::string_view text);

  TraceBuilder& builder_;
  TextIndex index_;
  EventTokens tokens_;
  const char* base_ = nullptr;  ///< the text, and its end
  const char* end_ = nullptr;
  bool cut_ = false;  ///< the last event failed at the end of the text
};

}  // namespace ingot::trace
