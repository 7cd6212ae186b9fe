// SPDX-License-Identifier: Apache-2.0
//
// A GPU: its primary context, what the planner knows of it, and the checks of pointers into its memory.
#pragma once

#include <memory>
#include <string_view>

#include "gpu/driver.h"
#include "ingot/engine.h"
#include "ingot/plan.h"
#include "jit/kernel.h"

namespace ingot::gpu {

/// Keeps the device's primary context, the one that the CUDA runtime and PyTorch use, for as long as it
/// lives.
class Device {
 public:
  /// Errors invalid_argument: no such ordinal; unsupported: older than compute capability 8.0; device.
  static Result<std::shared_ptr<const Device>> open(std::shared_ptr<const Driver> driver, int ordinal);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const Driver& driver() const { return *driver_; }
  CuContext context() const { return context_; }
  int ordinal() const { return ordinal_; }
  const DeviceDescription& description() const { return description_; }
  /// What kernels are compiled for.
  jit::Target target() const;
  /// Whether a kernel may start before the one it depends on has ended.
  bool has_dependent_launch() const { return description_.gpu.major >= 9; }

  /// Null is the caller's to check. Error invalid_argument: "x: host memory, give memory of device 0". The
  /// context must be current.
  Result<void> check_pointer(std::string_view name, const void* pointer) const;
  /// The same for x, y and workspace of a run.
  Result<void> check_pointers(const RunArguments& run) const;

 private:
  Device(std::shared_ptr<const Driver> driver, int ordinal, CuDevice handle)
      : driver_(std::move(driver)), ordinal_(ordinal), handle_(handle) {}

  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  CuDevice handle_;
  CuContext context_ = nullptr;  ///< null: not retained
  DeviceDescription description_;
};

/// Makes a device's context the thread's, and gives the thread its own back at the end.
class CurrentContext {
 public:
  explicit CurrentContext(const Device& device);
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

  Result<void> ready() const;

 private:
  const Driver& driver_;
  CuContext before_ = nullptr;
  bool changed_ = false;
  CuResult result_ = 0;
};

/// What the driver tells of a GPU that no data sheet is known of.
struct GpuFacts {
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0, l2_bytes = 0;
  int shared_bytes = 0;                     ///< a block may use, opted in
  int clock_khz = 0, memory_clock_khz = 0;  ///< 0: not told
  int memory_bus_bits = 0;                  ///< 0: not told
};

/// Rates from clocks and the generation's multiply-adds a cycle, times the share that good kernels reach.
GpuDescription estimate_gpu(const GpuFacts& facts);

/// What there is to plan with, without a context. Errors invalid_argument: no such ordinal; device.
Result<DeviceDescription> describe(const Driver& driver, int ordinal);

/// Memory of a device. The device must outlive it.
class DeviceMemory {
 public:
  /// Error out_of_memory. The context must be current.
  static Result<DeviceMemory> zeros(std::shared_ptr<const Device> device, std::size_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  const void* data() const { return reinterpret_cast<const void*>(address_); }
  CuAddress address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<const Device> device_;
  CuAddress address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ingot::gpu
