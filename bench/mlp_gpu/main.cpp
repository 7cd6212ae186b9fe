// SPDX-License-Identifier: Apache-2.0
//
// ingot_gpu_bench: the ladder of several MLPs on a real GPU, for docs/measured-gpu.md. It links nothing but
// the C library, so that the file alone can be carried to a machine with a GPU; the driver, NVRTC and
// cuBLASLt are found there as the engine finds them. table.py beside it makes the table.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/open.h"
#include "ingot/report.h"
#include "profile/gpu_ladder.h"
#include "shapes.h"

namespace {

using namespace ingot;

constexpr const char* usage =
    "ingot_gpu_bench [SHAPE...] [OPTION...]\n"
    "SHAPE: a name of docs/measured-gpu.md, or NAME:TOKENS:DIM:HIDDEN:ACT[:gated|:packed][:nobias];\n"
    "none: all of that document\n"
    "  --json FILE       also write the results there, after each shape\n"
    "  --cache FOLDER    of compiled kernels and measured tiles (else the environment's)\n"
    "  --rungs A,B       only these rungs\n"
    "  --tune            measure the best tiles first, and keep them\n"
    "  --dtype D         bf16, f16 or f32 (bf16)\n"
    "  --numerics N      match or fast (match)\n"
    "  --copies N        sets of weights and inputs; 0: more than the cache holds three times\n"
    "                    (default: 256 MB worth of them, 48 at most)\n"
    "  --samples N       of each rung, at least (30)\n"
    "  --seconds S       of each rung, at most (1)\n"
    "  --sustained S     of back-to-back replay, three times (0.2)\n"
    "  --seed N          of weights and inputs (1)\n"
    "  --ordinal N       which GPU (0)\n"
    "Exits with 1 when a rung failed its check, 2 for wrong options, 3 when the device failed.\n";

struct Options {
  std::vector<gpu_bench::Shape> shapes;
  BenchOptions bench{.most_seconds = 1};
  DType dtype = DType::bf16;
  std::string json, cache;
  bool tune = false, copies_given = false;
  int ordinal = 0;
};

[[noreturn]] void stop(const Error& error, int code) {
  std::fprintf(stderr, "ingot_gpu_bench: %s\n", error.message.c_str());
  std::exit(code);
}

template <class T>
T take(Result<T> result, int code) {
  if (!result) stop(result.error(), code);
  return std::move(result).value();
}

void parse_rungs(const std::string& names, std::vector<Rung>& rungs) {
  for (std::size_t start = 0; start <= names.size();) {
    const std::size_t comma = std::min(names.find(',', start), names.size());
    rungs.push_back(take(parse_rung(names.substr(start, comma - start)), 2));
    start = comma + 1;
  }
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto value = [&]() -> const char* {
      if (i + 1 >= count) stop({ErrorCode::invalid_argument, name + ": give a value"}, 2);
      return arguments[++i];
    };
    if (!name.starts_with("--")) {
      options.shapes.push_back(take(gpu_bench::parse_shape(name), 2));
    } else if (name == "--json") {
      options.json = value();
    } else if (name == "--cache") {
      options.cache = value();
    } else if (name == "--rungs") {
      parse_rungs(value(), options.bench.rungs);
    } else if (name == "--tune") {
      options.tune = true;
    } else if (name == "--dtype") {
      options.dtype = take(parse_dtype(value()), 2);
    } else if (name == "--numerics") {
      options.bench.numerics = take(parse_numerics(value()), 2);
    } else if (name == "--copies") {
      options.bench.copies = std::max(0, std::atoi(value()));
      options.copies_given = true;
    } else if (name == "--samples") {
      options.bench.samples = std::max(1, std::atoi(value()));
    } else if (name == "--seconds") {
      options.bench.most_seconds = std::max(0.001, std::atof(value()));
    } else if (name == "--sustained") {
      options.bench.sustained_seconds = std::max(0.0, std::atof(value()));
    } else if (name == "--seed") {
      options.bench.seed = std::strtoull(value(), nullptr, 10);
    } else if (name == "--ordinal") {
      options.ordinal = std::atoi(value());
    } else {
      std::fputs(usage, stderr);
      std::exit(2);
    }
  }
  if (options.shapes.empty()) options.shapes = gpu_bench::known_shapes();
  options.bench.least_seconds = std::min(options.bench.least_seconds, options.bench.most_seconds);
  return options;
}

/// As many as the scripts that time the framework take, so that their figures stand beside these.
int usual_copies(const gpu_bench::Shape& shape) {
  return static_cast<int>(std::clamp(std::ceil(256e6 / least_bytes(shape.mlp, shape.tokens)), 1.0, 48.0));
}

}  // namespace

int main(int count, char** arguments) {
  Options options = parse(count, arguments);
  base::Environment environment = base::read_environment();
  if (!options.cache.empty()) environment.ingot_cache = options.cache;
  auto gpu = take(gpu::open(environment, options.ordinal), 3);
  nlohmann::ordered_json document{{"schema", "ingot.gpu_bench/1"},
                                  {"device", gpu->description.name},
                                  {"rows", nlohmann::ordered_json::array()}};
  bool good = true;
  for (gpu_bench::Shape& shape : options.shapes) {
    shape.mlp.dtype = options.dtype;
    BenchOptions& settings = options.bench;
    settings.layout = shape.layout;
    if (!options.copies_given) settings.copies = usual_copies(shape);
    const auto problem =
        take(profile::Problem::make(shape.mlp, shape.tokens, shape.layout, settings.seed), 3);
    nlohmann::ordered_json row{{"name", shape.name}};
    if (options.tune) {
      const auto found = take(profile::tune_gpu(gpu, problem, settings), 3);
      std::string tiles;
      for (const KernelPlan& kernel : found.tuning.kernels)
        tiles += (tiles.empty() ? "" : " + ") + kernel.tile;
      std::printf("%s tuned: %d choices, %.2f us of the forecast one, %.2f us of %s\n", shape.name.c_str(),
                  found.tuning.measured, found.tuning.forecast_us, found.tuning.time_us, tiles.c_str());
      row["tuning"] = {{"choices", found.tuning.measured},
                       {"forecast_us", found.tuning.forecast_us},
                       {"best_us", found.tuning.time_us},
                       {"best", tiles}};
      if (auto kept = gpu::store_tuning(environment, gpu->device->description().name, found.choices); !kept)
        stop(kept.error(), 3);
      gpu = take(gpu::open(environment, options.ordinal), 3);
    }
    const Ladder ladder = take(profile::bench_gpu(gpu, problem, settings), 3);
    std::printf("%s\n%s\n", shape.name.c_str(), report::text(ladder).c_str());
    std::fflush(stdout);
    good = good && ladder.ok();
    row.update(nlohmann::ordered_json::parse(report::json(ladder)));
    document["rows"].push_back(std::move(row));
    if (!options.json.empty()) std::ofstream(options.json) << document.dump(1) << "\n";
  }
  return good ? 0 : 1;
}
