// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ingot/trace.h"

namespace ingot::trace {

namespace {
constexpr std::size_t block_bytes = std::size_t{64} * 1024;
}

StringPool::StringPool() {
  intern("");
}

std::string_view StringPool::store(std::string_view text) {
  if (blocks_.empty() || blocks_.back().size() - used_ < text.size()) {
    blocks_.emplace_back(std::max(block_bytes, text.size()));
    used_ = 0;
  }
  char* at = blocks_.back().data() + used_;
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  used_ += text.size();
  return {at, text.size()};
}

StringId StringPool::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const std::string_view kept = store(text);
  const auto id = static_cast<StringId>(views_.size());
  views_.push_back(kept);
  ids_.emplace(kept, id);
  return id;
}

}  // namespace ingot::trace
