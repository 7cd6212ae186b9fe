// SPDX-License-Identifier: Apache-2.0
#include "trace/json_mender.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "trace/json_text.h"

namespace ingot::trace {
namespace {

/// Keys of a trace are short: a longer string before a ':' is no key, and the look-ahead stays cheap.
constexpr std::size_t longest_key = 256;

bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= ' ';
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class Mender {
 public:
  Mender(std::string_view text, BackslashQuote style, std::string& out)
      : text_(text), style_(style), out_(out) {}

  bool run() {
    out_.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_blank(c)) {
        out_.push_back(' ');
        ++at_;
      } else if (!token(c)) {
        return false;
      }
    }
    return closed_;
  }

 private:
  bool token(char c) {
    if (open_.empty() && (closed_ || c != '{')) return false;
    switch (c) {
      case '{':
      case '[':
        open_.push_back(c);
        put(c);
        ++at_;
        return true;
      case '}':
      case ']':
        return close(c);
      case ',':
        if (last_ == ':') out_ += "null";
        if (last_ != ',' && last_ != '{' && last_ != '[') put(',');
        ++at_;
        return true;
      case ':':
        put(':');
        ++at_;
        return true;
      case '"':
        return string();
      default:
        return word();
    }
  }

  bool close(char c) {
    if (open_.back() != (c == '}' ? '{' : '[')) return false;
    if (open_.size() == 1 && member_follows(at_ + 1)) {  // the object goes on: a brace too many
      ++at_;
      return true;
    }
    if (last_ == ':') out_ += "null";
    if (last_ == ',') out_[last_at_] = ' ';
    open_.pop_back();
    put(c);
    ++at_;
    closed_ = open_.empty();
    return true;
  }

  /// A number, true, false, null; or what C and Python print in their place.
  bool word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) &&
           std::string_view(",:{}[]\"").find(text_[at_]) == text_.npos) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    std::string_view magnitude = word;
    if (magnitude.front() == '-' || magnitude.front() == '+') magnitude.remove_prefix(1);
    if (magnitude.empty()) return false;
    if (magnitude.front() >= '0' && magnitude.front() <= '9') {
      const auto in_number = [](char c) {
        return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
      };
      const bool number = std::all_of(magnitude.begin(), magnitude.end(), in_number);
      return put_word(number ? (word.front() == '+' ? magnitude : word) : "null");
    }
    std::string name;
    for (const char c : magnitude.substr(0, 16)) name.push_back(lower(c));
    if (name == "true" || name == "false") return put_word(name);
    constexpr std::array<std::string_view, 7> nothing = {"null", "nan",      "inf",      "infinity",
                                                         "none", "nan(ind)", "undefined"};
    if (std::find(nothing.begin(), nothing.end(), name) == nothing.end()) return false;
    return put_word("null");
  }

  bool string() {
    const bool key = open_.back() == '{' && (last_ == '{' || last_ == ',');
    put('"');
    for (++at_; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '"') {
        if (ends_string(at_, key)) {
          ++at_;
          put('"');
          return true;
        }
        out_ += "\\\"";
        ++at_;
      } else if (c == '\\') {
        if (backslash(key)) return true;
      } else if (static_cast<unsigned char>(c) < ' ') {
        out_.push_back(' ');
        ++at_;
      } else {
        character();
      }
    }
    return false;
  }

  /// True when the string ends here.
  bool backslash(bool key) {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (next == '"' && style_ == BackslashQuote::may_close && ends_string(at_ + 1, key)) {
      out_ += "\\\\";
      put('"');
      at_ += 2;
      return true;
    }
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    const bool four_digits = digits.size() == 4 && std::all_of(digits.begin(), digits.end(), is_hex);
    const bool escape =
        next == 'u' ? four_digits : next != '\0' && std::string_view("\"\\/bfnrt").find(next) != text_.npos;
    out_.push_back('\\');
    out_.push_back(escape ? next : '\\');
    at_ += escape ? 2 : 1;
    return false;
  }

  void character() {
    const std::size_t length = utf8_length(text_.substr(at_, 4));
    if (length == 0) append_utf8(0xfffd, out_);
    out_.append(text_, at_, length);
    at_ += std::max<std::size_t>(length, 1);
  }

  std::size_t skip_blank(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return at;
  }
  char at_or_end(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  /// Does JSON go on behind a quote at `quote`, if that quote ends a string?
  bool ends_string(std::size_t quote, bool key) const {
    std::size_t next = skip_blank(quote + 1);
    const char c = at_or_end(next);
    if (key) return c == ':';
    if (c == '}' || c == ']') {
      if (open_.back() != (c == '}' ? '{' : '[')) return false;
      next = skip_blank(next + 1);
      return next == text_.size() || std::string_view(",}]").find(text_[next]) != text_.npos;
    }
    if (c != ',') return false;
    if (open_.back() == '{') return member_follows(next) || at_or_end(skip_blank(next + 1)) == '}';
    return std::string_view("\"-[{tfn0123456789").find(at_or_end(skip_blank(next + 1))) != text_.npos;
  }

  /// A comma, a quoted key and a colon.
  bool member_follows(std::size_t at) const {
    at = skip_blank(at);
    if (at_or_end(at) != ',') return false;
    at = skip_blank(at + 1);
    if (at_or_end(at) != '"') return false;
    const std::size_t end_of_key =
        text_.substr(0, std::min(text_.size(), at + longest_key)).find('"', at + 1);
    return end_of_key != text_.npos && at_or_end(skip_blank(end_of_key + 1)) == ':';
  }

  void put(char c) {
    last_ = c;
    last_at_ = out_.size();
    out_.push_back(c);
  }
  bool put_word(std::string_view word) {
    if (last_ == '{' || (last_ == ',' && open_.back() == '{')) return false;  // a key must be a string
    last_ = '0';
    out_ += word;
    return true;
  }

  std::string_view text_;
  BackslashQuote style_;
  std::string& out_;
  std::string open_;  // the braces and brackets open, innermost last
  std::size_t at_ = 0;
  std::size_t last_at_ = 0;  // in out_
  char last_ = '\0';         // the last token: its first character, or '0' for a word
  bool closed_ = false;
};

}  // namespace

bool mend_json(std::string_view object, BackslashQuote style, std::string& out) {
  return Mender(object, style, out).run();
}

}  // namespace ingot::trace
