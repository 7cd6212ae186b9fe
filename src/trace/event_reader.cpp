// SPDX-License-Identifier: Apache-2.0
#include "trace/event_reader.h"

#include <fmt/format.h>

#include "trace/event_borders.h"
#include "trace/json_mender.h"
#include "trace/json_text.h"

namespace ingot::trace {
namespace {

// An event that long without an end is looked at for one that was missed; and one that long is given up, so
// that memory stays bounded on garbage. The longest real events (lists of ranks) are some hundred kilobytes.
constexpr std::size_t doubtful_event = 1024 * 1024;
constexpr std::size_t longest_event = 8 * 1024 * 1024;

bool comma_follows(std::string_view text) {
  text = skip_space(text);
  return !text.empty() && text.front() == ',';
}

}  // namespace

EventReader::EventReader(TextWindow& window, Trace& trace)
    : window_(window), trace_(trace), builder_(trace), parser_(builder_) {}

Result<void> EventReader::read() {
  for (;;) {
    const Progress progress = step();
    if (progress == Progress::ended) return {};
    if (progress == Progress::more_text) {
      auto more = window_.more();
      if (!more) return more.error();
    }
  }
}

EventReader::Progress EventReader::step() {
  if (in_junk_) return skip_junk();
  const EventParser::Run run = parser_.add_events(text(), window_.at_end(), offset());
  window_.consume_to(run.next);
  switch (run.stop) {
    case EventParser::Stop::limit:
      return Progress::done;
    case EventParser::Stop::array_end:
      window_.consume_to(run.next + 1);
      return Progress::ended;
    case EventParser::Stop::damaged:
      return resolve_event();
    case EventParser::Stop::junk:
      return skip_junk();
    case EventParser::Stop::need_text:
      break;
  }
  return out_of_text();
}

/// The text at hand ends inside an event or between two.
EventReader::Progress EventReader::out_of_text() {
  if (!window_.at_end() && window_.size() < doubtful_event) return Progress::more_text;
  return resolve_event();
}

bool EventReader::mend_and_add(std::string_view event) {
  for (const auto style : {BackslashQuote::escapes, BackslashQuote::may_close}) {
    if (!mend_json(event, style, mended_)) continue;
    const std::size_t length = mended_.size();
    mended_.append(TextWindow::padding, '\0');
    const std::uint64_t skipped = trace_.skipped_events;
    if (!parser_.add_one({mended_.data(), length}, offset())) continue;
    if (trace_.skipped_events == skipped) ++trace_.repaired_events;
    return true;
  }
  return false;
}

/// An event begins where the window does, but it is not valid JSON or its end is in doubt. Two ends are
/// possible: the first place where the text plainly goes on to a new event (right when a stray quote or brace
/// misleads the scan), and the brace that closes it by the scan (right when the event itself holds objects
/// that look like events).
EventReader::Progress EventReader::resolve_event() {
  const std::string_view all = text();
  const char* const plain_end = find_event_end(all, window_.at_end());
  if (plain_end == nullptr && !window_.at_end() && all.size() < longest_event) return Progress::more_text;
  if (plain_end != nullptr && mend_and_add(all.substr(0, static_cast<std::size_t>(plain_end - all.data())))) {
    window_.consume_to(plain_end);
    return Progress::done;
  }
  const std::uint64_t skipped = trace_.skipped_events;
  const char* const scan_end = find_object_end(all, index_);
  if (scan_end != nullptr && mend_and_add(all.substr(0, static_cast<std::size_t>(scan_end - all.data())))) {
    // Closed early: what stands before the next plain event is the rest of this one, no second fault. A comma
    // says that it is not, unless the event was of no use without its rest.
    const bool early = plain_end != nullptr && scan_end < plain_end;
    const bool rest_is_lost =
        early && (trace_.skipped_events != skipped ||
                  !comma_follows({scan_end, static_cast<std::size_t>(plain_end - scan_end)}));
    window_.consume_to(rest_is_lost ? plain_end : scan_end);
    return Progress::done;
  }
  if (plain_end != nullptr || scan_end != nullptr) {
    builder_.skip(offset());
    window_.consume_to(plain_end != nullptr ? plain_end : scan_end);
    return Progress::done;
  }
  if (!window_.at_end()) return skip_junk();
  trace_.complete = false;
  if (!all.empty())
    trace_.warnings.push_back(fmt::format("the text ends inside the event at byte {}", offset()));
  return Progress::ended;
}

/// Something that is no event: counted once, and left behind at the next place where an event plainly begins.
EventReader::Progress EventReader::skip_junk() {
  const std::string_view all = text();
  const std::size_t looked_at = in_junk_ || all.empty() ? 0 : 1;  // an event given up may begin like one
  if (!in_junk_) {
    junk_after_array_ = !all.empty() && all.front() == ']';
    if (!junk_after_array_) builder_.skip(offset());
    in_junk_ = true;
  }
  if (const char* const begin = find_event_begin(all.substr(looked_at))) {
    if (junk_after_array_) builder_.skip(offset());
    window_.consume_to(begin);
    in_junk_ = false;
    return Progress::done;
  }
  if (!window_.at_end()) {
    if (all.size() > event_key_room) window_.consume_to(window_.end() - event_key_room);
    return Progress::more_text;
  }
  trace_.complete = junk_after_array_;
  return Progress::ended;
}

}  // namespace ingot::trace
