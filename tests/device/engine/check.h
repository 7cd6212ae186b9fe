// SPDX-License-Identifier: Apache-2.0
//
// Shared by the parts of ingot_engine_check: the device, memory on it, MLPs with random numbers, and the
// verdict on a run. This program runs on a machine with a GPU; every failure of the driver ends it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/env.h"
#include "cpu/reference.h"
#include "gpu/executor.h"

namespace ingot::check {

/// Prints and exits with 3 on an error of the driver; "cuMemAlloc: …".
void must(const gpu::Driver& driver, gpu::CuResult result, const char* call);
[[noreturn]] void stop(const std::string& why);

/// What the parts share.
class Session {
 public:
  explicit Session(const base::Environment& environment, int ordinal);

  const gpu::Driver& driver() const { return *driver_; }
  const std::shared_ptr<const gpu::Driver>& shared_driver() const { return driver_; }
  const std::shared_ptr<const gpu::Gpu>& gpu() const { return gpu_; }
  const base::Environment& environment() const { return environment_; }
  /// A device with nothing loaded, its kernels in `cache`; `driver`: another table of the same driver.
  std::shared_ptr<const gpu::Gpu> open(const std::string& cache,
                                       std::shared_ptr<const gpu::Driver> driver) const;
  void make_current() const;
  void synchronize() const;

  /// Counts a check, and prints it where it failed or `always`. Thread-safe.
  void report(bool good, const std::string& what, bool always = false);
  int checked() const { return checked_; }
  int failed() const { return failed_; }

 private:
  base::Environment environment_;
  int ordinal_;
  std::shared_ptr<const gpu::Driver> driver_;
  std::shared_ptr<const gpu::Gpu> gpu_;
  std::mutex mutex_;
  int checked_ = 0, failed_ = 0;
};

/// Device memory, given back at the end.
class Buffer {
 public:
  Buffer(const Session& session, std::size_t bytes);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept;
  ~Buffer();

  char* at(std::size_t offset) const { return reinterpret_cast<char*>(address_) + offset; }
  std::size_t bytes() const { return bytes_; }
  void fill(unsigned char byte) const;
  void upload(const void* from, std::size_t count, std::size_t offset = 0) const;
  void download(void* to, std::size_t count, std::size_t offset = 0) const;

 private:
  const Session& session_;
  gpu::CuAddress address_ = 0;
  std::size_t bytes_;
};

class Stream {
 public:
  explicit Stream(const Session& session);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  gpu::CuStream get() const { return stream_; }
  ingot::Stream handle() const { return {stream_}; }
  void wait() const;

 private:
  const Session& session_;
  gpu::CuStream stream_ = nullptr;
};

/// Where gate and up lie: the three layouts, and separate ones in the other order.
enum class Place : std::uint8_t { up_then_gate, gate_then_up, packed_value_first, packed_gate_first };

/// An MLP with random weights on host and device; `rows` random rows of x on the host.
class Problem {
 public:
  Problem(const Session& session, const Mlp& mlp, Place place, std::int64_t rows, std::uint64_t seed,
          std::size_t weight_offset = 0);

  const Mlp& mlp() const { return mlp_; }
  const Weights& on_device() const { return device_weights_; }
  const Weights& on_host() const { return host_weights_; }
  const void* x() const { return x_.data(); }
  std::size_t row_bytes() const { return static_cast<std::size_t>(mlp_.dim) * size_of(mlp_.dtype); }

  /// Rows of x, `stride` elements apart, as bytes to upload; gaps are filled with a pattern.
  std::vector<char> strided_x(std::int64_t tokens, std::int64_t stride) const;
  /// Judges outputs of some rows of x, gathered one behind the other. Empty: right.
  std::string judge(const std::vector<std::int64_t>& rows, const void* y) const;

 private:
  Mlp mlp_;
  std::vector<char> host_, x_;
  Buffer device_;
  Weights host_weights_, device_weights_;
};

/// Prints and exits on an error: for what must work before a check makes sense.
template <class T>
T take(Result<T> result) {
  if (!result) stop(result.error().message);
  return std::move(result).value();
}
inline void take(const Result<void>& result) {
  if (!result) stop(result.error().message);
}

// The parts.
struct SweepOptions {
  int rotations = 1;  ///< how many sizes and layouts each kind of MLP is checked with
  bool small = false;
};
void sweep(Session& session, const SweepOptions& options);
void whole(Session& session, const SweepOptions& options);
void capture(Session& session);
void streams(Session& session);
void large(Session& session);
void errors(Session& session);
void launch_overhead(Session& session);
void first_use(Session& session, const std::string& folder);
/// Leaves the device unusable: the last part.
void fault(Session& session);

}  // namespace ingot::check
