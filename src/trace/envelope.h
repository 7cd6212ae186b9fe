// SPDX-License-Identifier: Apache-2.0
//
// What stands around the event array: the members of the outer object. They may be broken (the profiler
// writes user metadata as it comes) without costing an event.
#pragma once

#include <string>
#include <string_view>

#include "ingot/status.h"
#include "ingot/trace.h"
#include "trace/text_window.h"

namespace ingot::trace {

/// Puts the window behind the '[' of the event array and reads the members before it into `trace`. Fails with
/// ErrorCode::unreadable when there is no event array; `who` is the file in the message.
Result<void> seek_events(TextWindow& window, const std::string& who, Trace& trace);

/// Reads what follows the event array, to the end of the text.
Result<void> read_rest(TextWindow& window, Trace& trace);

/// Reads members (`"key": value, …`, without the outer braces) into metadata and devices. Broken ones cost a
/// warning.
void read_members(std::string_view members, Trace& trace);

}  // namespace ingot::trace
