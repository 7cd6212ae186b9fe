// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "trace/block_scan.h"
#include "trace/event_borders.h"
#include "trace/event_parser.h"
#include "trace/text_index.h"
#include "trace/text_window.h"

namespace ingot::trace {
namespace {

/// Text with room behind it, filled with what would mislead a reader that looks there.
class Padded {
 public:
  explicit Padded(std::string text, char fill = '}') : size_(text.size()), text_(std::move(text)) {
    text_.append(TextWindow::padding, fill);
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::size_t size_;
  std::string text_;
};

std::vector<ScanBlocks> every_scan() {
  std::vector<ScanBlocks> out;
  for (const auto instructions : {Instructions::portable, Instructions::sse2, Instructions::avx2}) {
    if (const ScanBlocks scan = scan_with(instructions)) out.push_back(scan);
  }
  return out;
}

TEST(ReaderIndex, EveryInstructionSetGivesTheSameMasks) {
  const std::vector<ScanBlocks> scans = every_scan();
  ASSERT_FALSE(scans.empty());
  EXPECT_EQ(scans.front(), scan_with(Instructions::portable));
#if defined(__x86_64__)
  EXPECT_NE(scan_with(Instructions::sse2), nullptr);
  EXPECT_NE(best_scan(), scan_with(Instructions::portable));
#endif
  std::mt19937 random(3);
  std::string text(64 * 16, '\0');
  for (int round = 0; round < 3000; ++round) {
    for (char& c : text) c = static_cast<char>(random());
    std::vector<BlockMasks> wanted(16);
    scans.front()(text.data(), 16, wanted.data());
    // The masks themselves, for the first block, by their meaning.
    for (std::size_t i = 0; i < 64; ++i) {
      const auto bit = [i](std::uint64_t mask) { return (mask >> i & 1) != 0; };
      const char c = text[i];
      ASSERT_EQ(bit(wanted[0].quotes), c == '"');
      ASSERT_EQ(bit(wanted[0].backslashes), c == '\\');
      ASSERT_EQ(bit(wanted[0].opens), c == '{' || c == '[');
      ASSERT_EQ(bit(wanted[0].closes), c == '}' || c == ']');
      ASSERT_EQ(bit(wanted[0].controls), c >= 0 && c < ' ');
      ASSERT_EQ(bit(wanted[0].beyond_ascii), c < 0);
    }
    for (const ScanBlocks scan : scans) {
      std::vector<BlockMasks> found(16);
      scan(text.data(), 16, found.data());
      ASSERT_EQ(found, wanted);
    }
  }
}

TEST(ReaderIndex, QuotesAndBracketsAreThoseOfAScanByteByByte) {
  std::mt19937 random(11);
  const std::string alphabet = "{}[]\"\"\\\\ax:, \n";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t length = random() % 400; length != 0; --length)
      text.push_back(alphabet[random() % alphabet.size()]);
    // Longer stretches without structure, to move what follows across block borders.
    text.insert(random() % (text.size() + 1), std::string(random() % 70, 'y'));
    if (round % 100 == 0) text.insert(random() % (text.size() + 1), std::string(9000, 'z'));
    std::vector<std::size_t> quotes, brackets;
    std::size_t control = text.size();
    bool in_string = false, escaped = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool is_escaped = escaped;
      escaped = c == '\\' && !is_escaped;
      if (c == '"' && !is_escaped) {
        quotes.push_back(i);
        in_string = !in_string;
      } else if (in_string) {
        if (c == '\n') control = std::min(control, i);
      } else if (std::strchr("{}[]", c) != nullptr) {
        brackets.push_back(i);
      }
    }
    const Padded padded(text, '"');
    for (const ScanBlocks scan : every_scan()) {
      TextIndex index(scan);
      index.reset(padded.view());
      std::vector<std::size_t> found;
      for (std::size_t at = index.quote(0); at != text.size(); at = index.quote(at + 1)) found.push_back(at);
      ASSERT_EQ(found, quotes) << text;
      found.clear();
      for (std::size_t at = index.bracket(0); at != text.size(); at = index.bracket(at + 1))
        found.push_back(at);
      ASSERT_EQ(found, brackets) << text;
      ASSERT_EQ(index.first_control(), control) << text;
      // A question far ahead of the text indexed so far.
      const std::size_t ahead = random() % (text.size() + 1);
      index.reset(padded.view());
      const auto next = std::lower_bound(quotes.begin(), quotes.end(), ahead);
      ASSERT_EQ(index.quote(ahead), next == quotes.end() ? text.size() : *next) << text;
      // The match of each opening bracket, by depth.
      for (std::size_t i = 0; i < brackets.size(); ++i) {
        if (std::strchr("{[", text[brackets[i]]) == nullptr) continue;
        std::size_t match = text.size();
        int depth = 0;
        for (std::size_t j = i; j < brackets.size() && match == text.size(); ++j) {
          depth += std::strchr("{[", text[brackets[j]]) != nullptr ? 1 : -1;
          if (depth == 0) match = brackets[j];
        }
        ASSERT_EQ(index.match(brackets[i]), match) << text;
      }
    }
  }
}

