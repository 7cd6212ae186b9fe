// SPDX-License-Identifier: Apache-2.0
//
// Every shape of the catalogue at 1, 77, 512 and 2048 tokens, in f32 and bf16: is the planner's choice the
// fastest, is it ever slower than unfused, is the forecast right?
//
//   bench_mlp_catalogue [DTYPE | TOKENS | MODEL ...]     none of a kind: all of it
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "contenders.h"
#include "profile/calibrate.h"

namespace {

using namespace ingot;
using bench_mlp::middle;
using bench_mlp::over;
using bench_mlp::Samples;

struct Request {
  std::vector<DType> dtypes;
  std::vector<std::int64_t> tokens;
  std::vector<KnownModel> models;
};

/// Arguments in any order; false: one is none of the three kinds.
bool parse(int argc, char** argv, Request& request) {
  for (int i = 1; i < argc; ++i) {
    if (const long long tokens = std::atoll(argv[i]); tokens > 0) {
      request.tokens.push_back(tokens);
    } else if (const auto dtype = parse_dtype(argv[i])) {
      request.dtypes.push_back(*dtype);
    } else if (const auto model = find_model(argv[i])) {
      request.models.push_back(*model);
    } else {
      fmt::print("{}\n", model.error().message);
      return false;
    }
  }
  if (request.dtypes.empty()) request.dtypes = {DType::f32, DType::bf16};
  if (request.tokens.empty()) request.tokens = {1, 77, 512, 2048};
  if (request.models.empty()) request.models = known_models();
  return true;
}

struct Score {
  int cases = 0, best = 0, never_slower = 0, forecast = 0, forecast_stored = 0;
  double worst_slower = 0;
};

GateLayout layout_of(const KnownModel& model) {
  return model.gate.starts_with("packed") ? GateLayout::packed_value_first : GateLayout::separate;
}

bool within(double ratio) {
  return std::abs(ratio - 1) <= 0.30;
}

/// Time of rung `index` over each one's.
std::array<double, 3> over_each(const Samples& samples, std::size_t index) {
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = over(samples[index], samples[i]);
  return out;
}

class Catalogue {
 public:
  Catalogue(const DeviceDescription& stored, profile::CpuCalibration& calibration, profile::Timer& timer)
      : stored_(stored),
        calibration_(calibration),
        timer_(timer),
        engine_(Engine::open({.description = stored}).value()) {}

  void run(DType dtype, const Request& request);

 private:
  void measure(const KnownModel& model, const Mlp& mlp, std::int64_t tokens, Score& score);
  double forecast_now(const Plan& choice, const PlanOptions& options);
  double beside_forecasts(const bench_mlp::Contender& chosen, const Plan& choice, PlanOptions options);

