// SPDX-License-Identifier: Apache-2.0
#include "ingot/cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {

namespace {

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Result<void> check(const CostOptions& options) {
  constexpr std::int64_t most = 1'000'000;
  if (options.steps < 1 || options.steps > most) return invalid("steps: give 1 to 1000000");
  if (options.batch < 1 || options.batch > most) return invalid("batch: give 1 to 1000000");
  if (options.gpus < 1 || options.gpus > most) return invalid("gpus: give 1 to 1000000");
  if (options.guidance && (*options.guidance < 1 || *options.guidance > 16))
    return invalid("guidance: give 1 to 16 forwards per step");
  if (options.price_per_hour && !(*options.price_per_hour >= 0))
    return invalid("price: give 0 or more an hour");
  return {};
}

/// Puts measurements in the place of forecasts, for the MLP that was measured.
void use_measured(CostPart& part, const std::vector<MeasuredMlp>& all, bool before_too,
                  std::vector<std::string>& assumptions) {
  if (!part.mlp || part.tokens <= 0) return;
  const MeasuredMlp* best = nullptr;  // of the number of tokens that is nearest
  const auto away = [&](const MeasuredMlp& m) {
    return std::abs(static_cast<double>(m.tokens - part.tokens));
  };
  for (const MeasuredMlp& one : all) {
    if (one.mlp == *part.mlp && (best == nullptr || away(one) < away(*best))) best = &one;
  }
  if (best == nullptr) return;
  const double scale = static_cast<double>(part.tokens) / static_cast<double>(best->tokens);
  if (before_too) {
    part.before_us = best->unfused_us * scale;
    part.before_from = "measured unfused";
  }
  part.after_us = std::min(best->fused_us * scale, part.before_us);
  part.after_from = "measured " + best->fused_rung;
  assumptions.push_back(best->tokens == part.tokens
                            ? fmt::format("{}: times measured on {}", part.name, best->device)
                            : fmt::format("{}: times measured on {} at {} tokens, times {:.4g} for {} tokens",
                                          part.name, best->device, best->tokens, scale, part.tokens));
}

void add_up(Cost& cost) {
  cost.before_s = cost.after_s = cost.rest_s.value_or(0);
  for (const CostPart& part : cost.parts) {
    cost.before_s += part.calls * part.before_us * 1e-6;
    cost.after_s += part.calls * part.after_us * 1e-6;
  }
}

Result<CostPart> model_part(const std::string& name, const DeviceDescription& device,
                            const CostOptions& options, int guidance) {
  const auto model = find_model(name);
  if (!model) return model.error();
  const VideoModel* video = find_video_model(name);
  if (video == nullptr)
    return invalid(fmt::format("{}: the catalogue does not say how pictures become its tokens", name));
  const auto tokens = video_tokens(*video, options.size.value_or(video->usual));
  if (!tokens) return tokens.error();
  CostPart part;
  part.name = name;
  part.mlp = model->mlp;
  part.tokens = *tokens * options.batch;
  part.calls =
      static_cast<double>(options.steps) * guidance * model->blocks / static_cast<double>(options.batch);
  const auto forecast = plan(model->mlp, part.tokens, device);
  if (!forecast) return forecast.error();
  part.after_us = forecast->chosen.forecast_us;
  part.after_from = fmt::format("forecast {}", to_string(forecast->chosen.rung));
  for (const Candidate& candidate : forecast->candidates) {
    if (candidate.rung == Rung::unfused) part.before_us = candidate.forecast_us;
  }
  part.before_from = "forecast unfused";
  if (part.before_us <= 0)
    return Error{ErrorCode::unsupported, name + ": there is no forecast of the unfused MLP"};
  part.after_us = std::min(part.after_us, part.before_us);
  return part;
}

std::string describe(const MlpRow& mlp) {
  std::string text = mlp.tokens && mlp.dim && mlp.hidden
                         ? fmt::format("{} x {} -> {} ", *mlp.tokens, *mlp.dim, *mlp.hidden)
                         : "";
  return text + mlp.activation + (mlp.gated ? " gated" : "");
}

std::optional<Mlp> mlp_of(const MlpRow& row) {
  const auto activation = parse_activation(row.activation);
  if (!row.dim || !row.hidden || !row.bias || !row.dtype || !activation) return std::nullopt;
  const auto dtype = parse_dtype(*row.dtype);
  if (!dtype) return std::nullopt;
  return Mlp{.dim = *row.dim,
             .hidden = *row.hidden,
             .activation = *activation,
             .gated = row.gated,
             .bias = *row.bias,
             .dtype = *dtype};
}

/// The region whose calls are steps: the profiler's, else the one with the most device time that is called
/// again.
const Region* step_region(const Explanation& e) {
  const Region* best = nullptr;
  const auto busy = [](const Region& r) { return r.gpu_busy_us * static_cast<double>(r.calls); };
  for (const Region& region : e.regions) {
    if (region.name == "ProfilerStep") return region.gpu_busy_us > 0 ? &region : nullptr;
    if (region.calls > 1 && region.gpu_busy_us > 0 && (best == nullptr || busy(region) > busy(*best)))
      best = &region;
  }
  return best;
}

}  // namespace

