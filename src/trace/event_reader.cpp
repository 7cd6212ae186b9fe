// SPDX-License-Identifier: Apache-2.0
#include "trace/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trace/json_mender.h"

namespace ingot::trace {
namespace {

// Enough to amortise a parse, small enough that text, index and columns stay in the second-level cache.
constexpr std::size_t run_bytes = 64 * 1024;
constexpr std::size_t all_events = std::numeric_limits<std::size_t>::max();

// An event that long without an end is looked at for one that was missed; and one that long is given up, so
// that memory stays bounded on garbage. The longest real events (lists of ranks) are some hundred kilobytes.
constexpr std::size_t doubtful_event = 1024 * 1024;
constexpr std::size_t longest_event = 8 * 1024 * 1024;
constexpr std::size_t boundary_bytes = 256;  // kept while searching: what an event's first key may need

bool comma_follows(const char* at, const char* end) {
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
  return at != end && *at == ',';
}

}  // namespace

EventReader::EventReader(TextWindow& window, Trace& trace)
    : window_(window), trace_(trace), builder_(trace), parser_(builder_), most_events_(all_events) {}

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
  split_events(text(), window_.at_end(), most_events_, run_bytes, run_);
  if (!run_.events.empty()) {
    const std::size_t added = parser_.add_run(run_, window_.offset_of(run_.events.front().begin));
    if (added == run_.events.size()) {
      window_.consume_to(run_.next);
      most_events_ = most_events_ > all_events / 2 ? all_events : most_events_ * 2;
      return Progress::done;
    }
    window_.consume_to(run_.events[added].begin);
    most_events_ = 1;
    return run_.events.size() == 1 ? resolve_event() : Progress::done;
  }
  window_.consume_to(run_.next);
  switch (run_.stop) {
    case EventRun::Stop::array_end:
      window_.consume_to(run_.next + 1);
      return Progress::ended;
    case EventRun::Stop::suspect:
      return resolve_event();
    case EventRun::Stop::junk:
      return skip_junk();
    case EventRun::Stop::need_text:
      return out_of_text();
    case EventRun::Stop::limit:
      break;
  }
  return Progress::done;
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
  const ObjectScan scan = scan_object(all);
  const bool closed = scan.state == ObjectScan::State::closed;
  const char* const plain_end = find_event_end(all, window_.at_end());
  if (plain_end == nullptr && !window_.at_end() && all.size() < longest_event) return Progress::more_text;

  const char* const scan_end = closed ? all.data() + scan.length : nullptr;
  for (const char* const end : {plain_end, scan_end == plain_end ? nullptr : scan_end}) {
    if (end == nullptr) continue;
    const std::uint64_t skipped = trace_.skipped_events;
    if (!mend_and_add({all.data(), static_cast<std::size_t>(end - all.data())})) continue;
    // Closed early: what stands before the next plain event is the rest of this one, no second fault. A comma
    // says that it is not, unless the event was of no use without its rest.
    const bool early = plain_end != nullptr && end < plain_end;
    const bool rest_is_lost = early && (trace_.skipped_events != skipped || !comma_follows(end, plain_end));
    window_.consume_to(rest_is_lost ? plain_end : end);
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
    if (all.size() > boundary_bytes) window_.consume_to(window_.end() - boundary_bytes);
    return Progress::more_text;
  }
  trace_.complete = junk_after_array_;
  return Progress::ended;
}

}  // namespace ingot::trace
