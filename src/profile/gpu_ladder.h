// SPDX-License-Identifier: Apache-2.0
//
// The ladder on a GPU: rungs of the vendor's library beside Ingot's, each checked, then timed.
#pragma once

#include "gpu/executor.h"
#include "profile/gpu_stage.h"

namespace ingot::profile {

/// One rung and how it is prepared.
struct Entrant {
  Rung rung = Rung::unfused;
  Prepare prepare;
};

/// Checks and times what enters. An entrant whose rung is the library's and cannot be prepared because it is
/// unsupported is skipped, with the reason. Errors: as bench().
Result<Ladder> run_gpu_ladder(const std::shared_ptr<const gpu::Device>& device, const Problem& problem,
                              const std::vector<Entrant>& entrants, const BenchOptions& options);

/// bench() of an MLP on a GPU, with the rungs that the options ask for.
Result<Ladder> bench_gpu(const std::shared_ptr<const gpu::Gpu>& gpu, const Problem& problem,
                         const BenchOptions& options);

/// tune() of an MLP on a GPU, without keeping what was found.
struct Tuned {
  Tuning tuning;
  TunedChoices choices;  ///< the fastest pair's tiles; where one kernel is possible, what is fastest of all
};
/// How an MLP is tried: as one kernel, or as two.
struct TrialTiles {
  KernelTile first, second;
  std::optional<MlpTile> whole{};  ///< set: the other two do not count
};
/// Prepares the MLP with these tiles.
using PrepareTiles = std::function<Result<PreparedMlp>(const TrialTiles& tiles, const Weights&)>;
/// `description`: what the tiles are ranked by. Errors: as tune(); check_failed: nothing is right.
Result<Tuned> tune_tiles(const std::shared_ptr<const gpu::Device>& device,
                         const DeviceDescription& description, const Problem& problem,
                         const PrepareTiles& prepare, const BenchOptions& options);
Result<Tuned> tune_gpu(const std::shared_ptr<const gpu::Gpu>& gpu, const Problem& problem,
                       const BenchOptions& options);

}  // namespace ingot::profile
