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

/// Looks keys up without knowing their length: by first letter, then by their first sixteen bytes with the
/// closing quote. Most keys of an event are of no interest, and most of those are turned down by one load and
/// one compare.
template <std::size_t N>
class KeyTable {
 public:
  constexpr explicit KeyTable(const FieldKey (&keys)[N]) {
    std::size_t filled = 0;
    for (std::size_t letter = 0; letter < letters; ++letter) {
      first_[letter] = static_cast<std::uint8_t>(filled);
      for (const FieldKey& key : keys) {
        if (bucket(key.text[0]) == letter) entries_[filled++] = Entry(key);
      }
    }
    first_[letters] = static_cast<std::uint8_t>(filled);
  }

  /// `raw` points at the first character of a key inside its quotes; as many bytes as the longest key has
  /// must be readable.
  Field find(const char* raw) const {
    const std::size_t letter = bucket(*raw);
    std::uint64_t head = 0, tail = 0;
    std::memcpy(&head, raw, sizeof head);
    for (std::size_t i = first_[letter], end = first_[letter + 1]; i != end; ++i) {
      const Entry& entry = entries_[i];
      if (((head ^ entry.head) & entry.head_mask) != 0) continue;
      if (entry.tail_mask == 0) return entry.key.field;
      std::memcpy(&tail, raw + sizeof head, sizeof tail);
      if (((tail ^ entry.tail) & entry.tail_mask) != 0) continue;
      const std::string_view text = entry.key.text;
      if (text.size() < 16) return entry.key.field;
      if (std::string_view(raw, text.size()) == text && raw[text.size()] == '"') return entry.key.field;
    }
    return Field::unknown;
  }

 private:
  static constexpr std::size_t letters = 32;
  static constexpr std::size_t bucket(char c) { return static_cast<unsigned char>(c) % letters; }

  struct Entry {
    constexpr Entry() = default;
    constexpr explicit Entry(const FieldKey& from)
        : head(word(from.text, 0, false)),
          head_mask(word(from.text, 0, true)),
          tail(word(from.text, 8, false)),
          tail_mask(word(from.text, 8, true)),
          key(from) {}
    std::uint64_t head = 0, head_mask = 0, tail = 0, tail_mask = 0;
    FieldKey key{{}, Field::unknown};
  };

  /// Eight bytes of a key from `from` on, its closing quote included; or which of them count.
  static constexpr std::uint64_t word(std::string_view text, std::size_t from, bool mask) {
    std::array<char, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size() && from + i <= text.size(); ++i) {
      bytes[i] = mask ? '\xff' : from + i < text.size() ? text[from + i] : '"';
    }
    return std::bit_cast<std::uint64_t>(bytes);
  }

  std::array<Entry, N> entries_{};
  std::array<std::uint8_t, letters + 1> first_{};
};

}  // namespace ingot::trace
