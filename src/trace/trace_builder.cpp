// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "trace/decimal.h"
#include "trace/json_text.h"

namespace ingot::trace {
namespace {

constexpr std::size_t text_cache_slots =
    4096;  // 32 KiB: more than the distinct texts of one step, still cached

constexpr std::int64_t an_hour = 3'600'000'000'000;  // ns

/// Shape arguments nest three deep at most (a list of tensor lists). Longer or deeper text is no shape, and
/// whoever parses the kept text should never meet it.
constexpr std::size_t longest_shape = 64 * 1024;
constexpr int deepest_shape = 8;

std::uint32_t hash_text(std::string_view text) {
  // Two lanes, so that one multiplication need not wait for the one before.
  constexpr std::uint64_t k0 = 0x9e3779b97f4a7c15ULL, k1 = 0xbf58476d1ce4e5b9ULL;
  std::uint64_t even = text.size() * k0, odd = k1, word = 0;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 16; at += 16, left -= 16) {
    std::memcpy(&word, at, 8);
    even = std::rotl(even ^ word, 29) * k1;
    std::memcpy(&word, at + 8, 8);
    odd = std::rotl(odd ^ word, 31) * k0;
  }
  if (left >= 8) {
    std::memcpy(&word, at, 8);
    even = std::rotl(even ^ word, 29) * k1;
    at += 8;
    left -= 8;
  }
  if (left != 0) {
    word = 0;
    std::memcpy(&word, at, left);
    odd = std::rotl(odd ^ word, 31) * k0;
  }
  even = (even ^ std::rotl(odd, 17)) * k1;
  return static_cast<std::uint32_t>(even >> 32);
}

bool too_deep(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') {
      if (++depth > deepest_shape) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

/// Up to three unsigned numbers of `[1, 2, 3]`; others stay 0.
void read_triple(std::string_view text, std::uint32_t (&out)[3]) {
  std::size_t at = 0;
  for (auto& value : out) {
    while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
    std::uint64_t number = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      number =
          std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(text[at++] - '0'), 0xffffffffU);
    }
    value = static_cast<std::uint32_t>(number);
  }
}

std::uint32_t small_unsigned(std::string_view token) {
  const auto value = parse_unsigned(token);
  return value && *value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(*value)
                                                                      : 0;
}

std::int32_t small_signed(std::string_view token) {
  const auto value = parse_signed(token);
  if (!value || *value < 0 || *value > std::numeric_limits<std::int32_t>::max()) return -1;
  return static_cast<std::int32_t>(*value);
}

/// Files of 2021 name a stream by its lane only: tid "stream 7".
std::int32_t stream_of_lane(std::string_view tid) {
  constexpr std::string_view prefix = "stream ";
  std::string_view text = bare(tid);
  if (text.substr(0, prefix.size()) == prefix) text.remove_prefix(prefix.size());
  return small_signed(text);
}

}  // namespace

/// The categories Ingot keeps, in the names of every generation. All others are counted.
const TraceBuilder::KnownCategory TraceBuilder::known_categories[] = {
    {"cpu_op", Kind::op},
    {"Operator", Kind::op},        // 2021
    {"cuda_runtime", Kind::call},  // HIP calls, too
    {"cuda_driver", Kind::call},
    {"Runtime", Kind::call},  // 2021
    {"kernel", Kind::kernel},
    {"Kernel", Kind::kernel},  // 2021
    {"gpu_memcpy", Kind::memcpy},
    {"Memcpy", Kind::memcpy},  // 2021
    {"gpu_memset", Kind::memset},
    {"Memset", Kind::memset},  // 2021
    {"user_annotation", Kind::annotation},
    {"gpu_user_annotation", Kind::gpu_annotation},
    {"overhead", Kind::overhead},
};

TraceBuilder::TraceBuilder(Trace& trace) : trace_(trace), text_cache_(text_cache_slots) {
  category_cache_.fill(none);
}

