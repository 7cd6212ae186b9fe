// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/command.h"
#include "ingot/cost.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

struct Options {
  std::string trace, measured, resolution;
  std::vector<std::string> models;
  std::string device = "sm90";
  std::optional<std::int64_t> frames;
  CostOptions cost;
  bool sweep = false;
  bool json = false;
};

/// Resolution and frames, where one of them is given; the other is the first model's usual one.
Result<std::optional<VideoSize>> size_of(const Options& options) {
  if (options.resolution.empty() && !options.frames) return std::optional<VideoSize>();
  VideoSize size;
  if (const VideoModel* model = options.models.empty() ? nullptr : find_video_model(options.models.front()))
    size = model->usual;
  if (!options.resolution.empty()) {
    const auto given = parse_resolution(options.resolution);
    if (!given) return given.error();
    size.height = given->height;
    size.width = given->width;
  }
  if (options.frames) size.frames = *options.frames;
  return std::optional(size);
}

Result<std::vector<Cost>> costs(const Options& options, const CostOptions& wanted,
                                const std::vector<MeasuredMlp>& measured) {
  const auto one = [](Result<Cost> cost) -> Result<std::vector<Cost>> {
    if (!cost) return cost.error();
    return std::vector<Cost>{std::move(cost).value()};
  };
  if (!options.trace.empty()) {
    if (options.sweep)
      return Error{ErrorCode::invalid_argument, "--sweep goes with --model: a trace has one batch"};
    const auto trace = trace::read_file(options.trace);
    if (!trace) return trace.error();
    const auto explanation = explain(*trace);
    if (!explanation) return explanation.error();
    return one(cost_of_trace(*explanation, wanted, measured));
  }
  const auto device = describe_gpu(options.device);
  if (!device) return device.error();
  if (!options.sweep) return one(cost_of_models(options.models, *device, wanted, measured));
  std::vector<Cost> all;
  for (std::int64_t batch = 1; batch <= 8; ++batch) {
    CostOptions of_batch = wanted;
    of_batch.batch = batch;
    auto cost = cost_of_models(options.models, *device, of_batch, measured);
    if (!cost) return cost.error();
    all.push_back(std::move(cost).value());
  }
  return all;
}

Result<int> run(const Options& options) {
  if (options.trace.empty() == options.models.empty())
    return Error{ErrorCode::invalid_argument, "give --trace or --model, one of the two"};
  CostOptions wanted = options.cost;
  const auto size = size_of(options);
  if (!size) return size.error();
  wanted.size = *size;
  std::vector<MeasuredMlp> measured;
  if (!options.measured.empty()) {
    auto read = read_measured(options.measured);
    if (!read) return read.error();
    measured = std::move(read).value();
  }
  const auto found = costs(options, wanted, measured);
  if (!found) return found.error();
  const report::TextOptions format{.color = color_output(), .width = output_width()};
  std::string document;
  if (options.sweep) {
    document = options.json ? report::json(*found) : report::text(*found, format);
  } else {
    document = options.json ? report::json(found->front()) : report::text(found->front(), format);
  }
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--trace", options->trace, "profiler trace of whole denoising steps");
  app.add_option("--model", options->models,
                 "of the catalogue (ingot models); several of one network, comma-separated")
      ->delimiter(',');
  app.add_option("--resolution", options->resolution,
                 "height and width in pixels, 480x832 (default: the catalogue's)");
  app.add_option("--frames", options->frames, "of a video (default: the catalogue's)");
  app.add_option("--steps", options->cost.steps, "denoising steps a video (default 50)");
  app.add_option(
      "--guidance", options->cost.guidance,
      "forwards per step: 2 with classifier-free guidance, 1 without (default: usual for the model)");
  app.add_option("--batch", options->cost.batch, "videos at once (default 1)");
  app.add_flag("--sweep", options->sweep, "batch 1 to 8");
  app.add_option("--device", options->device,
                 "GPU to plan for: sm80, sm86, sm89, sm90 (default), sm100, sm120");
  app.add_option("--price", options->cost.price_per_hour, "of one GPU an hour, in any currency");
  app.add_option("--gpus", options->cost.gpus,
                 "that work at the same time, each on its own videos (default 1)");
  app.add_option("--measured", options->measured, "a document of ingot bench --json, in place of estimates");
  app.add_flag("--json", options->json, "print one JSON document (schema ingot.cost/1)");
  return [options] { return run(*options); };
}

}  // namespace

const Command cost_command = {"cost", "seconds and money per video and per thousand, before and after fusing",
                              setup};

}  // namespace ingot::cli
