// SPDX-License-Identifier: Apache-2.0
#include "jit/sources.h"

#include <algorithm>

namespace ingot::jit {

namespace {

void skip_spaces(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
}

/// What a line `#include "name"` names; "" for any other line.
std::string_view included_name(std::string_view line) {
  skip_spaces(line);
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_spaces(line);
  constexpr std::string_view directive = "include";
  if (!line.starts_with(directive)) return {};
  line.remove_prefix(directive.size());
  skip_spaces(line);
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  const std::size_t end = line.find('"');
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

void mark_included(std::string_view text, std::span<const SourceFile> all, std::vector<bool>& used) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view name = included_name(text.substr(0, end));
    text.remove_prefix(end);
    if (name.empty()) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name != name || used[i]) continue;
      used[i] = true;
      mark_included(all[i].text, all, used);
    }
  }
}

}  // namespace

std::vector<SourceFile> included_sources(std::string_view text, std::span<const SourceFile> all) {
  std::vector<bool> used(all.size());
  mark_included(text, all, used);
  std::vector<SourceFile> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (used[i]) out.push_back(all[i]);
  }
  return out;
}

}  // namespace ingot::jit
