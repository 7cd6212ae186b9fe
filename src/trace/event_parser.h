// SPDX-License-Identifier: Apache-2.0
//
// Parses events found by the splitter with simdjson and hands their tokens to the builder. An event is added
// whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "trace/event_fields.h"
#include "trace/event_splitter.h"
#include "trace/trace_builder.h"

namespace ingot::trace {

class EventParser {
 public:
  explicit EventParser(TraceBuilder& builder);
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;
  ~EventParser();

  /// Parses the events of `run` in one go and returns how many were added before the first that cannot be
  /// parsed. The text from one byte before the first event to TextWindow::padding behind the last must be
  /// writable; it is as before when the call returns. `first_offset` is the offset of the first event in the
  /// whole text.
  std::size_t add_run(const EventRun& run, std::uint64_t first_offset);

  /// Parses one event. `text` must be readable for TextWindow::padding behind its end. False: not valid JSON,
  /// nothing was added.
  bool add_one(std::string_view text, std::uint64_t offset);

 private:
  struct Json;
  std::unique_ptr<Json> json_;
  TraceBuilder& builder_;
  EventTokens tokens_;
};

}  // namespace ingot::trace
