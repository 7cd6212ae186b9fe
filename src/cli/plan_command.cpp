// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include "base/env.h"
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/shape_options.h"
#include "gpu/open.h"
#include "ingot/report.h"
#include "plan/choose.h"

namespace ingot::cli {

namespace {

struct Options {
  ShapeOptions shape;
  DeviceOptions device;
  std::string rung;
  bool json = false;
};

Result<int> run(const Options& options) {
  const auto shape = resolve(options.shape);
  if (!shape) return shape.error();
  PlanOptions planning{
      .numerics = shape->numerics, .rung = {}, .packed = shape->layout != GateLayout::separate};
  if (!options.rung.empty()) {
    const auto rung = parse_rung(options.rung);
    if (!rung) return rung.error();
    planning.rung = *rung;
  }
  const auto device = describe(options.device);
  if (!device) return device.error();
  // As the engine that would run it: what was measured on this GPU comes before the forecasts.
  std::optional<TuningTable> tuned;
  if (is_gpu_here(options.device)) tuned = gpu::load_tuning(base::read_environment(), device->name);
  const auto made = plan(shape->mlp, shape->tokens, *device, planning, tuned.has_value() ? &*tuned : nullptr);
  if (!made) return made.error();
  const std::string document = options.json
                                   ? report::json(*made)
                                   : report::text(*made, {.color = color_output(), .width = output_width()});
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->shape.add_to(app);
  options->device.add_to(app);
  app.add_option("--rung", options->rung, "plan this rung instead of choosing");
  app.add_flag("--json", options->json, "print one JSON document (schema ingot.plan/1)");
  return [options] { return run(*options); };
}

}  // namespace

const Command plan_command = {
    "plan", "how an MLP would run, why, and how long the cost model thinks it takes", setup};

}  // namespace ingot::cli
