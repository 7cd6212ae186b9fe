// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "trace/envelope.h"
#include "trace/event_reader.h"
#include "trace/text_window.h"

namespace ingot::trace {
namespace {

void summarise(Trace& trace) {
  if (!trace.complete)
    trace.warnings.emplace_back("the trace is incomplete: its text ends before the event array does");
  if (trace.skipped_events != 0) {
    trace.warnings.push_back(fmt::format("{} event{} could not be read, the first at byte {}",
                                         trace.skipped_events, trace.skipped_events == 1 ? "" : "s",
                                         trace.first_skipped_offset));
  }
  if (trace.repaired_events != 0) {
    trace.warnings.push_back(fmt::format("{} event{} mended before reading", trace.repaired_events,
                                         trace.repaired_events == 1 ? " was" : "s were"));
  }
}

/// Allocation is the one thing below that throws.
template <class Open>
Result<Trace> guarded(const std::string& name, Open&& open) {
  try {
    return open();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, name + ": not enough memory for this trace"};
  } catch (const std::exception& error) {
    return Error{ErrorCode::internal, name + ": " + error.what()};
  }
}

}  // namespace

Result<Trace> read_source(std::unique_ptr<ByteSource> source, std::string name) {
  auto plain = inflate_if_gzip(std::move(source));
  if (!plain) return plain.error();
  Trace trace;
  trace.file = std::move(name);
  const std::string who = trace.file == "-" ? "standard input" : trace.file;
  TextWindow window(std::move(plain).value());
  if (auto sought = seek_events(window, who, trace); !sought) return sought.error();
  if (auto read = EventReader(window, trace).read(); !read) return read.error();
  if (auto rest = read_rest(window, trace); !rest) return rest.error();
  if (trace.events == 0 && trace.skipped_events != 0) {
    return Error{ErrorCode::unreadable, who + ": its array holds nothing that can be read as an event"};
  }
  trace.bytes = window.bytes_read();
  if (const std::string damage = window.damage(); !damage.empty()) trace.warnings.push_back(damage);
  summarise(trace);
  return trace;
}

Result<Trace> read_file(const std::string& path) {
  return guarded(path, [&path]() -> Result<Trace> {
    auto source = open_bytes(path);
    if (!source) return source.error();
    return read_source(std::move(source).value(), path);
  });
}

Result<Trace> read_text(std::string_view text, std::string name) {
  return guarded(name, [text, &name]() { return read_source(memory_bytes(text), name); });
}

}  // namespace ingot::trace
