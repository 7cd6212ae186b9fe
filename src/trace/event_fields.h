// SPDX-License-Identifier: Apache-2.0
//
// The members of an event that Ingot reads, and where they stand in its JSON.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ingot::trace {

enum class Field : std::uint8_t {
  ph,
  cat,
  name,
  pid,
  tid,
  ts,
  dur,
  args,
  external_id,
  correlation,
  dims,
  types,
  concrete,
  device,
  stream,
  bytes,
  grid,
  block,
  registers,
  shared_memory,
  count,
  unknown = count,
};

/// The JSON text of each field of one event; empty where the event has none.
class EventTokens {
 public:
  std::string_view& operator[](Field field) { return raw_[static_cast<std::size_t>(field)]; }
  std::string_view operator[](Field field) const { return raw_[static_cast<std::size_t>(field)]; }
  void clear() { raw_.fill({}); }

 private:
  std::array<std::string_view, static_cast<std::size_t>(Field::count)> raw_{};
};

struct FieldKey {
  std::string_view text;
  Field field;
};

/// Looks keys up by their first eight bytes, closing quote included: one load and a few compares a key.
template <std::size_t N>
class KeyTable {
 public:
  constexpr explicit KeyTable(const FieldKey (&keys)[N]) {
    for (std::size_t i = 0; i < N; ++i) {
      keys_[i] = keys[i];
      std::array<char, 8> word{}, mask{};
      for (std::size_t at = 0; at < word.size() && at <= keys[i].text.size(); ++at) {
        word[at] = at < keys[i].text.size() ? keys[i].text[at] : '"';
        mask[at] = '\xff';
      }
      words_[i] = std::bit_cast<std::uint64_t>(word);
      masks_[i] = std::bit_cast<std::uint64_t>(mask);
    }
  }

  /// `raw` points at the first character of a key inside its quotes; eight bytes must be readable.
  Field find(const char* raw) const {
    std::uint64_t word;
    std::memcpy(&word, raw, sizeof word);
    for (std::size_t i = 0; i < N; ++i) {
      if ((word & masks_[i]) != words_[i]) continue;
      const std::string_view text = keys_[i].text;
      if (text.size() < sizeof word) return keys_[i].field;
      if (std::memcmp(raw + 8, text.data() + 8, text.size() - 8) == 0 && raw[text.size()] == '"')
        return keys_[i].field;
    }
    return Field::unknown;
  }

 private:
  std::array<std::uint64_t, N> words_{}, masks_{};
  std::array<FieldKey, N> keys_{};
};

}  // namespace ingot::trace
