// SPDX-License-Identifier: Apache-2.0
//
// Reads the labels of tiles.
#pragma once

#include <charconv>
#include <string_view>

namespace ingot {

/// Reads a label from the left; the first thing that is not there makes it fail for good.
class LabelReader {
 public:
  explicit LabelReader(std::string_view label) : rest_(label) {}

  bool next_is(char letter) {
    if (rest_.empty() || rest_.front() != letter) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char letter) { failed_ = !next_is(letter) || failed_; }
  /// A number from `least` on of at most `digits` digits, without leading zeros.
  int number(std::size_t digits = 3, int least = 1) {
    const std::string_view part = rest_.substr(0, digits);
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    const auto length = static_cast<std::size_t>(end - part.data());
    if (error != std::errc() || value < least || (part.front() == '0' && length > 1)) {
      failed_ = true;
      return 0;
    }
    rest_.remove_prefix(length);
    return value;
  }
  int number_after(char letter) {
    expect(letter);
    return number();
  }
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace ingot
