// SPDX-License-Identifier: Apache-2.0
//
// Drives the parser over the event array, and finds the way back after damage: one bad event costs
// one event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/status.h"
#include "ingot/trace.h"
#include "trace/event_parser.h"
#include "trace/text_window.h"
#include "trace/trace_builder.h"

namespace ingot::trace {

class EventReader {
 public:
  EventReader(TextWindow& window, Trace& trace);

  /// Reads events from the window, which stands behind the array's '[', to the array's end or the end of the
  /// text (Trace::complete false).
  Result<void> read();

 private:
  enum class Progress : std::uint8_t { done, more_text, ended };

  Progress step();
  Progress out_of_text();
  Progress resolve_event();
  Progress skip_junk();
  bool mend_and_add(std::string_view text);
  std::string_view text() { return {window_.begin(), window_.size()}; }
  std::uint64_t offset() { return window_.offset_of(window_.begin()); }

  TextWindow& window_;
  Trace& trace_;
  TraceBuilder builder_;
  EventParser parser_;
  TextIndex index_;
  std::string mended_;
  bool in_junk_ = false;           ///< the junk at the window's begin is counted already
  bool junk_after_array_ = false;  ///< that junk began with a ']': at the end of the text it was the array's
};

}  // namespace ingot::trace
