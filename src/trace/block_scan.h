// SPDX-License-Identifier: Apache-2.0
//
// 64 bytes of JSON text as bit masks, one bit a byte, lowest bit first. The vector form and the portable form
// give the same masks for the same bytes; tests hold them against each other.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ingot::trace {

struct BlockMasks {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opens = 0;     ///< '{'
  std::uint64_t closes = 0;    ///< '}'
  std::uint64_t newlines = 0;  ///< '\n', raw
  bool operator==(const BlockMasks&) const = default;
};

/// Byte by byte, on any machine.
struct PortableScan {
  static BlockMasks masks(const char* text) {
    BlockMasks m;
    for (unsigned i = 0; i < 64; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      switch (text[i]) {
        case '"':
          m.quotes |= bit;
          break;
        case '\\':
          m.backslashes |= bit;
          break;
        case '{':
          m.opens |= bit;
          break;
        case '}':
          m.closes |= bit;
          break;
        case '\n':
          m.newlines |= bit;
          break;
        default:
          break;
      }
    }
    return m;
  }
};

#if defined(__SSE2__)
/// SSE2 is part of every x86-64: no dispatch at run time.
struct VectorScan {
  static BlockMasks masks(const char* text) {
    BlockMasks m;
    for (unsigned part = 0; part < 4; ++part) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * part));
      const unsigned shift = 16 * part;
      m.quotes |= equal(bytes, '"') << shift;
      m.backslashes |= equal(bytes, '\\') << shift;
      m.opens |= equal(bytes, '{') << shift;
      m.closes |= equal(bytes, '}') << shift;
      m.newlines |= equal(bytes, '\n') << shift;
    }
    return m;
  }

 private:
  static std::uint64_t equal(__m128i bytes, char c) {
    return static_cast<std::uint64_t>(
        static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)))));
  }
};
using FastScan = VectorScan;
#else
using FastScan = PortableScan;
#endif

/// Bit i of the result: parity of bits 0..i of `mask`.
inline std::uint64_t prefix_xor(std::uint64_t mask) {
  mask ^= mask << 1;
  mask ^= mask << 2;
  mask ^= mask << 4;
  mask ^= mask << 8;
  mask ^= mask << 16;
  mask ^= mask << 32;
  return mask;
}

/// Which bytes a backslash escapes. `carry` says that the first byte is escaped by the block before and is
/// set for the block after. A backslash run escapes every second byte, counted from its first unescaped
/// backslash.
inline std::uint64_t escaped_bytes(std::uint64_t backslashes, bool& carry) {
  std::uint64_t escaped = carry ? 1U : 0U;
  std::uint64_t rest = backslashes & ~escaped;
  carry = false;
  while (rest != 0) {
    const std::uint64_t first = rest & (~rest + 1);
    if (first == std::uint64_t{1} << 63) {
      carry = true;
      break;
    }
    escaped |= first << 1;
    rest &= ~(first | first << 1);
  }
  return escaped;
}

}  // namespace ingot::trace
