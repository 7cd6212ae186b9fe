// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/progress_bar.h"
#include "cli/shape_options.h"
#include "cli/tune.h"
#include "ingot/cache.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

struct Options {
  ShapeOptions shape;
  std::vector<std::int64_t> tokens;
  std::string device = "cuda";
  int threads = 0;
  bool tune = false;
  bool json = false;
};

template <class Outcome>
Result<int> show(const Result<Outcome>& outcome, bool json) {
  if (!outcome) return outcome.error();
  const std::string document =
      json ? report::json(*outcome)
           : report::text(*outcome, {.color = color_output(), .width = output_width()});
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

/// Measures the MLP with each number of tokens on the GPU, which must be here.
Result<void> tune_here(const Options& options, const DeviceOptions& where, const Shape& shape) {
  if (options.tokens.empty())
    return Error{ErrorCode::invalid_argument, "--tune: give --tokens, every number is measured on its own"};
  const auto device = engine_options(where);
  if (!device) return device.error();
  const auto engine = Engine::open(*device);
  if (!engine) return engine.error();
  std::vector<Shape> shapes(options.tokens.size(), shape);
  for (std::size_t i = 0; i < shapes.size(); ++i) shapes[i].tokens = options.tokens[i];
  return tune_all(*engine, shapes, {});
}

Result<int> run_warm(const Options& options) {
  ShapeOptions with_tokens = options.shape;
  with_tokens.tokens = options.tokens.empty() ? 1 : options.tokens.front();  // the others are checked below
  const auto shape = resolve(with_tokens);
  if (!shape) return shape.error();
  DeviceOptions where;
  where.device = options.device;
  const auto device = describe(where);
  if (!device) return device.error();
  if (device->kind != DeviceKind::cuda)
    return Error{ErrorCode::invalid_argument, "--device: kernels are compiled for GPUs only"};
  if (options.tune) {
    if (auto tuned = tune_here(options, where, *shape); !tuned) return tuned.error();
  }
  auto bar = std::make_optional<ProgressBar>();
  WarmOptions warming{.gpu = device->gpu,
                      .device = is_gpu_here(where) ? device->name : std::string(),
                      .tokens = options.tokens,
                      .numerics = shape->numerics,
                      .layout = shape->layout,
                      .threads = options.threads};
  warming.progress = [&bar](double fraction, const std::string& kernel) { bar->show(fraction, kernel); };
  const auto warmed = warm_cache(shape->mlp, warming);
  bar.reset();  // before anything else is written
  return show(warmed, options.json);
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->failure_message(CLI::FailureMessage::simple);
    sub->add_flag("--json", options->json, "print one JSON document (schema ingot.cache/1)");
    return sub;
  };
  const CLI::App* list = add("list", "the compiled kernels, when each was last used, and what they take");
  const CLI::App* clear = add("clear", "remove every compiled kernel");
  CLI::App* warm = add("warm", "compile ahead what the planner takes for an MLP; no GPU is needed");
  options->shape.add_to(*warm);
  warm->remove_option(warm->get_option("--tokens"));
  warm->add_option("--tokens", options->tokens,
                   "rows of the input, several with commas (default: any number)")
      ->delimiter(',');
  warm->add_option("--device", options->device,
                   "cuda: this machine's GPU (the default); or any of sm80, sm86, sm89, sm90, sm100, sm120");
  warm->add_flag("--tune", options->tune,
                 "measure the best tiles first, and keep them in the cache for later runs (a GPU of this "
                 "machine, every number of --tokens)");
  warm->add_option("--threads", options->threads, "compilations at once (default: one per processor)");
  return [options, list, clear]() -> Result<int> {
    if (list->parsed()) return show(list_cache(), options->json);
    if (clear->parsed()) return show(clear_cache(), options->json);
    return run_warm(*options);
  };
}

}  // namespace

const Command cache_command = {"cache", "list, warm or clear the compiled kernels", setup};

}  // namespace ingot::cli
