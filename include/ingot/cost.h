// SPDX-License-Identifier: Apache-2.0
//
// What a video costs: GPU seconds and money, before and after its MLPs are fused. Everything that is assumed
// is said; docs/cost-model.md has the formulas. Times are of one GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/explain.h"
#include "ingot/mlp.h"
#include "ingot/plan.h"
#include "ingot/status.h"
#include "ingot/video.h"

namespace ingot {

struct CostOptions {
  std::int64_t steps = 50;                 ///< denoising steps a video
  std::optional<int> guidance{};           ///< forwards per step; unset: what is usual for the model
  std::int64_t batch = 1;                  ///< videos at once
  std::optional<VideoSize> size{};         ///< unset: the catalogue's
  std::optional<double> price_per_hour{};  ///< of one GPU, in any currency
  std::int64_t gpus = 1;                   ///< each on videos of its own
};

/// A measured ladder, from `ingot bench --json`.
struct MeasuredMlp {
  Mlp mlp;
  std::int64_t tokens = 0;
  double unfused_us = 0,
         fused_us = 0;  ///< medians; fused: of the fastest rung that is right, at most unfused
  std::string fused_rung, device;
};
/// Reads such a document, of one ladder or several. Error unreadable: not one, or it holds no time of
/// `unfused`.
Result<std::vector<MeasuredMlp>> read_measured(const std::string& path);

/// One kind of MLP in a video.
struct CostPart {
  std::string name;                     ///< of the catalogue, or as a trace shows it
  std::optional<Mlp> mlp;               ///< unset: the trace does not say all of it
  std::int64_t tokens = 0;              ///< a call; 0 unknown
  double calls = 0;                     ///< a video
  double before_us = 0, after_us = 0;   ///< a call
  std::string before_from, after_from;  ///< "forecast", "trace", "roofline estimate", "measured"
};

struct Cost {
  std::string subject;  ///< the models, or the file
  std::string device;
  CostOptions options;
  std::vector<CostPart> parts;
  std::optional<double> rest_s;      ///< a video: all but the MLPs; unset: not known, nor counted
  double before_s = 0, after_s = 0;  ///< a video
  std::vector<std::string> assumptions;

  /// Of `videos` videos, in the currency of the price; unset without a price.
  std::optional<double> money(double seconds, double videos) const;
};

/// Known models (svd-320, svd-640 and svd-1280 together are one), planned for a device. Errors
/// invalid_argument: an unknown model, sizes; unsupported: from plan().
Result<Cost> cost_of_models(const std::vector<std::string>& models, const DeviceDescription& device,
                            const CostOptions& options, const std::vector<MeasuredMlp>& measured = {});

/// A trace of whole steps: one call of its step region is one denoising step, guidance included. Error
/// invalid_argument: no device work in a region that repeats.
Result<Cost> cost_of_trace(const Explanation& explanation, const CostOptions& options,
                           const std::vector<MeasuredMlp>& measured = {});

}  // namespace ingot