  const DeviceDescription& stored_;
  profile::CpuCalibration& calibration_;
  profile::Timer& timer_;
  Engine engine_;
};

/// Seconds that the chosen rung is forecast to take at the speed the machine has now.
double Catalogue::forecast_now(const Plan& choice, const PlanOptions& options) {
  const auto device = calibration_.refresh(stored_).value();
  return 1e-6 * plan(choice.mlp, choice.tokens, device, options)->chosen.forecast_us;
}

/// Forecast over time: rates measured right before and after a few runs, again and again, and the middle one
/// of the ratios. The speed of a shared machine changes twofold within seconds, for all rungs alike.
double Catalogue::beside_forecasts(const bench_mlp::Contender& chosen, const Plan& choice,
                                   PlanOptions options) {
  options.rung = choice.chosen.rung;
  std::vector<double> ratios;
  double before = forecast_now(choice, options);
  const int rounds = before > 0.3 ? 3 : 5;
  for (int round = 0; round < rounds; ++round) {
    const auto samples = profile::sample({&chosen.work, 1}, timer_,
                                         {.samples = 5,
                                          .least_seconds = 0.02,
                                          .most_seconds = 0.1,
                                          .warm_up_seconds = 0.02,
                                          .warm_up_runs = before > 0.1 ? 0 : 10});
    const double took = middle(samples->front());
    const double after = forecast_now(choice, options);
    ratios.push_back((before + after) / 2 / took);
    before = after;
  }
  return middle(std::move(ratios));
}

void Catalogue::measure(const KnownModel& model, const Mlp& mlp, std::int64_t tokens, Score& score) {
  const GateLayout layout = layout_of(model);
  const PlanOptions options{.numerics = {}, .rung = {}, .packed = layout != GateLayout::separate};
  const auto contenders = bench_mlp::Contenders::make(engine_, mlp, tokens, layout,
                                                      {Rung::unfused, Rung::epilogue, Rung::one_pass});
  const auto choice = plan(mlp, tokens, stored_, options);
  if (!contenders || !choice) return;
  // Slow ones are warm from their check, and are timed three times at least.
  const double seconds = choice->chosen.forecast_us * 1e-6;
  Samples samples = contenders->samples({.samples = 9,
                                         .least_seconds = 0.1,
                                         .most_seconds = std::max(1.0, 2.5 * seconds),
                                         .warm_up_seconds = 0.05,
                                         .warm_up_runs = seconds > 0.1 ? 0 : 2});
  const std::string chosen(to_string(choice->chosen.rung));
  const auto index = static_cast<std::size_t>(&contenders->named(chosen) - contenders->all().data());
  std::array<double, 3> ratios = over_each(samples, index);
  // Near the limits more samples decide.
  if (ratios[0] > 1.02 || *std::max_element(ratios.begin(), ratios.end()) > 1.04) {
    samples = contenders->samples(
        {.samples = 41, .least_seconds = 0.4, .most_seconds = std::max(4.0, 5.5 * seconds)});
    ratios = over_each(samples, index);
  }
  std::array<double, 3> us{};
  for (std::size_t i = 0; i < us.size(); ++i) us[i] = 1e6 * middle(samples[i]);
  const double slower = ratios[0] - 1, behind = *std::max_element(ratios.begin(), ratios.end());
  const double now = beside_forecasts(contenders->named(chosen), *choice, options);
  const double stored = choice->chosen.forecast_us / us[index];
  const bool best = behind <= 1.05, never_slower = slower <= 0.03;
  ++score.cases;
  score.best += best;
  score.never_slower += never_slower;
  score.forecast += within(now);
  score.forecast_stored += within(stored);
  score.worst_slower = std::max(score.worst_slower, slower);
  fmt::print("{:<18} {:>5} {:>10.2f} {:>10.2f} {:>10.2f}  {:<8} {:>6.1f} % {:>6.2f} {:>6.2f}{}{}{}\n",
             model.name, tokens, us[0] * 1e-3, us[1] * 1e-3, us[2] * 1e-3, chosen, slower * 100, now, stored,
             best ? "" : "  NOT BEST", never_slower ? "" : "  SLOWER", within(now) ? "" : "  FORECAST OFF");
  std::fflush(stdout);
}

void Catalogue::run(DType dtype, const Request& request) {
  fmt::print("\n{} on {}, {} threads ({})\n", to_string(dtype), stored_.name, stored_.cpu.threads,
             stored_.source);
  fmt::print(
      "medians in ms; slower: than unfused, by pairs; forecast over time: rates of the moment, and as "
      "stored\n");
  fmt::print("{:<18} {:>5} {:>10} {:>10} {:>10}  {:<8} {:>8} {:>6} {:>6}\n", "model", "tokens", "unfused",
             "epilogue", "one_pass", "chosen", "slower", "now", "stored");
  Score score;
  std::vector<Mlp> seen;
  for (const KnownModel& model : request.models) {
    Mlp mlp = model.mlp;
    mlp.dtype = dtype;
    if (std::find(seen.begin(), seen.end(), mlp) != seen.end()) continue;
    seen.push_back(mlp);
    for (const std::int64_t tokens : request.tokens) measure(model, mlp, tokens, score);
  }
  const auto share = [&](int count, double goal) {
    return fmt::format("{:>2} of {}, {}", count, score.cases,
                       bench_mlp::at_least(static_cast<double>(count) / std::max(1, score.cases), goal));
  };
  fmt::print("\nchoice fastest or within 5 %           {}\n", share(score.best, 0.90));
  fmt::print("choice not slower than unfused by 3 %  {}, worst {:.1f} %\n", share(score.never_slower, 1.0),
             score.worst_slower * 100);
  fmt::print("forecast within 30 %, rates of now     {}\n", share(score.forecast, 0.80));
  fmt::print("forecast within 30 %, rates as stored  {:>2} of {}\n", score.forecast_stored, score.cases);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  if (!parse(argc, argv, request)) return 2;
  const auto stored = describe_cpu();
  if (!stored) {
    fmt::print("{}\n", stored.error().message);
    return 1;
  }
  profile::SteadyTimer timer;
  auto calibration = profile::CpuCalibration::create(*stored, timer);
  if (!calibration) {
    fmt::print("{}\n", calibration.error().message);
    return 1;
  }
  Catalogue catalogue(*stored, *calibration, timer);
  for (const DType dtype : request.dtypes) catalogue.run(dtype, request);
  return 0;
}
