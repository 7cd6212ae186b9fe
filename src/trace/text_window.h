// SPDX-License-Identifier: Apache-2.0
//
// A sliding window over the text of a trace: one buffer, refilled from a source, holding only what is not
// read yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/byte_source.h"

namespace ingot::trace {

class TextWindow {
 public:
  /// Bytes that may be read (not trusted) behind end(): block scans and simdjson load past the last
  /// character.
  static constexpr std::size_t padding = 128;

  explicit TextWindow(std::unique_ptr<ByteSource> source);

  /// The text at hand. One byte before begin() and `padding` bytes after end() belong to the window, too.
  char* begin() { return buffer_.get() + begin_; }
  char* end() { return buffer_.get() + end_; }
  std::size_t size() const { return end_ - begin_; }
  bool at_end() const { return at_end_; }  ///< the source has no more bytes than those at hand

  /// Drops the text before `position`.
  void consume_to(const char* position) { begin_ = static_cast<std::size_t>(position - buffer_.get()); }

  /// Reads more text behind the text at hand; pointers into the window become stale. False when there is no
  /// more.
  Result<bool> more();

  /// Offset of `position` in the whole text.
  std::uint64_t offset_of(const char* position) const {
    return dropped_ + static_cast<std::uint64_t>(position - buffer_.get()) - margin;
  }
  std::uint64_t bytes_read() const { return dropped_ + end_ - margin; }
  std::string damage() const { return source_->damage(); }

 private:
  static constexpr std::size_t margin = 64;  ///< room for the '[' in front of the first event, kept aligned
  static constexpr std::size_t chunk =
      std::size_t{256} * 1024;  ///< fits the second-level cache together with simdjson's index

  void make_room();

  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;  ///< without padding
  std::size_t begin_ = margin, end_ = margin;
  std::uint64_t dropped_ = 0;  ///< bytes of the text that stood before buffer_[margin] and are gone
  bool at_end_ = false;
};

}  // namespace ingot::trace