std::optional<double> Cost::money(double seconds, double videos) const {
  if (!options.price_per_hour) return std::nullopt;
  return seconds * videos / 3600 * *options.price_per_hour;
}

Result<Cost> cost_of_models(const std::vector<std::string>& models, const DeviceDescription& device,
                            const CostOptions& options, const std::vector<MeasuredMlp>& measured) {
  if (auto ok = check(options); !ok) return ok.error();
  if (models.empty()) return invalid("model: give one of the catalogue (ingot models)");
  Cost cost;
  cost.options = options;
  cost.device = device.name;
  cost.subject = fmt::format("{}", fmt::join(models, ", "));
  for (const std::string& name : models) {
    const VideoModel* video = find_video_model(name);
    const int guidance = options.guidance.value_or(video == nullptr ? 1 : video->guidance);
    cost.options.guidance = guidance;
    auto part = model_part(name, device, options, guidance);
    if (!part) return part.error();
    if (!options.size) cost.options.size = video->usual;
    use_measured(*part, measured, true, cost.assumptions);
    cost.parts.push_back(*std::move(part));
  }
  const VideoSize& size = *cost.options.size;
  cost.assumptions.insert(
      cost.assumptions.begin(),
      {fmt::format("{}x{}, {} frames; {} steps of {} forwards", size.height, size.width, size.frames,
                   options.steps, *cost.options.guidance),
       "only the feed-forwards of the denoising model are counted: not attention, text encoder, autoencoder "
       "or waiting for launches",
       fmt::format(
           "forecasts for {} ({}); before: the framework's unfused MLP, after: what ingot plan chooses",
           device.name, device.source)});
  add_up(cost);
  return cost;
}

Result<Cost> cost_of_trace(const Explanation& e, const CostOptions& options,
                           const std::vector<MeasuredMlp>& measured) {
  if (auto ok = check(options); !ok) return ok.error();
  if (options.guidance || options.size || options.batch != 1)
    return invalid(
        "guidance, resolution, frames and batch are in the trace already: they go with a model only");
  const Region* region = step_region(e);
  if (region == nullptr) return invalid(e.file + ": no step in it that repeats and runs on the device");
  Cost cost;
  cost.options = options;
  cost.subject = e.file;
  cost.device = e.device.value_or("unknown device");
  const double step_us = region->gpu_busy_us + region->wait_launch_us + region->wait_other_us;
  cost.assumptions.push_back(
      fmt::format("one call of {} is one of {} steps, guidance included, and takes {:.1f} us: its median",
                  region->name, options.steps, step_us));
  cost.assumptions.push_back(
      "text encoder and autoencoder are counted only where the trace's steps hold them");
  const bool waits = region->verdict != Verdict::compute_bound && region->verdict != Verdict::memory_bound;
  double mlp_us = 0;
  for (const MlpRow& row : e.mlps) {
    if (!row.gpu_us_per_call) continue;
    CostPart part;
    part.name = describe(row);
    part.mlp = mlp_of(row);
    part.tokens = row.tokens.value_or(0);
    // MLPs of regions inside of the step count as well: all calls of the trace over its steps.
    part.calls = static_cast<double>(row.calls) / static_cast<double>(region->calls) *
                 static_cast<double>(options.steps);
    part.before_us = part.after_us = *row.gpu_us_per_call;
    part.before_from = "trace";
    part.after_from = "trace: no estimate";
    if (row.fused_us_estimate) {
      part.after_us = std::min(*row.fused_us_estimate, part.before_us);
      part.after_from = "roofline estimate";
    }
    use_measured(part, measured, false, cost.assumptions);
    if (waits && part.after_us < part.before_us) {
      part.after_us = part.before_us;
      part.after_from = "trace: the device waits anyway";
    }
    mlp_us += part.calls * part.before_us;
    cost.parts.push_back(std::move(part));
  }
  if (waits) {
    cost.assumptions.push_back(
        fmt::format("{} is {}: device time saved does not shorten it, so none is counted; what fewer "
                    "launches save is not known",
                    region->name, to_string(region->verdict)));
  } else {
    cost.assumptions.push_back("device time saved shortens the step by as much");
  }
  cost.rest_s = std::max(0.0, step_us * static_cast<double>(options.steps) - mlp_us) * 1e-6;
  add_up(cost);
  return cost;
}

}  // namespace ingot
