// SPDX-License-Identifier: Apache-2.0
//
// Golden files: the expected text of a whole report, kept under tests/golden/expected and compared byte for
// byte.
//
//   EXPECT_TRUE(golden_matches(text, "geglu_64x128x768x3072_eager.txt"));
//
// With INGOT_UPDATE_GOLDEN=1 in the environment a file that differs is written anew and the test still fails:
// an update is reviewed as a diff and never passes by itself.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ingot::test {

/// The file's bytes, or nothing when it cannot be read.
inline std::optional<std::string> read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end =
        std::min(text.find('\n'), text.size() - 1) + 1;  // the newline is part of its line
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

/// The lines between the common beginning and the common end of two texts, expected (-) then actual (+), at
/// most `limit` of each.
inline std::string short_diff(std::string_view expected, std::string_view actual, std::size_t limit = 12) {
  const auto a = split_lines(expected), b = split_lines(actual);
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t head = 0, tail = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;

  std::string out = "line " + std::to_string(head + 1) + ":\n";
  const auto append = [&](const std::vector<std::string_view>& lines, char sign) {
    const std::size_t end = lines.size() - tail, shown = std::min(end, head + limit);
    for (std::size_t i = head; i < shown; ++i) {
      out.append(1, sign).append(lines[i]);
      if (lines[i].back() != '\n') out += "  (no newline at the end)\n";
    }
    if (shown < end) out.append(1, sign).append(" … " + std::to_string(end - shown) + " more lines\n");
  };
  append(a, '-');
  append(b, '+');
  return out;
}

/// Compares `actual` with the file at `path`; see golden_matches() for what `update` does.
inline ::testing::AssertionResult compare_golden(std::string_view actual, const std::filesystem::path& path,
                                                 bool update) {
  const std::optional<std::string> expected = read_all(path);
  if (expected && *expected == actual) return ::testing::AssertionSuccess();

  auto failure = ::testing::AssertionFailure();
  if (expected) {
    failure << path.string() << " differs from what was produced, " << short_diff(*expected, actual);
  } else {
    failure << path.string() << " is missing\n";
  }
  if (!update)
    return failure << "if the new text is right, write it with INGOT_UPDATE_GOLDEN=1 and review the diff";

  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(actual.data(), static_cast<std::streamsize>(actual.size()));
  out.close();
  return failure << (out ? "written anew; review the diff and run the tests again" : "could not be written");
}

/// Compares `actual` with tests/golden/expected/`name`.
inline ::testing::AssertionResult golden_matches(std::string_view actual, const std::string& name) {
  const char* update = std::getenv("INGOT_UPDATE_GOLDEN");
  return compare_golden(actual, std::filesystem::path(INGOT_GOLDEN) / name,
                        update != nullptr && std::string_view(update) == "1");
}

}  // namespace ingot::test
