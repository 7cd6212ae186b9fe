// SPDX-License-Identifier: Apache-2.0
#include "trace/text_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ingot::trace {

TextWindow::TextWindow(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)),
      buffer_(new char[margin + 2 * chunk + padding]()),
      capacity_(margin + 2 * chunk) {}

void TextWindow::make_room() {
  if (capacity_ - end_ >= chunk / 2) return;
  // An event longer than the buffer makes it double, so that moving text stays linear in the bytes read.
  const std::size_t live = end_ - begin_;
  const std::size_t wanted = std::max(margin + 2 * chunk, margin + 2 * live + chunk);
  if (wanted > capacity_) {
    std::unique_ptr<char[]> larger(new char[wanted + padding]());
    std::memcpy(larger.get() + margin, begin(), live);
    buffer_ = std::move(larger);
    capacity_ = wanted;
  } else {
    std::memmove(buffer_.get() + margin, begin(), live);
  }
  dropped_ += begin_ - margin;
  begin_ = margin;
  end_ = margin + live;
}

Result<bool> TextWindow::more() {
  if (at_end_) return false;
  make_room();
  const std::size_t room = std::min(capacity_ - end_, chunk);
  auto got = source_->read(buffer_.get() + end_, room);
  if (!got) return got.error();
  end_ += *got;
  at_end_ = *got == 0;
  std::memset(buffer_.get() + end_, 0, padding);
  return !at_end_;
}

}  // namespace ingot::trace
