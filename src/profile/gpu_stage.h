// SPDX-License-Identifier: Apache-2.0
//
// Where MLPs are measured on a GPU: weights and inputs in several copies, taken in turn so that none is read
// from the cache of the call before; every contender a graph of one call for each copy. The device's context
// must be current for everything here.
#pragma once

#include <memory>
#include <vector>

#include "base/hash.h"
#include "cpu/reference.h"
#include "gpu/timer.h"
#include "profile/ladder.h"

namespace ingot::profile {

/// Prepares the MLP with weights that lie on the device.
using Prepare = std::function<Result<PreparedMlp>(const Weights&)>;

/// One way to run the MLP, ready for every copy.
struct Contender {
  std::vector<PreparedMlp> prepared;  ///< by copy
  std::optional<gpu::Graph> graph;
  Hash128 bits;  ///< of the output
};

/// Bytes that the copies' weights, inputs and outputs should exceed together: three times the cache and more.
double bytes_to_exceed(std::uint64_t cache_bytes);

class GpuStage {
 public:
  /// `copies` 0: as many as BenchOptions says, as far as the memory allows. Errors out_of_memory; device.
  static Result<std::unique_ptr<GpuStage>> make(std::shared_ptr<const gpu::Device> device,
                                                const Problem& problem, int copies);

  int copies() const { return static_cast<int>(copies_.size()); }
  const Weights& weights(int copy) const { return copies_[static_cast<std::size_t>(copy)].weights; }

  Result<Contender> prepare(const Prepare& prepare) const;
  /// Workspace for all contenders; once, before any of them runs.
  Result<void> reserve(const std::vector<Contender>& contenders);
  /// Runs the contender and judges what it wrote: near enough to the reference, every value written, the
  /// same bits for the same input.
  Result<void> check(Contender& contender, const cpu::Reference& reference, Rung rung,
                     RungResult& result) const;
  /// Captures the contender's graph.
  Result<void> capture(Contender& contender) const;
  /// So many replays of the graph, put into the stream.
  Work replays(const Contender& contender, int times) const;
  /// Whether a replay of the graph writes the bits that the check saw.
  Result<bool> same_bits(const Contender& contender) const;

  const gpu::OwnedStream& stream() const { return *stream_; }
  const std::shared_ptr<const gpu::Device>& device() const { return device_; }

 private:
  struct Copy {
    Weights weights;
    gpu::CuAddress x = 0, y = 0;
  };
  GpuStage(std::shared_ptr<const gpu::Device> device, const Problem& problem)
      : device_(std::move(device)), problem_(problem) {}
  Result<void> set_up(int copies);
  Result<void> fill(Copy& copy, gpu::CuAddress at) const;
  std::size_t y_bytes() const;
  std::size_t copy_bytes() const;
  Result<int> copies_that_fit(int wanted) const;
  Result<void> run(const Contender& contender, int copy) const;
  Result<void> poison(int copy, unsigned char byte) const;
  Result<std::vector<char>> output(int copy) const;

  std::shared_ptr<const gpu::Device> device_;
  const Problem& problem_;
  std::optional<gpu::OwnedStream> stream_;
  gpu::DeviceMemory memory_, workspace_;
  std::vector<Copy> copies_;
};

/// The device's clock around work in the stage's stream, which is waited for; a short idle comes first.
class StageTimer final : public Timer {
 public:
  static Result<std::unique_ptr<StageTimer>> make(const GpuStage& stage);
  Result<double> seconds(const Work& work) override;

 private:
  StageTimer(const GpuStage& stage, gpu::EventTimer timer) : stage_(stage), timer_(std::move(timer)) {}
  const GpuStage& stage_;
  gpu::EventTimer timer_;
};

}  // namespace ingot::profile
