// SPDX-License-Identifier: Apache-2.0
//
// A GPU whose memory is the host's, whose streams do their work at once, and whose clock is what the work
// says it takes. Streams can be captured and graphs replayed. One at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "fake/gpu_driver.h"

namespace ingot::test {

class HostGpu {
 public:
  HostGpu();
  HostGpu(const HostGpu&) = delete;
  HostGpu& operator=(const HostGpu&) = delete;
  ~HostGpu();

  std::shared_ptr<const gpu::Driver> driver() const { return driver_; }

  /// Work put into a stream: done now, or kept for the graph being captured. `takes`: seconds by the device's
  /// clock, asked for each time it is done.
  void submit(std::function<void()> work, std::function<double()> takes);

  std::size_t free_bytes = std::size_t{1} << 30;
  int graph_launches = 0;
  /// Graph launches since an event was recorded last: how hot the card is.
  int since_event = 0;

  /// Everything that was made and not given back.
  int alive() const { return fake_.alive() + static_cast<int>(memory_.size()) + graphs_; }

 private:
  friend struct HostCalls;
  struct Piece {
    std::function<void()> work;
    std::function<double()> takes;
  };
  using Pieces = std::vector<Piece>;
  void play(const Pieces& pieces);

  FakeGpu fake_;
  std::shared_ptr<const gpu::Driver> driver_;
  std::map<std::uint64_t, std::size_t> memory_;  ///< addresses given out, with their sizes
  std::unique_ptr<Pieces> captured_;             ///< set while a stream is captured
  int graphs_ = 0;                               ///< described or instantiated
};

}  // namespace ingot::test
