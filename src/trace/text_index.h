// SPDX-License-Identifier: Apache-2.0
//
// Where the quotes and brackets of a JSON text are, found 64 bytes a step and only as far as asked for: what
// lets a parser step over strings and nested values at memory speed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/block_scan.h"

namespace ingot::trace {

class TextIndex {
 public:
  explicit TextIndex(ScanBlocks scan = best_scan()) : scan_(scan) {}

  /// Starts anew. `text` begins outside any string and must be readable for 64 bytes past its end; it is not
  /// copied.
  void reset(std::string_view text);

  /// Position of the first quote that no backslash escapes, at or after `from`; the text's size when there is
  /// none.
  std::size_t quote(std::size_t from) {
    for (std::size_t block = from / 64, below = from % 64;; ++block, below = 0) {
      if (block >= indexed_ && !extend_to(block)) return text_.size();
      const std::uint64_t found = quotes_[block] >> below << below;
      if (found != 0) return block * 64 + static_cast<std::size_t>(std::countr_zero(found));
    }
  }

  /// Position of the first brace or bracket outside strings, at or after `from`; the text's size when there
  /// is none.
  std::size_t bracket(std::size_t from) {
    for (std::size_t block = from / 64, below = from % 64;; ++block, below = 0) {
      if (block >= indexed_ && !extend_to(block)) return text_.size();
      const std::uint64_t found = brackets_[block].all >> below << below;
      if (found != 0) return block * 64 + static_cast<std::size_t>(std::countr_zero(found));
    }
  }

  /// Position of the bracket that brings the nesting opened at `open` back to nothing; the text's size when
  /// there is none. Braces and brackets count alike.
  std::size_t match(std::size_t open) {
    std::size_t depth = 0;
    for (std::size_t block = open / 64, below = open % 64;; ++block, below = 0) {
      if (block >= indexed_ && !extend_to(block)) return text_.size();
      const std::uint64_t opens = brackets_[block].opens;
      for (std::uint64_t left = brackets_[block].all >> below << below; left != 0; left &= left - 1) {
        if ((opens & left & (~left + 1)) != 0) {
          ++depth;
        } else if (--depth == 0) {
          return block * 64 + static_cast<std::size_t>(std::countr_zero(left));
        }
      }
    }
  }

  /// First control character inside a string as far as the text is indexed; the text's size when there is
  /// none.
  std::size_t first_control() const { return first_control_; }
  /// First byte beyond ASCII as far as the text is indexed; the text's size when there is none.
  std::size_t first_beyond_ascii() const { return first_beyond_ascii_; }

 private:
  struct Brackets {
    std::uint64_t opens, all;
  };

  /// Indexes the text up to and with `block`; false when the text ends first.
  bool extend_to(std::size_t block);
  void extend();

  ScanBlocks scan_;
  std::string_view text_;
  std::size_t indexed_ = 0;  ///< blocks
  std::vector<std::uint64_t> quotes_;
  std::vector<Brackets> brackets_;
  std::size_t first_control_ = 0, first_beyond_ascii_ = 0;
  std::uint64_t in_string_ = 0;  ///< all ones while a string is open at the end of the last block
  bool escape_ = false;          ///< the last block's last byte escapes the next block's first
};

}  // namespace ingot::trace