std::size_t TraceBuilder::ShapeHash::operator()(const LaunchShape& s) const {
  std::uint64_t hash = 0;
  for (const std::uint32_t value : {s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
                                    s.registers_per_thread, s.shared_memory_bytes}) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

StringId TraceBuilder::intern(std::string_view text) {
  const std::uint32_t hash = hash_text(text);
  CachedText& slot = text_cache_[hash % text_cache_slots];
  if (slot.hash == hash && trace_.strings[slot.id] == text) return slot.id;
  slot = {hash, trace_.strings.intern(text)};
  return slot.id;
}

StringId TraceBuilder::intern_string(std::string_view token) {
  const std::string_view text = bare(token);
  if (text.empty()) return 0;
  if (std::memchr(text.data(), '\\', text.size()) == nullptr) return intern(text);
  unescape(token, unescaped_);
  return intern(unescaped_);
}

StringId TraceBuilder::intern_shape(std::string_view token) {
  if (token.empty() || token.size() > longest_shape || token == "null") return 0;
  const std::uint32_t hash = hash_text(token);
  CachedText& slot = text_cache_[hash % text_cache_slots];
  if (slot.hash == hash && trace_.strings[slot.id] == token) return slot.id;
  if (too_deep(token)) return 0;
  slot = {hash, trace_.strings.intern(token)};
  return slot.id;
}

const TraceBuilder::Category& TraceBuilder::category(std::string_view token) {
  const StringId name = intern_string(token);
  std::uint32_t& cached = category_cache_[name % category_cache_.size()];
  if (cached != none && categories_[cached].name == name) return categories_[cached];
  const auto [found, is_new] = category_of_.try_emplace(name, static_cast<std::uint32_t>(categories_.size()));
  if (is_new) {
    Kind kind = Kind::counted;
    for (const KnownCategory& known : known_categories) {
      if (known.name == trace_.strings[name]) kind = known.kind;
    }
    categories_.push_back({name, kind, static_cast<std::uint32_t>(trace_.categories.size())});
    trace_.categories.emplace_back(name, 0);
  }
  cached = found->second;
  return categories_[cached];
}

std::uint32_t TraceBuilder::thread(std::string_view pid, std::string_view tid) {
  for (const CachedThread& cached : thread_cache_) {
    if (cached.thread != none && cached.tid == tid && cached.pid == pid) return cached.thread;
  }
  Thread thread;
  unescape(pid, thread.pid);
  unescape(tid, thread.tid);
  const auto [found, is_new] =
      threads_.try_emplace(thread.pid + '\n' + thread.tid, static_cast<std::uint32_t>(trace_.threads.size()));
  if (is_new) trace_.threads.push_back(std::move(thread));
  CachedThread& slot = thread_cache_[thread_cache_next_++ % thread_cache_.size()];
  slot.pid.assign(pid);
  slot.tid.assign(tid);
  slot.thread = found->second;
  return found->second;
}

std::uint32_t TraceBuilder::launch_shape(const EventTokens& event) {
  LaunchShape shape;
  read_triple(event[Field::grid], shape.grid);
  read_triple(event[Field::block], shape.block);
  shape.registers_per_thread = small_unsigned(event[Field::registers]);
  shape.shared_memory_bytes = small_unsigned(event[Field::shared_memory]);
  const auto [found, is_new] =
      shapes_.try_emplace(shape, static_cast<std::uint32_t>(trace_.launch_shapes.size()));
  if (is_new) trace_.launch_shapes.push_back(shape);
  return found->second;
}

void TraceBuilder::skip(std::uint64_t offset) {
  ++trace_.skipped_events;
  trace_.first_skipped_offset = std::min(trace_.first_skipped_offset, offset);
}

void TraceBuilder::add(const EventTokens& event, std::uint64_t offset) {
  const Category& kind = category(event[Field::cat]);
  const bool is_span = bare(event[Field::ph]) == "X";
  if (is_span && kind.kind != Kind::counted) {
    const auto ts = microseconds_to_ns(event[Field::ts]);
    // Lost stamps are written as 0: no time in a trace that otherwise stands hours after it.
    if (!ts || (*ts == 0 && trace_.last_ns > an_hour)) return skip(offset);
    const std::string_view dur_token = event[Field::dur];
    const auto dur = microseconds_to_ns(dur_token);
    if (!dur && !dur_token.empty()) ++trace_.repaired_events;
    add_row(event, kind.kind, {*ts, std::max<std::int64_t>(dur.value_or(0), 0)});
  }
  ++trace_.events;
  ++trace_.categories[kind.row].second;
}

void TraceBuilder::add_row(const EventTokens& event, Kind kind, Span span) {
  const StringId name = intern_string(event[Field::name]);
  const auto add_span = [span](auto& rows) {
    rows.ts_ns.push_back(span.ts_ns);
    rows.dur_ns.push_back(span.dur_ns);
  };
  switch (kind) {
    case Kind::counted:
      return;
    case Kind::op: {
      CpuOps& ops = trace_.ops;
      add_span(ops);
      ops.thread.push_back(thread(event[Field::pid], event[Field::tid]));
      ops.name.push_back(name);
      ops.external_id.push_back(parse_id(event[Field::external_id]));
      ops.dims.push_back(intern_shape(event[Field::dims]));
      ops.types.push_back(intern_shape(event[Field::types]));
      ops.concrete.push_back(intern_shape(event[Field::concrete]));
      break;
    }
    case Kind::call: {
      const std::uint64_t correlation = parse_id(event[Field::correlation]);
      if (correlation == no_id) return;
      ApiCalls& calls = trace_.calls;
      add_span(calls);
      calls.thread.push_back(thread(event[Field::pid], event[Field::tid]));
      calls.name.push_back(name);
      calls.correlation.push_back(correlation);
      calls.external_id.push_back(parse_id(event[Field::external_id]));
      break;
    }
    case Kind::kernel:
    case Kind::memcpy:
    case Kind::memset: {
      Activities& gpu = trace_.gpu;
      add_span(gpu);
      gpu.kind.push_back(kind == Kind::kernel   ? ActivityKind::kernel
                         : kind == Kind::memcpy ? ActivityKind::memcpy
                                                : ActivityKind::memset);
      gpu.name.push_back(name);
      const std::string_view device = event[Field::device], stream = event[Field::stream];
      gpu.device.push_back(small_signed(device.empty() ? event[Field::pid] : device));
      gpu.stream.push_back(stream.empty() ? stream_of_lane(event[Field::tid]) : small_signed(stream));
      gpu.correlation.push_back(parse_id(event[Field::correlation]));
      gpu.external_id.push_back(parse_id(event[Field::external_id]));
      gpu.bytes.push_back(kind == Kind::kernel ? 0 : parse_unsigned(event[Field::bytes]).value_or(0));
      gpu.shape.push_back(launch_shape(event));
      break;
    }
    case Kind::annotation:
    case Kind::gpu_annotation: {
      Annotations& rows = kind == Kind::annotation ? trace_.annotations : trace_.gpu_annotations;
      add_span(rows);
      rows.thread.push_back(thread(event[Field::pid], event[Field::tid]));
      rows.name.push_back(name);
      rows.external_id.push_back(parse_id(event[Field::external_id]));
      break;
    }
    case Kind::overhead:
      add_span(trace_.overheads);
      trace_.overheads.name.push_back(name);
      break;
  }
  const std::int64_t end = span.ts_ns + span.dur_ns;
  trace_.first_ns = any_time_ ? std::min(trace_.first_ns, span.ts_ns) : span.ts_ns;
  trace_.last_ns = any_time_ ? std::max(trace_.last_ns, end) : end;
  any_time_ = true;
}

}  // namespace ingot::trace
