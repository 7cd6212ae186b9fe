// SPDX-License-Identifier: Apache-2.0
//
// Turns the tokens of one event into a row of a Trace: decides by category what is kept, interns text, reads
// numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/trace.h"
#include "trace/event_fields.h"

namespace ingot::trace {

class TraceBuilder {
 public:
  explicit TraceBuilder(Trace& trace);

  /// Adds an event whose first byte stands at `offset`. An event that Ingot keeps but that has no usable time
  /// is counted as skipped.
  void add(const EventTokens& event, std::uint64_t offset);

  /// Counts an event that cannot be read.
  void skip(std::uint64_t offset);

 private:
  enum class Kind : std::uint8_t {
    counted,
    op,
    call,
    kernel,
    memcpy,
    memset,
    annotation,
    gpu_annotation,
    overhead
  };
  struct Category {
    StringId name;
    Kind kind;
    std::uint32_t row;  ///< in Trace::categories
  };
  struct Span {
    std::int64_t ts_ns, dur_ns;
  };
  struct KnownCategory {
    std::string_view name;
    Kind kind;
  };
  static const KnownCategory known_categories[];

  StringId intern(std::string_view text);
  StringId intern_string(std::string_view token);
  StringId intern_shape(std::string_view token);
  const Category& category(std::string_view token);
  std::uint32_t thread(std::string_view pid, std::string_view tid);
  std::uint32_t launch_shape(const EventTokens& event);
  void add_row(const EventTokens& event, Kind kind, Span span);

  /// Remembers where text was interned, so that the pool's own table is only asked for text not seen lately.
  struct CachedText {
    std::uint32_t hash = 0;
    StringId id = 0;
  };
  struct CachedThread {
    std::string pid, tid;  ///< as the file spells them
    std::uint32_t thread = none;
  };
  struct ShapeHash {
    std::size_t operator()(const LaunchShape& shape) const;
  };

  Trace& trace_;
  std::vector<CachedText> text_cache_;
  std::vector<Category> categories_;
  std::unordered_map<StringId, std::uint32_t> category_of_;
  std::array<std::uint32_t, 64> category_cache_{};
  std::array<CachedThread, 4> thread_cache_;
  std::size_t thread_cache_next_ = 0;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::unordered_map<LaunchShape, std::uint32_t, ShapeHash> shapes_;
  std::string unescaped_;
  bool any_time_ = false;
};

}  // namespace ingot::trace
