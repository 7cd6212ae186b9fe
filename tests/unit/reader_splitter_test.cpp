// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trace/block_scan.h"
#include "trace/event_splitter.h"

namespace ingot::trace {
namespace {

/// Text with room behind it for block loads.
class Padded {
 public:
  explicit Padded(std::string text) : size_(text.size()), text_(std::move(text)) { text_.append(64, '}'); }
  operator std::string_view() const { return {text_.data(), size_}; }
  std::string_view view() const { return *this; }

 private:
  std::size_t size_;
  std::string text_;
};

/// The definition, byte by byte, that the block scan must agree with.
ObjectScan scan_plainly(std::string_view text) {
  bool in_string = false, escaped = false, line_break = false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      line_break |= c == '\n';
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        in_string = false;
    } else if (c == '\\') {
      // A backslash outside a string escapes the next quote as well: such text is damaged anyhow.
      escaped = !escaped;
      continue;
    } else {
      if (c == '"' && !escaped) in_string = true;
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) {
        return line_break ? ObjectScan{ObjectScan::State::suspect, 0}
                          : ObjectScan{ObjectScan::State::closed, i + 1};
      }
      escaped = false;
    }
  }
  return line_break ? ObjectScan{ObjectScan::State::suspect, 0} : ObjectScan{};
}

std::string show(const ObjectScan& scan) {
  return std::to_string(static_cast<int>(scan.state)) + " " + std::to_string(scan.length);
}

TEST(ReaderSplitter, VectorPortableAndPlainScansAgree) {
  std::mt19937 random(11);
  const std::string alphabet = "{}{}\"\"\\\\ax:,[] \n";
  std::size_t closed = 0, suspect = 0;
  for (int round = 0; round < 100000; ++round) {
    // Line breaks are rare, so that long closed objects occur, too.
    const std::size_t letters = alphabet.size() - (round % 8 == 0 ? 0 : 1);
    std::string text = "{";
    for (std::size_t length = random() % 400; length != 0; --length)
      text.push_back(alphabet[random() % letters]);
    // Longer stretches without structure, to move what follows across block borders.
    text.insert(1 + random() % text.size(), std::string(random() % 70, 'y'));
    const Padded padded(text);
    const ObjectScan fast = scan_object(padded), portable = scan_object_portable(padded);
    ASSERT_EQ(show(fast), show(portable)) << text;
    ASSERT_EQ(show(fast), show(scan_plainly(padded))) << text;
    closed += fast.state == ObjectScan::State::closed ? 1U : 0U;
    suspect += fast.state == ObjectScan::State::suspect ? 1U : 0U;
  }
  EXPECT_GT(closed, 10000U);  // the inputs reach every outcome
  EXPECT_GT(suspect, 1000U);
}

TEST(ReaderSplitter, EscapesAtBlockBorders) {
  for (std::size_t fill = 0; fill < 140; ++fill) {
    for (std::size_t slashes = 0; slashes < 70; ++slashes) {
      // An even run of backslashes leaves the quote behind it in force, an odd run escapes it.
      const std::string head = "{\"" + std::string(fill, 'x') + std::string(slashes, '\\') + "\"";
      const Padded padded(head + (slashes % 2 == 0 ? "}" : "}\"}"));
      const ObjectScan scan = scan_object(padded);
      ASSERT_EQ(scan.state, ObjectScan::State::closed) << fill << " " << slashes;
      ASSERT_EQ(scan.length, padded.view().size());
      ASSERT_EQ(show(scan), show(scan_object_portable(padded)));
    }
  }
}

TEST(ReaderSplitter, DepthIsCountedNotRecursed) {
  std::string deep = "{\"args\":";
  for (int i = 0; i < 1000000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(1000001, '}');
  const Padded padded(deep);
  EXPECT_EQ(scan_object(padded).length, deep.size());
}

struct Split {
  std::vector<std::string> events;
  EventRun::Stop stop;
  std::string rest;
};

Split split(const std::string& text, bool final, std::size_t most = 1000, std::size_t bytes = 1000000) {
  const Padded padded(text);
  EventRun run;
  split_events(padded, final, most, bytes, run);
  Split out;
  for (const auto& event : run.events) out.events.emplace_back(event.begin, event.end);
  out.stop = run.stop;
  out.rest = std::string(run.next, padded.view().data() + padded.view().size());
  return out;
}

using Events = std::vector<std::string>;
using Stop = EventRun::Stop;

TEST(ReaderSplitter, EventsUpToTheArraysEnd) {
  const Split done = split("{\"a\":\"}{\"} , {\"b\":{\"c\":1}}\n,{}  ], \"x\": 1}", true);
  EXPECT_EQ(done.events, (Events{"{\"a\":\"}{\"}", "{\"b\":{\"c\":1}}", "{}"}));
  EXPECT_EQ(done.stop, Stop::array_end);
  EXPECT_EQ(done.rest, "], \"x\": 1}");
  EXPECT_EQ(split("]", true).stop, Stop::array_end);
  EXPECT_EQ(split("{},]}", true).stop, Stop::array_end);                          // a comma too many
  EXPECT_EQ(split("{}{\"ph\":1}]}", true).events, (Events{"{}", "{\"ph\":1}"}));  // a comma too few
  EXPECT_EQ(split("{} {\"other\":1}]}", true).stop, Stop::suspect);
}

TEST(ReaderSplitter, MoreTextIsAskedForBeforeAnythingIsDecided) {
  EXPECT_EQ(split("{\"a\":1", false).stop, Stop::need_text);
  EXPECT_EQ(split("{\"a\":1", true).stop, Stop::need_text);
  EXPECT_TRUE(split("{\"a\":1} ", false).events.empty());  // what follows may show that it is not over
  EXPECT_TRUE(split("{\"a\":1} ,", false).events.empty());
  EXPECT_EQ(split("{\"a\":1} ", true).events, Events{"{\"a\":1}"});
  EXPECT_EQ(split("]", false).stop, Stop::need_text);
  EXPECT_EQ(split("],", false).stop, Stop::need_text);
}

TEST(ReaderSplitter, DoubtfulEndsAndJunkAreTold) {
  EXPECT_EQ(split("{\"a\":\"x\"}\"y\"}, {\"ph\":1}]", true).stop, Stop::suspect);
  EXPECT_EQ(split("{\"a\":\"x\"}, \"y\":1}, {\"ph\":1}]", true).stop, Stop::suspect);
  EXPECT_EQ(split("{\"a\":\"x\ny\"}, {\"ph\":1}]", true).stop, Stop::suspect);
  const Split junk = split("{\"a\":1}, {}, 7, {\"ph\":1}]", true);
  EXPECT_EQ(junk.events, Events{"{\"a\":1}"});
  EXPECT_EQ(split("7, {}]", true).stop, Stop::junk);
  EXPECT_EQ(split("], {\"ph\":1}]", true).stop, Stop::junk);  // a bracket that ends no array
}

TEST(ReaderSplitter, RunsAreLimitedByEventsAndBytes) {
  EXPECT_EQ(split("{},{},{},{}]", true, 2).events.size(), 2U);
  EXPECT_EQ(split("{},{},{},{}]", true, 2).stop, Stop::limit);
  EXPECT_EQ(split("{\"a\":1},{\"a\":2},{\"a\":3}]", true, 100, 9).events.size(), 2U);
}

TEST(ReaderSplitter, PlainBordersAreFoundInDamagedText) {
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

}  // namespace
}  // namespace ingot::trace
