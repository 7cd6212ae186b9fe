// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/publish.h"
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/progress_bar.h"
#include "cli/shape_options.h"
#include "cli/tune.h"
#include "ingot/explain.h"
#include "ingot/page.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

struct Options {
  ShapeOptions shape;
  DeviceOptions device;
  std::string from_trace;
  std::vector<std::string> rungs;
  std::uint64_t seed = 1;
  int samples = 30;
  double seconds = 2;
  double sustained = 0.2;
  int copies = 0;
  std::string html;
  bool tune = false;
  bool json = false;
};

/// An MLP the trace shows, as far as it says enough; otherwise why not.
Result<Shape> shape_of(const MlpRow& row, const ShapeOptions& options) {
  const auto missing = [](const char* what) {
    return Error{ErrorCode::invalid_argument, fmt::format("the trace does not say its {}", what)};
  };
  Result<Shape> common = resolve_without_shape(options);
  if (!common) return common;
  Shape shape = *common;
  if (!row.dim || !row.hidden) return missing("widths");
  if (!row.tokens && !options.tokens) return missing("tokens");
  // "gelu": the form is not recorded; PyTorch's default is the erf form.
  const auto activation = parse_activation(row.activation == "gelu" ? "gelu_erf" : row.activation);
  if (!activation) return activation.error();
  shape.mlp.dim = *row.dim;
  shape.mlp.hidden = *row.hidden;
  shape.mlp.activation = *activation;
  shape.mlp.gated = row.gated;
  shape.mlp.bias = row.bias.value_or(true);
  if (!options.layout && row.gated && row.packed.value_or(false))
    shape.layout = GateLayout::packed_value_first;
  if (!options.dtype && row.dtype) {
    const auto dtype = parse_dtype(*row.dtype);
    if (!dtype) return dtype.error();
    shape.mlp.dtype = *dtype;
  }
  shape.tokens = options.tokens.value_or(row.tokens.value_or(0));
  if (auto ok = validate(shape.mlp, shape.tokens); !ok) return ok.error();
  return shape;
}

/// What the trace's MLPs are, each shape once; those that cannot be benched are warned of.
Result<std::vector<Shape>> shapes_of_trace(const Options& options) {
  Result<trace::Trace> trace = trace::read_file(options.from_trace);
  if (!trace) return trace.error();
  Result<Explanation> explanation = explain(*trace, {});
  if (!explanation) return explanation.error();
  std::vector<Shape> shapes;
  for (const MlpRow& row : explanation->mlps) {
    const auto shape = shape_of(row, options.shape);
    if (!shape) {
      std::fprintf(stderr, "ingot: warning: an MLP (%s) is left out: %s\n", row.activation.c_str(),
                   shape.error().message.c_str());
      continue;
    }
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const Shape& other) {
      return other.mlp == shape->mlp && other.tokens == shape->tokens && other.layout == shape->layout;
    });
    if (!known) shapes.push_back(*shape);
  }
  if (shapes.empty()) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: no MLP to bench", options.from_trace)};
  }
  return shapes;
}

Result<std::vector<Shape>> shapes(const Options& options) {
  if (options.from_trace.empty()) {
    const auto shape = resolve(options.shape);
    if (!shape) return shape.error();
    return std::vector<Shape>{*shape};
  }
  if (options.shape.model || options.shape.dim || options.shape.hidden) {
    return Error{ErrorCode::invalid_argument,
                 "--from-trace takes the shapes from the trace: give it or a shape, not both"};
  }
  return shapes_of_trace(options);
}

