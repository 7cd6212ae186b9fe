// SPDX-License-Identifier: Apache-2.0
//
// Every shape of the catalogue at 1, 77, 512 and 2048 tokens: is the planner's choice the fastest, is it ever
// slower than unfused, is the forecast right?
//
//   bench_mlp_catalogue [DTYPE [TOKENS...]]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "contenders.h"

namespace {

using namespace ingot;

struct Score {
  int cases = 0, best = 0, never_slower = 0, forecast = 0;
  double worst_slower = 0;
};

GateLayout layout_of(const KnownModel& model) {
  return model.gate.starts_with("packed") ? GateLayout::packed_value_first : GateLayout::separate;
}

void measure(const Engine& engine, const KnownModel& model, const Mlp& mlp, std::int64_t tokens,
             Score& score) {
  const auto contenders = bench_mlp::Contenders::make(engine, mlp, tokens, layout_of(model),
                                                      {Rung::unfused, Rung::epilogue, Rung::one_pass});
  if (!contenders) return;
  std::vector<TimeStats> times = contenders->times(
      {.samples = 9, .least_seconds = 0.1, .most_seconds = 1.5, .warm_up_seconds = 0.05, .warm_up_runs = 2});
  const auto choice = plan(mlp, tokens, engine.device(),
                           {.numerics = {}, .rung = {}, .packed = layout_of(model) != GateLayout::separate});
  if (!choice) return;
  const std::string chosen(to_string(choice->chosen.rung));
  const auto index = static_cast<std::size_t>(&contenders->named(chosen) - contenders->all().data());
  // Rungs are compared by their least times: on a shared machine medians of few samples tell of the
  // neighbours.
  std::array<double, 3> us{};
  const auto compare = [&] {
    for (std::size_t i = 0; i < us.size(); ++i) us[i] = times[i].min_us;
  };
  compare();
  // Near the limits more samples decide.
  if (us[index] > 1.02 * us[0] || us[index] > 1.04 * *std::min_element(us.begin(), us.end())) {
    times = contenders->times({.samples = 41, .least_seconds = 0.4, .most_seconds = 4});
    compare();
  }
  const double fastest = *std::min_element(us.begin(), us.end());
  const double slower = us[index] / us[0] - 1, forecast = choice->chosen.forecast_us / times[index].median_us;
  const bool best = us[index] <= 1.05 * fastest, never_slower = slower <= 0.03,
             near = std::abs(forecast - 1) <= 0.30;
  ++score.cases;
  score.best += best;
  score.never_slower += never_slower;
  score.forecast += near;
  score.worst_slower = std::max(score.worst_slower, slower);
  fmt::print("{:<18} {:>5} {:>10.2f} {:>10.2f} {:>10.2f}  {:<8} {:>6.1f} % {:>6.2f}{}{}{}\n", model.name,
             tokens, us[0] * 1e-3, us[1] * 1e-3, us[2] * 1e-3, chosen, slower * 100, forecast,
             best ? "" : "  NOT BEST", never_slower ? "" : "  SLOWER", near ? "" : "  FORECAST OFF");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto dtype = parse_dtype(argc > 1 ? argv[1] : "f32");
  std::vector<std::int64_t> counts;
  for (int i = 2; i < argc; ++i) counts.push_back(std::atoll(argv[i]));
  if (counts.empty()) counts = {1, 77, 512, 2048};
  const auto device = describe_cpu({.threads = 0, .remeasure = true, .warn = {}});
  if (!dtype || !device) {
    fmt::print("{}\n", dtype ? device.error().message : dtype.error().message);
    return 1;
  }
  const Engine engine = Engine::open({.description = *device}).value();
  fmt::print("\n{} on {}, {} threads ({}); least times in ms, f/m: forecast over median\n", to_string(*dtype),
             device->name, device->cpu.threads, device->source);
  fmt::print("{:<18} {:>5} {:>10} {:>10} {:>10}  {:<8} {:>8} {:>6}\n", "model", "tokens", "unfused",
             "epilogue", "one_pass", "chosen", "slower", "f/m");
  Score score;
  std::vector<Mlp> seen;
  for (const KnownModel& model : known_models()) {
    Mlp mlp = model.mlp;
    mlp.dtype = *dtype;
    if (std::find(seen.begin(), seen.end(), mlp) != seen.end()) continue;
    seen.push_back(mlp);
    for (const std::int64_t tokens : counts) measure(engine, model, mlp, tokens, score);
  }
  const auto share = [&](int count) { return static_cast<double>(count) / std::max(1, score.cases); };
  fmt::print("\n{} cases\n", score.cases);
  fmt::print("choice fastest or within 5 %     {}\n", bench_mlp::at_least(share(score.best), 0.90));
  fmt::print("choice not slower than unfused   {}  (worst {:.1f} %, allowed 3 %)\n",
             bench_mlp::at_least(share(score.never_slower), 1.0), score.worst_slower * 100);
  fmt::print("forecast within 30 %             {}\n", bench_mlp::at_least(share(score.forecast), 0.80));
  return 0;
}
