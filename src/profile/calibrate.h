// SPDX-License-Identifier: Apache-2.0
//
// Measures the rates of a CPU that the cost model needs.
#pragma once

#include <memory>

#include "ingot/plan.h"
#include "profile/timer.h"

namespace ingot::profile {

/// One CPU and the memory it is measured in (about a gigabyte where the last-level cache is large), which
/// stays for further measurements.
class CpuCalibration {
 public:
  /// `start` says what is known without measuring: threads, caches. `timer` must outlive this. Error
  /// out_of_memory.
  static Result<CpuCalibration> create(const DeviceDescription& start, Timer& timer);
  CpuCalibration(CpuCalibration&& other) noexcept;
  CpuCalibration& operator=(CpuCalibration&& other) noexcept;
  ~CpuCalibration();

  /// Every rate, the middle one of three rounds: some seconds. Error out_of_memory.
  Result<DeviceDescription> measure();
  /// `measured` brought to the speed the machine has at the moment, in about half a second: products, memory
  /// and phases are measured in one round, and the costs of the loops scaled as the f32 products are. For
  /// machines whose clock or neighbours change within minutes. Error out_of_memory.
  Result<DeviceDescription> refresh(const DeviceDescription& measured);

 private:
  class State;
  explicit CpuCalibration(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ingot::profile
