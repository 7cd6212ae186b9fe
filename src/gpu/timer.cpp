// SPDX-License-Identifier: Apache-2.0
#include "gpu/timer.h"

namespace ingot::gpu {

namespace {

constexpr unsigned non_blocking = 1;  // CUstream_flags
constexpr int relaxed_capture = 2;    // CUstreamCaptureMode: other threads, and libraries, do as they like

Result<std::shared_ptr<CuEventRecord>> make_event(const std::shared_ptr<const Device>& device) {
  CuEvent event = nullptr;
  if (const CuResult r = device->driver().cuEventCreate(&event, 0); r != 0)
    return driver_error(device->driver(), r, "cuEventCreate");
  return std::shared_ptr<CuEventRecord>(event,
                                        [device](CuEvent made) { device->driver().cuEventDestroy_v2(made); });
}

}  // namespace

Result<OwnedStream> OwnedStream::make(std::shared_ptr<const Device> device) {
  OwnedStream stream;
  CuStream made = nullptr;
  if (const CuResult r = device->driver().cuStreamCreate(&made, non_blocking); r != 0)
    return driver_error(device->driver(), r, "cuStreamCreate");
  stream.stream_ = {made, [device](CuStream old) { device->driver().cuStreamDestroy_v2(old); }};
  stream.device_ = std::move(device);
  return stream;
}

Result<void> OwnedStream::wait() const {
  const Driver& driver = device_->driver();
  if (const CuResult r = driver.cuStreamSynchronize(get()); r != 0)
    return driver_error(driver, r, "cuStreamSynchronize");
  return {};
}

Result<EventTimer> EventTimer::make(std::shared_ptr<const Device> device) {
  auto start = make_event(device), end = make_event(device);
  if (!start) return start.error();
  if (!end) return end.error();
  EventTimer timer;
  timer.start_ = std::move(start).value();
  timer.end_ = std::move(end).value();
  timer.device_ = std::move(device);
  return timer;
}

Result<double> EventTimer::seconds(CuStream stream, const DeviceWork& work) const {
  const Driver& driver = device_->driver();
  if (const CuResult r = driver.cuEventRecord(start_.get(), stream); r != 0)
    return driver_error(driver, r, "cuEventRecord");
  if (auto done = work(); !done) return done.error();
  if (const CuResult r = driver.cuEventRecord(end_.get(), stream); r != 0)
    return driver_error(driver, r, "cuEventRecord");
  if (const CuResult r = driver.cuEventSynchronize(end_.get()); r != 0)
    return driver_error(driver, r, "cuEventSynchronize");
  float milliseconds = 0;
  if (const CuResult r = driver.cuEventElapsedTime(&milliseconds, start_.get(), end_.get()); r != 0)
    return driver_error(driver, r, "cuEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

Result<Graph> Graph::capture(std::shared_ptr<const Device> device, CuStream stream, const DeviceWork& work) {
  const Driver& driver = device->driver();
  if (const CuResult r = driver.cuStreamBeginCapture_v2(stream, relaxed_capture); r != 0)
    return driver_error(driver, r, "cuStreamBeginCapture");
  const Result<void> done = work();
  CuGraph captured = nullptr;
  const CuResult ended = driver.cuStreamEndCapture(stream, &captured);
  const std::shared_ptr<CuGraphRecord> description(captured, [&](CuGraph old) {
    if (old != nullptr) driver.cuGraphDestroy(old);
  });
  if (!done) return done.error();  // it says more than what the end of the capture makes of it
  if (ended != 0) return driver_error(driver, ended, "cuStreamEndCapture");
  CuGraphExec made = nullptr;
  if (const CuResult r = driver.cuGraphInstantiateWithFlags(&made, captured, 0); r != 0)
    return driver_error(driver, r, "cuGraphInstantiateWithFlags");
  Graph graph;
  graph.graph_ = {made, [device](CuGraphExec old) { device->driver().cuGraphExecDestroy(old); }};
  graph.device_ = std::move(device);
  return graph;
}

Result<void> Graph::launch(CuStream stream) const {
  const Driver& driver = device_->driver();
  if (const CuResult r = driver.cuGraphLaunch(graph_.get(), stream); r != 0)
    return driver_error(driver, r, "cuGraphLaunch");
  return {};
}

}  // namespace ingot::gpu
