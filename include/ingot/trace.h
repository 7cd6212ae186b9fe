// SPDX-License-Identifier: Apache-2.0
//
// A PyTorch profiler trace in memory: columns of numbers and interned strings, one table per kind of event.
// Times are int64 nanoseconds in the trace's own clock (microseconds with decimals in the file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingot/status.h"

namespace ingot::trace {

using StringId = std::uint32_t;                     ///< index into Trace::strings; 0 is the empty string
inline constexpr std::uint32_t none = 0xffffffffU;  ///< "no such row"
inline constexpr std::uint64_t no_id = ~0ULL;       ///< the event carries no such id

/// Interned strings: equal text, equal id. Views stay valid as long as the pool lives.
class StringPool {
 public:
  StringPool();
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;
  ~StringPool() = default;

  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const { return views_[id]; }
  std::size_t size() const { return views_.size(); }

 private:
  std::string_view store(std::string_view text);

  std::vector<std::vector<char>> blocks_;
  std::size_t used_ = 0;
  std::vector<std::string_view> views_;
  std::unordered_map<std::string_view, StringId> ids_;
};

/// `cpu_op` events in file order. The shape columns hold the raw JSON text of the argument, interned: a model
/// repeats few distinct signatures, so text is parsed once per signature and only where it is asked for.
struct CpuOps {
  std::vector<std::int64_t> ts_ns, dur_ns;
  std::vector<std::uint32_t> thread;  ///< index into Trace::threads
  std::vector<StringId> name;
  std::vector<std::uint64_t> external_id;
  /// "Input Dims", "Input type", "Concrete Inputs"; 0: not recorded
  std::vector<StringId> dims, types, concrete;
  std::size_t size() const { return ts_ns.size(); }
};

/// Runtime and driver API calls (CUDA or HIP) that carry a correlation id.
struct ApiCalls {
  std::vector<std::int64_t> ts_ns, dur_ns;
  std::vector<std::uint32_t> thread;
  std::vector<StringId> name;
  std::vector<std::uint64_t> correlation, external_id;
  std::size_t size() const { return ts_ns.size(); }
};

enum class ActivityKind : std::uint8_t { kernel, memcpy, memset };

/// Launch configuration of a kernel, stored once per distinct value.
struct LaunchShape {
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

/// Work on a device: kernels, memcpys and memsets, in file order.
struct Activities {
  std::vector<std::int64_t> ts_ns, dur_ns;
  std::vector<ActivityKind> kind;
  std::vector<StringId> name;
  std::vector<std::int32_t> device, stream;  ///< -1: not recorded
  std::vector<std::uint64_t> correlation, external_id;
  std::vector<std::uint64_t> bytes;  ///< memcpy and memset: bytes moved or set; kernels 0
  std::vector<std::uint32_t> shape;  ///< index into Trace::launch_shapes
  std::size_t size() const { return ts_ns.size(); }
};

/// `user_annotation` (CPU lane: ProfilerStep#N, record_function names) or `gpu_user_annotation` (GPU lane).
struct Annotations {
  std::vector<std::int64_t> ts_ns, dur_ns;
  std::vector<std::uint32_t> thread;
  std::vector<StringId> name;
  std::vector<std::uint64_t> external_id;
  std::size_t size() const { return ts_ns.size(); }
};

/// `overhead` events: the profiler's own cost (buffer requests, lazy loading, flushes).
struct Overheads {
  std::vector<std::int64_t> ts_ns, dur_ns;
  std::vector<StringId> name;
  std::size_t size() const { return ts_ns.size(); }
};

struct Device {
  std::int64_t id = 0;
  std::string name;  ///< as the file has it, "" when it has none
  int sms = 0;       ///< multiprocessors (compute units), 0: not recorded
  int compute_major = 0, compute_minor = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t registers_per_sm = 0, shared_memory_per_sm = 0;
  int max_threads_per_sm = 0;
  int warp_size = 0;
};

struct Thread {
  std::string pid, tid;  ///< text: files carry numbers and names ("Spans", "stream 7")
};

struct Trace {
  std::string file;                  ///< as given; "-" for standard input
  std::uint64_t bytes = 0;           ///< length of the uncompressed text
  std::uint64_t events = 0;          ///< events read, kept or not (flows, metadata, Python frames included)
  std::uint64_t skipped_events = 0;  ///< events that could not be read
  std::uint64_t first_skipped_offset = no_id;  ///< byte offset of the first of them in the uncompressed text
  std::uint64_t repaired_events = 0;  ///< events read after mending (control characters, bad UTF-8, nan …)
  std::uint64_t late_kernels = 0;     ///< device activities that start before their launch call (clock skew)
  bool complete = true;               ///< false: the text ends before the event array does
  std::vector<std::string> warnings;  ///< one line each
  std::vector<Device> devices;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< scalar members of the envelope, as text
  /// Span of everything kept with a duration; both 0 when nothing is.
  std::int64_t first_ns = 0, last_ns = 0;

  StringPool strings;
  std::vector<Thread> threads;
  std::vector<LaunchShape> launch_shapes;
  CpuOps ops;
  ApiCalls calls;
  Activities gpu;
  Annotations annotations, gpu_annotations;
  Overheads overheads;
  std::vector<std::pair<StringId, std::uint64_t>> categories;  ///< events per category name, kept or not
};

/// Reads a trace file: plain JSON or gzip (told apart by content), or standard input for "-". Memory is
/// bounded by what is kept, not by the file. Bad events are counted and skipped; a file cut short yields what
/// stands before the cut, with a warning. Fails with ErrorCode::unreadable when nothing can be read: missing
/// file, directory, empty, not JSON, no event array.
Result<Trace> read_file(const std::string& path);

/// The same over text already in memory (plain JSON or gzip). `name` stands for the file in messages.
Result<Trace> read_text(std::string_view text, std::string name = "<memory>");

}  // namespace ingot::trace
