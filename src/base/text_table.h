// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Columns of text, aligned. The first column may be cut to fit the width; numbers never are.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  /// Every line indented by two spaces and ended by a newline; left-aligned cells are shortened with "…"
  /// until a line fits `width` columns, the widest first.
  std::string render(int width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns a text takes on a terminal: its code points (every name Ingot writes is single-width).
std::size_t display_width(std::string_view text);
/// At most `width` columns, the last one "…" where something was cut.
std::string shortened(std::string_view text, std::size_t width);

}  // namespace ingot
