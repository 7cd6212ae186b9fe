// SPDX-License-Identifier: Apache-2.0
//
// JSON text as bit masks: 64 bytes a block, one bit a byte, lowest bit first. Every instruction set gives the
// same masks for the same bytes; tests hold them against each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::trace {

struct BlockMasks {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opens = 0;     ///< '{' and '['
  std::uint64_t closes = 0;    ///< '}' and ']'
  std::uint64_t controls = 0;  ///< below ' '
  std::uint64_t beyond_ascii = 0;
  bool operator==(const BlockMasks&) const = default;
};

/// Fills out[0..blocks) from 64 × `blocks` readable bytes.
using ScanBlocks = void (*)(const char* text, std::size_t blocks, BlockMasks* out);

enum class Instructions : std::uint8_t { portable, sse2, avx2 };

/// The scan in the instructions asked for, nullptr where the machine lacks them.
ScanBlocks scan_with(Instructions instructions);

/// The best scan of this machine.
ScanBlocks best_scan();

/// Bit i of the result: parity of bits 0..i of `mask`.
constexpr std::uint64_t prefix_xor(std::uint64_t mask) {
  mask ^= mask << 1;
  mask ^= mask << 2;
  mask ^= mask << 4;
  mask ^= mask << 8;
  mask ^= mask << 16;
  mask ^= mask << 32;
  return mask;
}

/// Which bytes a backslash escapes. `carry` says that the first byte is escaped by the block before and is
/// set for the block after. A run of backslashes escapes every second byte, counted from its first that is
/// not escaped itself.
constexpr std::uint64_t escaped_bytes(std::uint64_t backslashes, bool& carry) {
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
