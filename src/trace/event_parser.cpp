// SPDX-License-Identifier: Apache-2.0
#include "trace/event_parser.h"

#include <simdjson.h>

#include <bit>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "trace/event_borders.h"
#include "trace/json_text.h"

namespace ingot::trace {
namespace {

// Enough to amortise a start; the text is indexed as it is parsed, so more would gain nothing.
constexpr std::size_t most_bytes = std::size_t{64} * 1024;

constexpr KeyTable<8> event_keys({{"ph", Field::ph},
                                  {"cat", Field::cat},
                                  {"name", Field::name},
                                  {"pid", Field::pid},
                                  {"tid", Field::tid},
                                  {"ts", Field::ts},
                                  {"dur", Field::dur},
                                  {"args", Field::args}});
constexpr KeyTable<13> arg_keys({{"External id", Field::external_id},
                                 {"external id", Field::external_id},  // 2021
                                 {"correlation", Field::correlation},
                                 {"Input Dims", Field::dims},
                                 {"Input type", Field::types},
                                 {"Concrete Inputs", Field::concrete},
                                 {"device", Field::device},
                                 {"stream", Field::stream},
                                 {"registers per thread", Field::registers},
                                 {"shared memory", Field::shared_memory},
                                 {"grid", Field::grid},
                                 {"block", Field::block},
                                 {"bytes", Field::bytes}});

// Numbers, words and white space are short, but there are many: sixteen bytes a step where the machine can.
// Both functions stop at the zeros behind the text and read at most sixteen bytes past where they stop.
#if defined(__SSE2__)

/// Position of the first byte of 16 whose mask is set, or 16.
unsigned first_set(__m128i mask) {
  return static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(_mm_movemask_epi8(mask)) | 0x10000U));
}

/// Past white space (any control character but zero counts).
const char* skip_blank(const char* at) {
  for (;; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i blank = _mm_set1_epi8(' ');
    const __m128i is_blank = _mm_cmpeq_epi8(_mm_max_epu8(bytes, blank), blank);
    const __m128i is_zero = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
    const unsigned found = first_set(_mm_or_si128(_mm_xor_si128(is_blank, _mm_set1_epi8(-1)), is_zero));
    if (found != 16) return at + found;
  }
}

/// Past a number or a word: up to a comma, colon, quote, brace, bracket or blank.
const char* skip_word(const char* at) {
  for (;; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    const __m128i blank = _mm_set1_epi8(' ');
    const __m128i separators = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(',')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(':'))),
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                     _mm_cmpeq_epi8(_mm_max_epu8(bytes, blank), blank)));
    const __m128i brackets =
        _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')), _mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
    const unsigned found = first_set(_mm_or_si128(separators, brackets));
    if (found != 16) return at + found;
  }
}

#else

const char* skip_blank(const char* at) {
  while (*at != '\0' && static_cast<unsigned char>(*at) <= ' ') ++at;
  return at;
}

const char* skip_word(const char* at) {
  while (static_cast<unsigned char>(*at) > ' ' &&
         std::string_view(",:\"{}[]").find(*at) == std::string_view::npos)
    ++at;
  return at;
}

#endif

/// Past white space; often there is none, or a single space.
const char* skip(const char* at) {
  if (static_cast<unsigned char>(*at) > ' ') return at;
  if (static_cast<unsigned char>(at[1]) > ' ' && *at != '\0') return at + 1;
  return skip_blank(at);
}

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

void EventParser::reset(std::string_view text) {
  index_.reset(text);
  base_ = text.data();
  end_ = base_ + text.size();
}

const char* EventParser::fail(const char* at) {
  cut_ = at >= end_;
  return nullptr;
}

/// The members of an object, from behind its '{' to behind its '}'; nullptr when they are not JSON. All are
/// walked, wanted or not: a stray quote anywhere in them must show here, lest the event swallow its
/// neighbours.
template <EventParser::Level level>
const char* EventParser::members(const char* at) {
  at = skip(at);
  if (*at == '}') return at + 1;
  for (;;) {
    if (*at != '"') return fail(at);
    const char* const key = at + 1;
    at = quote(key);
    if (at == end_) return fail(at);
    at = skip(at + 1);
    if (*at != ':') return fail(at);
    at = skip(at + 1);
    const Field field = level == Level::event ? event_keys.find(key) : arg_keys.find(key);
    const char* const value = at;
    switch (*at) {
      case '"':
        at = quote(at + 1);
        if (at == end_) return fail(at);
        ++at;
        break;
      case '{':
        if (level == Level::event && field == Field::args) {
          at = members<Level::args>(at + 1);
          if (at == nullptr) return nullptr;
          break;
        }
        [[fallthrough]];
      case '[':
        at = match(at);
        if (at == end_ || *at != (*value == '{' ? '}' : ']')) return fail(at);
        ++at;
        break;
      default:
        at = skip_word(at);
        if (at == value) return fail(at);
        break;
    }
    if (field != Field::unknown) tokens_[field] = between(value, at);
    at = skip(at);
    if (*at == '}') return at + 1;
    if (*at != ',') return fail(at);
    at = skip(at + 1);
  }
}

/// The event whose '{' stands at `open`: the position behind it, or nullptr.
const char* EventParser::event(const char* open) {
  tokens_.clear();
  const char* const behind = members<Level::event>(open + 1);
  if (behind == nullptr) return nullptr;
  const auto length = static_cast<std::size_t>(behind - base_);
  const bool plain = index_.first_beyond_ascii() >= length;
  if (index_.first_control() < length || !(plain || simdjson::validate_utf8(between(open, behind)))) {
    cut_ = false;
    return nullptr;
  }
  return behind;
}

EventParser::Run EventParser::add_events(std::string_view text, bool final, std::uint64_t offset) {
  reset(text);
  const char* at = base_;
  for (;;) {
    for (at = skip(at); *at == ',';) at = skip(at + 1);
    if (at >= end_) return {Stop::need_text, end_};
    if (*at == ']') {
      const Answer answer = ends_array(between(at, end_), final);
      if (answer == Answer::need_text) return {Stop::need_text, at};
      return {answer == Answer::yes ? Stop::array_end : Stop::junk, at};
    }
    if (*at != '{') return {Stop::junk, at};
    if (static_cast<std::size_t>(at - base_) >= most_bytes) return {Stop::limit, at};
    const char* const behind = event(at);
    if (behind == nullptr) return {cut_ ? Stop::need_text : Stop::damaged, at};

    // Behind an event comes a comma and the next one, or the array's end; else its closing brace was none. A
    // missing comma is forgiven where a new event plainly begins.
    const char* next = skip(behind);
    const bool comma = *next == ',';
    if (comma) next = skip(next + 1);
    if (next >= end_ && !final) return {Stop::need_text, at};
    const bool goes_on = next >= end_ || *next == ']' || (comma && (*next == '{' || *next == ','));
    if (!goes_on && !begins_event(between(next, end_))) {
      const bool told = final || static_cast<std::size_t>(end_ - next) > event_key_room;
      return {told ? Stop::damaged : Stop::need_text, at};
    }
    builder_.add(tokens_, offset + static_cast<std::uint64_t>(at - base_));
    at = next;
  }
}

bool EventParser::add_one(std::string_view text, std::uint64_t offset) {
  reset(text);
  const char* const open = skip(base_);
  if (*open != '{') return false;
  const char* const behind = event(open);
  if (behind == nullptr || skip(behind) != end_) return false;
  builder_.add(tokens_, offset);
  return true;
}

}  // namespace ingot::trace
