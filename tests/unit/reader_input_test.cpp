// SPDX-License-Identifier: Apache-2.0
//
// Where the text comes from and where it stops: files, pipes, gzip, pieces of any size, cuts at any byte.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "trace/reader.h"
#include "trace_text.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

/// One gzip member.
std::string gzip(const std::string& text) {
  std::string out(text.size() + 4096, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(stream.total_out);
  return out;
}

std::string small_trace() {
  return envelope(joined({op_event("first", 1), kernel_event("k {x}", 2), op_event("second \\\"q\\\"", 3),
                          kernel_event("k2", 4), op_event("third", 5)}));
}

/// Serves at most `piece` bytes a read.
class Trickle final : public ByteSource {
 public:
  Trickle(std::string bytes, std::size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  Result<std::size_t> read(char* out, std::size_t capacity) override {
    const std::size_t count = std::min({capacity, piece_, bytes_.size() - at_});
    std::memcpy(out, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  std::string bytes_;
  std::size_t piece_, at_ = 0;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "ingot-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  fs::path path() const { return path_; }

 private:
  fs::path path_;
};

std::string read_error(const std::string& text) {
  const auto trace = read_text(text, "t.json");
  if (trace.ok()) return fmt::format("(read: {} events)", trace->events);
  EXPECT_EQ(trace.error().code, ErrorCode::unreadable);
  EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
  return trace.error().message;
}

TEST(ReaderInput, PiecesOfAnySizeGiveTheSameTrace) {
  for (const std::string& text : {small_trace(), one_line(small_trace())}) {
    const auto whole = read_text(text);
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(whole->events, 5U);
    for (const std::size_t piece : {1U, 2U, 3U, 7U, 64U, 1000U}) {
      const auto plain = read_source(std::make_unique<Trickle>(text, piece), "<memory>");
      ASSERT_TRUE(plain.ok());
      EXPECT_EQ(dump(*plain), dump(*whole)) << piece;
      const auto packed = read_source(std::make_unique<Trickle>(gzip(text), piece), "<memory>");
      ASSERT_TRUE(packed.ok());
      EXPECT_EQ(dump(*packed), dump(*whole)) << piece;
    }
  }
}

TEST(ReaderInput, DamagedTextInPiecesGivesTheSameTrace) {
  const std::string bad = op_event("od\"d", 2), whole_kernel = kernel_event("k\xff", 4);
  const std::string worse = whole_kernel.substr(0, whole_kernel.size() - 1);
  const std::string text =
      envelope(joined({op_event("first", 1), bad, op_event("second", 3), worse, op_event("third", 5)}));
  const auto whole = read_text(text);
  ASSERT_TRUE(whole.ok());
  EXPECT_THAT(names(*whole, whole->ops.name), ElementsAre("first", "od\"d", "second", "third"));
  for (const std::size_t piece : {1U, 5U, 100U}) {
    const auto parts = read_source(std::make_unique<Trickle>(text, piece), "<memory>");
    ASSERT_TRUE(parts.ok());
    EXPECT_EQ(dump(*parts), dump(*whole)) << piece;
  }
}

TEST(ReaderInput, CutAtEveryByteWhatStandsBeforeTheCutIsRead) {
  for (const std::string& text : {small_trace(), one_line(small_trace())}) {
    const auto whole = read_text(text);
    ASSERT_TRUE(whole.ok());
    const std::size_t array = text.find('[') + 1;
    const std::size_t array_end = text.rfind(']');
    std::size_t last_count = 0;
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
      const auto trace = read_text(std::string_view(text).substr(0, cut), "cut.json");
      if (cut < array) {
        ASSERT_FALSE(trace.ok()) << cut;
        EXPECT_EQ(trace.error().code, ErrorCode::unreadable);
        EXPECT_THAT(trace.error().message, testing::StartsWith("cut.json: "));
        continue;
      }
      ASSERT_TRUE(trace.ok()) << cut << trace.error().message;
      EXPECT_EQ(trace->complete, cut > array_end) << cut;
      EXPECT_EQ(trace->skipped_events, 0U) << cut;
      EXPECT_EQ(trace->repaired_events, 0U) << cut;
      EXPECT_EQ(trace->bytes, cut);
      // Every event that stands whole before the cut, no other.
      const std::string_view read = std::string_view(text).substr(0, cut);
      std::size_t whole_events = 0;
      for (std::size_t i = 0; i < whole->ops.size() + whole->gpu.size(); ++i) {
        const std::string id = fmt::format("\"External id\": {},", i + 1);
        const std::size_t at = text.find(id);
        std::size_t end = at;
        for (int braces = 0; braces < 2; ++end) braces += text[end] == '}' ? 1 : 0;
        whole_events += end <= read.size() ? 1U : 0U;
      }
      EXPECT_EQ(trace->events, whole_events) << cut;
      EXPECT_GE(trace->events, last_count);
      last_count = trace->events;
      EXPECT_TRUE(trace->complete || !trace->warnings.empty()) << cut;
    }
    EXPECT_EQ(last_count, 5U);
  }
}

TEST(ReaderInput, CutInsideAnEventItsOffsetIsTold) {
  const std::string text = small_trace();
  const std::size_t third =
      text.find("\"second") - std::strlen("{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": ");
  const auto trace = read_text(text.substr(0, third + 100));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 2U);
  EXPECT_THAT(trace->warnings,
              testing::Contains(fmt::format("the text ends inside the event at byte {}", third)));
}

TEST(ReaderInput, AGzipCutAtAnyByteGivesAPrefix) {
  std::vector<std::string> events;
  for (int i = 1; i <= 400; ++i)
    events.push_back(i % 3 == 0 ? kernel_event(fmt::format("k{}", i * 7919), i)
                                : op_event(fmt::format("op{}", i * 104729), i));
  const std::string packed = gzip(envelope(joined(events)));
  const auto whole = read_text(packed);
  ASSERT_TRUE(whole.ok());
  ASSERT_EQ(whole->events, 400U);
  EXPECT_TRUE(whole->warnings.empty());
  const std::vector<std::string> all_ops = names(*whole, whole->ops.name);
  std::size_t last_count = 0, readable = 0;
  for (std::size_t cut = 0; cut < packed.size(); cut += cut < 64 || packed.size() - cut < 64 ? 1 : 13) {
    const auto trace = read_text(packed.substr(0, cut), "cut.json.gz");
    if (!trace.ok()) {
      EXPECT_EQ(trace.error().code, ErrorCode::unreadable);
      EXPECT_EQ(readable, 0U) << cut;
      continue;
    }
    ++readable;
    const std::vector<std::string> ops = names(*trace, trace->ops.name);
    EXPECT_TRUE(std::equal(ops.begin(), ops.end(), all_ops.begin())) << cut;
    EXPECT_GE(trace->events, last_count) << cut;
    EXPECT_EQ(trace->skipped_events, 0U) << cut;
    EXPECT_THAT(trace->warnings, testing::Contains("the gzip stream is cut short")) << cut;
    last_count = trace->events;
  }
  EXPECT_GT(readable, 100U);
  EXPECT_EQ(last_count, 400U);  // a cut inside the trailer costs nothing but the checksum
}

TEST(ReaderInput, MembersPaddingAndJunkOfGzip) {
  const std::string text = small_trace();
  const auto whole = read_text(text);
  ASSERT_TRUE(whole.ok());
  for (const std::size_t border : {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size()}) {
    const auto two =
        read_text(gzip(text.substr(0, border)) + gzip(text.substr(border)) + std::string(512, '\0'));
    ASSERT_TRUE(two.ok());
    EXPECT_EQ(dump(*two), dump(*whole)) << border;
  }
  const auto junk = read_text(gzip(text) + "junk");
  ASSERT_TRUE(junk.ok());
  EXPECT_EQ(junk->events, 5U);
  EXPECT_THAT(junk->warnings, ElementsAre("bytes after the end of the gzip stream are ignored"));
}

TEST(ReaderInput, DamageInAGzipIsAWarningAndThePrefixIsRead) {
  std::string wrong_checksum = gzip(small_trace());
  wrong_checksum[wrong_checksum.size() - 8] =
      static_cast<char>(wrong_checksum[wrong_checksum.size() - 8] ^ 1);
  const auto trace = read_text(wrong_checksum);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 5U);
  EXPECT_TRUE(trace->complete);
  EXPECT_THAT(trace->warnings, ElementsAre("the gzip stream is damaged: its checksum does not match"));

  const std::string packed = gzip(small_trace());
  std::size_t read = 0;
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    const auto result = read_text(damaged);
    if (result.ok())
      read += result->warnings.empty() ? 0 : 1;
    else
      EXPECT_EQ(result.error().code, ErrorCode::unreadable);
  }
  EXPECT_GT(read, packed.size() / 4);
}

TEST(ReaderInput, WhatCannotBeReadIsOneClearLine) {
  EXPECT_EQ(read_error(""), "t.json: is empty");
  EXPECT_EQ(read_error(" \n "), "t.json: holds nothing but white space");
  EXPECT_EQ(read_error("hello"), "t.json: is not JSON: it begins with 'h'");
  EXPECT_EQ(read_error(std::string("\0\1", 2)), "t.json: is not JSON: it begins with byte 0x00");
  EXPECT_EQ(read_error("{\"a\": 1}"), "t.json: has no traceEvents array");
  EXPECT_EQ(read_error("{\"traceEvents\": null}"), "t.json: has no traceEvents array");
  EXPECT_EQ(read_error("{\"traceEvents\""), "t.json: has no traceEvents array");
  EXPECT_EQ(read_error("{"), "t.json: has no traceEvents array");
  EXPECT_EQ(read_error("[1, 2, 3]"), "t.json: its array holds nothing that can be read as an event");
  EXPECT_EQ(read_error("\x28\xb5\x2f\xfd...."), "t.json: is zstd-compressed; decompress it first");
  EXPECT_EQ(read_error("PK\x03\x04........"), "t.json: is a zip archive; unpack it first");
  EXPECT_EQ(read_error(gzip("")), "t.json: is empty");
  EXPECT_EQ(read_error(gzip(gzip("{}"))), "t.json: is compressed twice; decompress it once first");
  EXPECT_EQ(read_error(gzip("garbage")), "t.json: is not JSON: it begins with 'g'");
  EXPECT_EQ(read_error("\x1f\x8b"), "t.json: the gzip stream is cut short and yields no text");
  EXPECT_EQ(read_error("\x1f\x8bgarbage, not a header at all"),
            "t.json: the gzip stream is damaged: it uses a method other than deflate and yields no text");
}

TEST(ReaderInput, FilesThatAreNone) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    const auto trace = read_file(path);
    EXPECT_FALSE(trace.ok());
    if (trace.ok()) return std::string();
    EXPECT_EQ(trace.error().code, ErrorCode::unreadable);
    EXPECT_EQ(exit_code(trace.error().code), 3);
    return trace.error().message;
  };
  const std::string absent = (folder.path() / "absent.json").string();
  EXPECT_EQ(message(absent), absent + ": no such file");
  EXPECT_EQ(message(folder.path().string()), folder.path().string() + ": is a directory, not a trace");
  const std::string empty = folder.file("empty.json", "");
  EXPECT_EQ(message(empty), empty + ": is empty");
  EXPECT_EQ(message(""), "the file name is empty");
  EXPECT_THAT(message(empty + "/x"), HasSubstr("cannot be opened"));
}

TEST(ReaderInput, FilesPipesAndStandardInput) {
  const TemporaryFolder folder;
  const std::string text = small_trace();
  const std::string path = folder.file("t.json", text);
  const auto file = read_file(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->file, path);
  EXPECT_EQ(file->events, 5U);

  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&pipe, &text] { std::ofstream(pipe, std::ios::binary) << gzip(text); });
  const auto piped = read_file(pipe);
  writer.join();
  ASSERT_TRUE(piped.ok());
  EXPECT_EQ(dump(*piped), dump(*file));

  const int saved = dup(STDIN_FILENO);
  const int in = open(path.c_str(), O_RDONLY);
  ASSERT_GE(in, 0);
  dup2(in, STDIN_FILENO);
  const auto standard = read_file("-");
  if (saved >= 0) dup2(saved, STDIN_FILENO);
  for (const int fd : {in, saved}) {
    if (fd >= 0) close(fd);
  }
  ASSERT_TRUE(standard.ok());
  EXPECT_EQ(standard->file, "-");
  EXPECT_EQ(dump(*standard), dump(*file));
}

}  // namespace
}  // namespace ingot::trace
