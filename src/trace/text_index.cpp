// SPDX-License-Identifier: Apache-2.0
#include "trace/text_index.h"

#include <algorithm>
#include <array>

namespace ingot::trace {
namespace {

// Far enough that asking is rare, near enough that the bytes are still in the first-level cache when they are
// parsed.
constexpr std::size_t blocks_a_step = 64;

}  // namespace

void TextIndex::reset(std::string_view text) {
  text_ = text;
  indexed_ = 0;
  first_control_ = first_beyond_ascii_ = text.size();
  in_string_ = 0;
  escape_ = false;
}

bool TextIndex::extend_to(std::size_t block) {
  if (block >= (text_.size() + 63) / 64) return false;
  while (indexed_ <= block) extend();
  return true;
}

void TextIndex::extend() {
  const std::size_t all_blocks = (text_.size() + 63) / 64;
  const std::size_t count = std::min(all_blocks - indexed_, blocks_a_step);
  std::array<BlockMasks, blocks_a_step> masks;
  scan_(text_.data() + indexed_ * 64, count, masks.data());
  if (indexed_ + count > quotes_.size()) {
    quotes_.resize(std::max(2 * quotes_.size(), indexed_ + count));
    brackets_.resize(quotes_.size());
  }
  for (std::size_t i = 0; i != count; ++i) {
    const BlockMasks& m = masks[i];
    const std::size_t base = (indexed_ + i) * 64;
    const std::size_t left = text_.size() - base;
    const std::uint64_t valid = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    std::uint64_t quotes = m.quotes & valid;
    if (m.backslashes != 0 || escape_) quotes &= ~escaped_bytes(m.backslashes, escape_);
    const std::uint64_t in_string = prefix_xor(quotes) ^ in_string_;
    in_string_ = std::uint64_t{0} - (in_string >> 63);
    const std::uint64_t outside = valid & ~in_string;
    quotes_[indexed_ + i] = quotes;
    brackets_[indexed_ + i] = {m.opens & outside, (m.opens | m.closes) & outside};
    const auto note = [base](std::uint64_t found, std::size_t& first) {
      if (found != 0) first = std::min(first, base + static_cast<std::size_t>(std::countr_zero(found)));
    };
    note(m.controls & in_string & valid, first_control_);
    note(m.beyond_ascii & valid, first_beyond_ascii_);
  }
  indexed_ += count;
}

}  // namespace ingot::trace