TEST(ReaderIndex, EscapesAtBlockBorders) {
  for (std::size_t fill = 0; fill < 140; ++fill) {
    for (std::size_t slashes = 0; slashes < 70; ++slashes) {
      // An even run of backslashes leaves the quote behind it in force, an odd run escapes it.
      const std::string head = "{\"" + std::string(fill, 'x') + std::string(slashes, '\\') + "\"";
      const Padded padded(head + (slashes % 2 == 0 ? "}" : "}\"}"));
      for (const ScanBlocks scan : every_scan()) {
        TextIndex index(scan);
        index.reset(padded.view());
        ASSERT_EQ(index.match(0), padded.view().size() - 1) << fill << " " << slashes;
      }
    }
  }
}

TEST(ReaderIndex, DepthIsCountedNotRecursed) {
  std::string deep = "{\"args\":";
  for (int i = 0; i < 1000000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(1000001, '}');
  const Padded padded(deep);
  TextIndex index;
  EXPECT_EQ(find_object_end(padded.view(), index), padded.view().data() + deep.size());
}

struct Parsed {
  std::vector<std::string> names;
  EventParser::Stop stop = EventParser::Stop::limit;
  std::string rest;
};

/// Events are told apart by their names; text as it stands inside the array.
Parsed parse(const std::string& text, bool final) {
  const Padded padded(text, '\0');
  Trace trace;
  TraceBuilder builder(trace);
  EventParser parser(builder);
  const EventParser::Run run = parser.add_events(padded.view(), final, 0);
  Parsed out;
  out.stop = run.stop;
  out.rest = std::string(run.next, padded.view().data() + padded.view().size());
  for (const StringId name : trace.annotations.name) out.names.emplace_back(trace.strings[name]);
  return out;
}

std::string named(const std::string& name) {
  return R"({"ph":"X","cat":"user_annotation","ts":1,"name":")" + name + "\"}";
}

using Names = std::vector<std::string>;
using Stop = EventParser::Stop;

TEST(ReaderEvents, UpToTheArraysEnd) {
  const Parsed done = parse(named("a }{") + " , " + named("b") + "\n," + named("c") + "  ], \"x\": 1}", true);
  EXPECT_EQ(done.names, (Names{"a }{", "b", "c"}));
  EXPECT_EQ(done.stop, Stop::array_end);
  EXPECT_EQ(done.rest, "], \"x\": 1}");
  EXPECT_EQ(parse("]", true).stop, Stop::array_end);
  EXPECT_EQ(parse(named("a") + ",,]}", true).stop, Stop::array_end);                // commas too many
  EXPECT_EQ(parse(named("a") + named("b") + "]}", true).names, (Names{"a", "b"}));  // a comma too few
  EXPECT_EQ(parse(named("a") + "{\"other\":1}]}", true).stop, Stop::damaged);
}

