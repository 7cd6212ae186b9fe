// SPDX-License-Identifier: Apache-2.0
//
// A GPU driver without a GPU: a table of functions that checks what it is called with as the real one does,
// records launches, and counts what is alive. The latest one made is in use; its functions may be called from
// any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "gpu/mlp_launch.h"
#include "jit/kernel.h"

namespace ingot::test {

/// What a tensor map was made of, written into its opaque words by the fake.
struct MapView {
  std::uint64_t address = 0;
  int type = 0, rank = 0, swizzle = 0;
  std::array<std::uint64_t, 5> sizes{};    ///< elements
  std::array<std::uint64_t, 4> strides{};  ///< bytes
  std::array<std::uint32_t, 5> box{};

  bool operator==(const MapView&) const = default;
};
MapView view(const gpu::CuTensorMap& map);

/// One recorded launch. `arguments`: as many bytes as the kernel declares.
struct Launch {
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared_bytes = 0, cluster = 0;  ///< cluster 0: no such attribute
  bool dependent = false;
  gpu::CuStream stream = nullptr;
  const std::string* text = nullptr;  ///< of the kernel; valid while its module is loaded
  alignas(64) std::array<char, 2048> arguments{};

  template <class Arguments>
  Arguments as() const {
    static_assert(sizeof(Arguments) <= sizeof arguments);
    Arguments out;
    std::memcpy(&out, arguments.data(), sizeof out);
    return out;
  }
};

struct FakeGpuOptions {
  const char* name = "Fake GPU";
  int devices = 2;
  int major = 9, minor = 0;
  int multiprocessors = 132;
  int clock_khz = 1980000, memory_clock_khz = 3201000, memory_bus_bits = 6144;
};

class FakeGpu {
 public:
  explicit FakeGpu(const FakeGpuOptions& options = {});
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;
  ~FakeGpu();

  std::shared_ptr<const gpu::Driver> driver() const { return driver_; }

  /// An address `offset` bytes into memory of a device. Never read.
  static void* memory(std::size_t offset, int device = 0);

  // What the next calls do.
  std::atomic<int> fail_at{0};  ///< the n-th call that can fail from now on does, with `fail_with`; 0: none
  std::atomic<int> fail_with{999};  ///< CUDA_ERROR_UNKNOWN
  std::atomic<int> capturing{0};
  std::atomic<int> resident_clusters{60};
  std::atomic<bool> keeps_launches{true};  ///< false: many threads launch
  std::atomic<double> clock_s{0};          ///< what an event records; whoever plays work moves it on

  /// The n-th launch since the fake was made (the last 64 are kept).
  const Launch& launch(int n) const;
  int launches() const { return launches_.load(); }
  int loads() const { return loads_.load(); }

  /// Contexts, modules, memory, events and streams not yet given back.
  int alive() const {
    return contexts_.load() + modules_.load() + memories_.load() + events_.load() + streams_.load();
  }
  /// Of this thread.
  static gpu::CuContext current();
  static void set_current(gpu::CuContext context);
  static gpu::CuContext context_of(int device);

 private:
  friend struct FakeCalls;
  FakeGpuOptions options_;
  FakeGpu* before_ = nullptr;  ///< the one in use until this one was made
  std::shared_ptr<const gpu::Driver> driver_;
  std::array<Launch, 64> kept_;
  std::atomic<int> launches_{0}, loads_{0}, contexts_{0}, modules_{0}, memories_{0}, events_{0}, streams_{0};
};

/// A store whose compiler writes the text itself as the code. Counts what it is asked for.
class FakeStore final : public jit::KernelStore {
 public:
  Result<std::shared_ptr<const jit::Cubin>> get(const jit::KernelText& kernel) override;
  std::atomic<int> asked{0};
  std::atomic<bool> fails{false};  ///< with an error of the compiler
};

}  // namespace ingot::test
