// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <algorithm>
#include <numeric>

namespace ingot {

namespace {
bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}
constexpr std::size_t gap = 2;
constexpr std::size_t narrowest = 12;
}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t at = 0;
  for (std::size_t kept = 0; at < text.size(); ++at) {
    if (starts_code_point(text[at]) && kept++ == width - 1) break;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string TextTable::render(int width) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = display_width(columns_[c].title);
    for (const auto& row : rows_) widest = std::max(widest, c < row.size() ? display_width(row[c]) : 0);
    widths.push_back(widest);
  }
  const auto limit = static_cast<std::size_t>(std::max(width, 0));
  while (std::accumulate(widths.begin(), widths.end(), gap * columns_.size()) > limit) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].align != Align::left || widths[c] <= narrowest) continue;
      if (widest == columns_.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == columns_.size()) break;  // nothing left to cut: the line is longer than asked for
    --widths[widest];
  }

  std::string out;
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = shortened(cell_at(c), widths[c]);
      const std::string padding(widths[c] - display_width(cell), ' ');
      text += std::string(gap, ' ');
      text += columns_[c].align == Align::left ? cell + padding : padding + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](std::size_t c) -> std::string_view { return columns_[c].title; });
  for (const auto& row : rows_) {
    line([&](std::size_t c) -> std::string_view {
      return c < row.size() ? std::string_view(row[c]) : std::string_view();
    });
  }
  return out;
}

}  // namespace ingot
