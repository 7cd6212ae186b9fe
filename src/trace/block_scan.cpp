// SPDX-License-Identifier: Apache-2.0
#include "trace/block_scan.h"

#include <initializer_list>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ingot::trace {
namespace {

void scan_portable(const char* text, std::size_t blocks, BlockMasks* out) {
  for (std::size_t block = 0; block < blocks; ++block, text += 64) {
    BlockMasks m;
    for (unsigned i = 0; i < 64; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const std::uint64_t bit = std::uint64_t{1} << i;
      if (byte == '"') m.quotes |= bit;
      if (byte == '\\') m.backslashes |= bit;
      if (byte == '{' || byte == '[') m.opens |= bit;
      if (byte == '}' || byte == ']') m.closes |= bit;
      if (byte < ' ') m.controls |= bit;
      if (byte >= 0x80) m.beyond_ascii |= bit;
    }
    out[block] = m;
  }
}

#if defined(__x86_64__)

// '[' and '{' differ in one bit, and so do ']' and '}': with that bit set, one compare finds both.

std::uint64_t bits(__m128i bytes) {
  return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(bytes)));
}

void scan_sse2(const char* text, std::size_t blocks, BlockMasks* out) {
  for (std::size_t block = 0; block < blocks; ++block, text += 64) {
    BlockMasks m;
    for (unsigned part = 0; part < 4; ++part) {
      const unsigned shift = 16 * part;
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + shift));
      const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
      const __m128i last_control = _mm_set1_epi8(0x1f);
      m.quotes |= bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'))) << shift;
      m.backslashes |= bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))) << shift;
      m.opens |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << shift;
      m.closes |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))) << shift;
      m.controls |= bits(_mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control)) << shift;
      m.beyond_ascii |= bits(bytes) << shift;
    }
    out[block] = m;
  }
}

__attribute__((target("avx2"))) std::uint64_t bits(__m256i low, __m256i high) {
  return static_cast<std::uint64_t>(static_cast<unsigned>(_mm256_movemask_epi8(low))) |
         static_cast<std::uint64_t>(static_cast<unsigned>(_mm256_movemask_epi8(high))) << 32;
}

__attribute__((target("avx2"))) void scan_avx2(const char* text, std::size_t blocks, BlockMasks* out) {
  const __m256i quote = _mm256_set1_epi8('"'), backslash = _mm256_set1_epi8('\\');
  const __m256i open = _mm256_set1_epi8('{'), close = _mm256_set1_epi8('}');
  const __m256i fold = _mm256_set1_epi8(0x20), last_control = _mm256_set1_epi8(0x1f);
  for (std::size_t block = 0; block < blocks; ++block, text += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 32));
    const __m256i low_folded = _mm256_or_si256(low, fold), high_folded = _mm256_or_si256(high, fold);
    out[block].quotes = bits(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
    out[block].backslashes = bits(_mm256_cmpeq_epi8(low, backslash), _mm256_cmpeq_epi8(high, backslash));
    out[block].opens = bits(_mm256_cmpeq_epi8(low_folded, open), _mm256_cmpeq_epi8(high_folded, open));
    out[block].closes = bits(_mm256_cmpeq_epi8(low_folded, close), _mm256_cmpeq_epi8(high_folded, close));
    out[block].controls = bits(_mm256_cmpeq_epi8(_mm256_max_epu8(low, last_control), last_control),
                               _mm256_cmpeq_epi8(_mm256_max_epu8(high, last_control), last_control));
    out[block].beyond_ascii = bits(low, high);
  }
}

#endif

}  // namespace

ScanBlocks scan_with(Instructions instructions) {
  switch (instructions) {
    case Instructions::portable:
      return scan_portable;
#if defined(__x86_64__)
    case Instructions::sse2:
      return scan_sse2;
    case Instructions::avx2:
      return __builtin_cpu_supports("avx2") ? scan_avx2 : nullptr;
#else
    case Instructions::sse2:
    case Instructions::avx2:
      break;
#endif
  }
  return nullptr;
}

ScanBlocks best_scan() {
  for (const auto instructions : {Instructions::avx2, Instructions::sse2}) {
    if (const ScanBlocks scan = scan_with(instructions)) return scan;
  }
  return scan_portable;
}

}  // namespace ingot::trace
