// SPDX-License-Identifier: Apache-2.0
//
// Streaming inflate over ISA-L (Debian package libisal-dev). libdeflate is as fast but inflates whole buffers
// only: it needs memory for the whole text and returns nothing from a file cut short. ISA-L streams and hands
// over everything that stands before a cut.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/byte_source.h"

namespace ingot {
namespace {

constexpr std::size_t sniff_bytes = 4;
constexpr std::size_t input_bytes = std::size_t{128} * 1024;

bool has_gzip_magic(const char* bytes, std::size_t count) {
  return count >= 2 && static_cast<unsigned char>(bytes[0]) == 0x1f &&
         static_cast<unsigned char>(bytes[1]) == 0x8b;
}

/// Serves bytes already taken from a source, then the rest of it.
class PrefixedBytes final : public ByteSource {
 public:
  PrefixedBytes(std::string head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  Result<std::size_t> read(char* out, std::size_t capacity) override {
    if (used_ == head_.size()) return rest_->read(out, capacity);
    const std::size_t count = std::min(capacity, head_.size() - used_);
    std::memcpy(out, head_.data() + used_, count);
    used_ += count;
    return count;
  }

 private:
  std::string head_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

const char* describe(int code) {
  switch (code) {
    case ISAL_INCORRECT_CHECKSUM:
      return "its checksum does not match";
    case ISAL_INVALID_WRAPPER:
      return "a member header is broken";
    case ISAL_UNSUPPORTED_METHOD:
      return "it uses a method other than deflate";
    default:
      return "its compressed data is broken";
  }
}

/// Inflates one or more gzip members. Damage ends the stream: what was inflated before it is delivered.
class GzipBytes final : public ByteSource {
 public:
  explicit GzipBytes(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), state_(std::make_unique<inflate_state>()), input_(input_bytes) {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }

  Result<std::size_t> read(char* out, std::size_t capacity) override {
    capacity = std::min<std::size_t>(capacity, std::numeric_limits<std::uint32_t>::max() / 2);
    state_->next_out = reinterpret_cast<std::uint8_t*>(out);
    state_->avail_out = static_cast<std::uint32_t>(capacity);
    while (!ended_ && state_->avail_out != 0) {
      if (state_->avail_in == 0 && !input_ended_) {
        if (auto filled = fill(); !filled) return filled.error();
      }
      step();
    }
    return capacity - state_->avail_out;
  }

  std::string damage() const override { return damage_; }

 private:
  Result<void> fill() {
    auto got = compressed_->read(reinterpret_cast<char*>(input_.data()), input_.size());
    if (!got) return got.error();
    state_->next_in = input_.data();
    state_->avail_in = static_cast<std::uint32_t>(*got);
    input_ended_ = *got == 0;
    return {};
  }

  void stop(std::string why) {
    damage_ = std::move(why);
    ended_ = true;
  }

  void step() {
    if (between_members_) {
      begin_member();
      return;
    }
    const std::uint32_t in_before = state_->avail_in;
    const std::uint32_t out_before = state_->avail_out;
    const int code = isal_inflate(state_.get());
    if (code < 0) {
      stop(std::string("the gzip stream is damaged: ") + describe(code));
    } else if (state_->block_state == ISAL_BLOCK_FINISH) {
      between_members_ = true;
    } else if (input_ended_ && state_->avail_in == in_before && state_->avail_out == out_before) {
      stop("the gzip stream is cut short");
    }
  }

  /// A gzip file may hold several members one after the other; zero padding after the last is common, too.
  void begin_member() {
    while (state_->avail_in != 0 && *state_->next_in == 0) {
      ++state_->next_in;
      --state_->avail_in;
    }
    if (state_->avail_in == 0) {
      ended_ = input_ended_;
      return;
    }
    if (*state_->next_in != 0x1f) {
      stop("bytes after the end of the gzip stream are ignored");
      return;
    }
    std::uint8_t* const next_in = state_->next_in;
    const std::uint32_t avail_in = state_->avail_in;
    std::uint8_t* const next_out = state_->next_out;
    const std::uint32_t avail_out = state_->avail_out;
    isal_inflate_reset(state_.get());
    state_->crc_flag = ISAL_GZIP;
    state_->next_in = next_in;
    state_->avail_in = avail_in;
    state_->next_out = next_out;
    state_->avail_out = avail_out;
    between_members_ = false;
  }

  std::unique_ptr<ByteSource> compressed_;
  std::unique_ptr<inflate_state> state_;
  std::vector<std::uint8_t> input_;
  std::string damage_;
  bool input_ended_ = false;
  bool between_members_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> inflate_if_gzip(std::unique_ptr<ByteSource> source) {
  std::string head(sniff_bytes, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    auto got = source->read(head.data() + have, head.size() - have);
    if (!got) return got.error();
    if (*got == 0) break;
    have += *got;
  }
  head.resize(have);
  const bool gzip = has_gzip_magic(head.data(), head.size());
  std::unique_ptr<ByteSource> whole = std::make_unique<PrefixedBytes>(std::move(head), std::move(source));
  if (gzip) whole = std::make_unique<GzipBytes>(std::move(whole));
  return Result<std::unique_ptr<ByteSource>>(std::move(whole));
}

}  // namespace ingot
