// SPDX-License-Identifier: Apache-2.0
//
// Measuring on a device: a stream, a pair of events, work captured once and replayed. The device's context
// must be current for everything here.
#pragma once

#include <functional>
#include <memory>

#include "gpu/device.h"

namespace ingot::gpu {

/// A stream of its own, which waits for no other.
class OwnedStream {
 public:
  static Result<OwnedStream> make(std::shared_ptr<const Device> device);
  CuStream get() const { return stream_.get(); }
  Result<void> wait() const;

 private:
  std::shared_ptr<const Device> device_;
  std::shared_ptr<CuStreamRecord> stream_;
};

using DeviceWork = std::function<Result<void>()>;

/// Times what is put into a stream by the device's own clock.
class EventTimer {
 public:
  static Result<EventTimer> make(std::shared_ptr<const Device> device);

  /// Waits until the work is done. Seconds between the start of its first and the end of its last piece.
  Result<double> seconds(CuStream stream, const DeviceWork& work) const;

 private:
  std::shared_ptr<const Device> device_;
  std::shared_ptr<CuEventRecord> start_, end_;
};

/// Launches that were captured from a stream, to be replayed together.
class Graph {
 public:
  /// Runs `work`, which puts launches into the stream; none of them is executed.
  static Result<Graph> capture(std::shared_ptr<const Device> device, CuStream stream, const DeviceWork& work);
  Result<void> launch(CuStream stream) const;

 private:
  std::shared_ptr<const Device> device_;
  std::shared_ptr<CuGraphExecRecord> graph_;
};

}  // namespace ingot::gpu