TEST(ReaderEvents, MoreTextIsAskedForBeforeAnythingIsDecided) {
  const std::string event = named("a");
  for (std::size_t cut = 1; cut < event.size(); ++cut) {
    EXPECT_EQ(parse(event.substr(0, cut), false).stop, Stop::need_text) << cut;
    EXPECT_EQ(parse(event.substr(0, cut), true).stop, Stop::need_text) << cut;
  }
  for (const char* behind : {"", " ", " ,", "\n, \n"}) {
    EXPECT_TRUE(parse(event + behind, false).names.empty());  // what follows may show that it is not over
    EXPECT_EQ(parse(event + behind, true).names, Names{"a"});
  }
  EXPECT_EQ(parse("]", false).stop, Stop::need_text);
  EXPECT_EQ(parse("],", false).stop, Stop::need_text);
  EXPECT_EQ(parse("", false).stop, Stop::need_text);
}

TEST(ReaderEvents, WhatIsNotJsonIsTold) {
  const std::string next = ", " + named("next") + "]";
  for (const char* bad :
       {R"({"a":"x"}"y"})", R"({"a":"x"}, "y":1})", "{\"a\":\"x\ny\"}", R"({"a" 1})", R"({"a":})",
        R"({"a":1,})", R"({"a":1 "b":2})", R"({a:1})", R"({"a":[1})", R"({"a":{1]})", R"({"a":"b"c"})",
        R"({"args":{"a":"b"c"}})", "{\"a\":\"\xff\"}", "{\"a\":1:2}", "{,}", "{\"a\":\"\xed\xa0\x80\"}"}) {
    const Parsed parsed = parse(named("first") + ", " + bad + next, true);
    EXPECT_EQ(parsed.names, Names{"first"}) << bad;
    EXPECT_EQ(parsed.stop, Stop::damaged) << bad;
    EXPECT_EQ(parsed.rest, bad + next) << bad;
  }
  for (const char* junk : {"7", "null", "\"text\"", "[1]", "}", "], {\"ph\":1}"}) {
    const Parsed parsed = parse(junk + next, true);
    EXPECT_EQ(parsed.stop, Stop::junk) << junk;
    EXPECT_EQ(parsed.rest, junk + next) << junk;
  }
  EXPECT_EQ(parse(named("\xc3\xa9\xf0\x9f\x98\x80") + next, true).names.size(), 2U);
}

TEST(ReaderBorders, PlainBordersAreFoundInDamagedText) {
  const std::string text =
      "{\"ph\": \"X\", \"name\": \"a\"b, \"l\": [{\"x\": 1}, {\"y\": 2}]}\n,\n{ \"ph\" : 1}";
  const char* const end = find_event_end(text, false);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(std::string(end), "\n,\n{ \"ph\" : 1}");
  EXPECT_EQ(find_event_end("{\"ph\": 1}, {\"other\": 2}", true), nullptr);
  EXPECT_EQ(find_event_end("{\"a\": 1}], \"traceName\": 1}", false), nullptr);  // as well inside an event
  EXPECT_NE(find_event_end("{\"a\": 1}], \"traceName\": 1}", true), nullptr);
  const std::string events = "x {\"y\": {\"args\":1}}";
  EXPECT_EQ(std::string(find_event_begin(events)), "{\"args\":1}}");
  EXPECT_EQ(find_event_begin("{\"phase\":1} {\"ph\" 1}"), nullptr);
}

TEST(ReaderBorders, TheEndOfTheArray) {
  for (const char* end : {"]", "] ", "]}", "]\n}", "],", "], \"traceName\": 1}"}) {
    EXPECT_EQ(ends_array(end, true), Answer::yes) << end;
  }
  for (const char* inside : {"], {", "]]", "] x", "],7"})
    EXPECT_EQ(ends_array(inside, true), Answer::no) << inside;
  for (const char* open : {"]", "] \n", "],", "], "})
    EXPECT_EQ(ends_array(open, false), Answer::need_text) << open;
}

}  // namespace
}  // namespace ingot::trace