Result<BenchOptions> bench_options(const Options& options) {
  BenchOptions out;
  out.seed = options.seed;
  out.samples = options.samples;
  out.most_seconds = options.seconds;
  out.least_seconds = std::min(out.least_seconds, options.seconds);
  out.sustained_seconds = options.sustained;
  out.copies = options.copies;
  if (options.copies < 0) return Error{ErrorCode::invalid_argument, "--copies: give 1 or more"};
  if (!(options.sustained >= 0))
    return Error{ErrorCode::invalid_argument, "--sustained: give 0 or more seconds"};
  if (options.samples < 1) return Error{ErrorCode::invalid_argument, "--samples: give 1 or more"};
  if (!(options.seconds > 0)) return Error{ErrorCode::invalid_argument, "--seconds: give more than 0"};
  for (const std::string& name : options.rungs) {
    const auto rung = parse_rung(name);
    if (!rung) return rung.error();
    out.rungs.push_back(*rung);
  }
  return out;
}

Result<int> run(const Options& options) {
  Result<BenchOptions> settings = bench_options(options);
  if (!settings) return settings.error();
  const auto wanted = shapes(options);
  if (!wanted) return wanted.error();
  const auto device = engine_options(options.device);
  if (!device) return device.error();
  auto engine = Engine::open(*device);
  if (!engine) return engine.error();
  if (options.tune) {
    if (auto tuned = tune_all(*engine, *wanted, *settings); !tuned) return tuned.error();
    engine = Engine::open(*device);  // which reads what was found
    if (!engine) return engine.error();
  }

  std::vector<Ladder> ladders;
  {
    ProgressBar bar;
    settings->progress = [&](double fraction, const std::string& what) {
      const auto total = static_cast<double>(wanted->size());
      bar.show((static_cast<double>(ladders.size()) + fraction) / total, what);
    };
    for (const Shape& shape : *wanted) {
      settings->layout = shape.layout;
      settings->numerics = shape.numerics;
      auto ladder = bench(*engine, shape.mlp, shape.tokens, *settings);
      if (!ladder) return ladder.error();
      ladders.push_back(std::move(ladder).value());
    }
  }

  if (!options.html.empty()) {
    if (Result<void> written = base::publish(options.html, page::html(ladders, options.from_trace)); !written)
      return written.error();
  }
  std::string document;
  if (options.json) {
    document = options.from_trace.empty() ? report::json(ladders.front())
                                          : report::json(options.from_trace, ladders);
  } else {
    for (const Ladder& ladder : ladders) {
      if (!document.empty()) document += '\n';
      document += report::text(ladder, {.color = color_output(), .width = output_width()});
    }
  }
  if (Result<void> printed = print(document); !printed) return printed.error();
  const bool ok =
      std::all_of(ladders.begin(), ladders.end(), [](const Ladder& ladder) { return ladder.ok(); });
  return ok ? 0 : exit_code(ErrorCode::check_failed);
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->shape.add_to(app);
  options->device.add_to(app);
  app.add_option("--from-trace", options->from_trace, "bench every MLP that explain finds in this trace");
  app.add_option(
         "--rungs", options->rungs,
         "only these, comma-separated: matmul_add, unfused, epilogue, two_kernel, one_kernel, one_pass")
      ->delimiter(',');
  app.add_option("--seed", options->seed, "of the random weights and inputs");
  app.add_option("--samples", options->samples,
                 "per rung, at least, unless --seconds end first (default 30)");
  app.add_option("--seconds", options->seconds, "measured time per rung, at most (default 2)");
  app.add_option("--sustained", options->sustained,
                 "GPU: seconds of back-to-back replay, three times per rung (default 0.2)");
  app.add_option("--copies", options->copies,
                 "GPU: sets of weights and inputs (default: more than the cache holds three times)");
  app.add_flag("--tune", options->tune,
               "GPU: measure the best tiles first, and keep them in the cache for later runs");
  app.add_option("--html", options->html, "write a page with a bar for every rung to this file");
  app.add_flag("--json", options->json, "print one JSON document (schema ingot.bench/1)");
  return [options] { return run(*options); };
}

}  // namespace

const Command bench_command = {"bench", "runs an MLP every way there is, proves each right and times it",
                               setup};

}  // namespace ingot::cli
