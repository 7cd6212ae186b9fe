// SPDX-License-Identifier: Apache-2.0
//
// Measured tiles: those with the best forecasts, each pair as the whole MLP, since what two kernels leave in
// the cache and how they overlap is part of their time; and beside the best pairs the kernels of a whole MLP.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <optional>
#include <system_error>
#include <thread>

#include "profile/gpu_ladder.h"
#include "profile/ladder_parts.h"
#include "profile/sampling.h"

namespace ingot::profile {

namespace {

constexpr std::size_t tiles_each = 6;  // of a linear, or of a whole MLP, by forecast
constexpr std::size_t best_each = 2;   // of a linear, that meet in the second round
constexpr int samples = 15;
// A time within this of the forecasts' choice does not take its place: long kernels' times differ as much
// from one replay to the next, with the card's clock.
constexpr double worth_a_change = 0.985;

/// Tiles, and their time.
struct Trial {
  TrialTiles tiles;
  double us = 0;  ///< 0: it does not run, or is wrong
};

/// The MLP and its linears, to look up and keep tiles by. Whether the gate lies first is not told apart.
struct Specs {
  MlpSpec whole;
  LinearSpec first, second;
  std::int64_t tokens = 0;  ///< representative of the class

  Specs(const Problem& problem, Numerics numerics)
      : whole(mlp_spec(problem.mlp(), true, numerics)),
        first(first_linear(problem.mlp(), true, numerics)),
        second(second_linear(problem.mlp(), numerics)),
        tokens(token_class(problem.tokens()).representative) {}
  TunedChoices tuned(const TrialTiles& tiles, double us) const {
    if (tiles.whole) return {.tiles = {}, .mlps = {{whole, tokens, tiles.whole, us}}};
    return {.tiles = {{first, tokens, tiles.first, us}, {second, tokens, tiles.second, us}}, .mlps = {}};
  }
};

class Tuner {
 public:
  Tuner(std::shared_ptr<const gpu::Device> device, const DeviceDescription& description,
        const Problem& problem, const PrepareTiles& prepare, const BenchOptions& options)
      : device_(std::move(device)),
        description_(description),
        problem_(problem),
        prepare_(prepare),
        options_(options),
        specs_(problem, options.numerics) {}

  Result<Tuned> run();

 private:
  Prepare prepare(const Trial& trial) const {
    return [this, &trial](const Weights& weights) { return prepare_(trial.tiles, weights); };
  }
  void compile(const GpuStage& stage, const std::vector<Trial>& trials) const;
  Result<void> measure(GpuStage& stage, const cpu::Reference& reference, std::vector<Trial>& trials,
                       double from, double to) const;
  /// The best of each linear's tiles beside the other's favourite, met, and the two favourites, which are
  /// `forecast`, too.
  Result<std::vector<Trial>> best_pairs(GpuStage& stage, const cpu::Reference& reference, int& measured,
                                        Trial& forecast) const;
  Tuned tuned(const std::vector<Trial>& order) const;
  void tell(double fraction, const std::string& what) const {
    if (options_.progress) options_.progress(fraction, what);
  }

  std::shared_ptr<const gpu::Device> device_;
  const DeviceDescription& description_;
  const Problem& problem_;
  const PrepareTiles& prepare_;
  const BenchOptions& options_;
  Specs specs_;
};

/// All kernels side by side; who fails here fails again, with its reason, when it is measured.
void Tuner::compile(const GpuStage& stage, const std::vector<Trial>& trials) const {
  std::vector<std::future<void>> running;
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (i >= most) running[i - most].wait();
    const auto work = [this, &stage, &trial = trials[i]] {
      if (const auto prepared = prepare(trial)(stage.weights(0)))
        static_cast<void>(prepared->warm(problem_.tokens()).ok());
    };
    try {
      running.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {
      return;  // no threads to be had: each compiles when it is measured
    }
  }
}

Result<void> Tuner::measure(GpuStage& stage, const cpu::Reference& reference, std::vector<Trial>& trials,
                            double from, double to) const {
  tell(from, fmt::format("compiling {} choices of tiles", trials.size()));
  compile(stage, trials);
  std::vector<Contender> contenders;
  std::vector<Trial*> of;
  std::optional<Error> wrong;  // why one of them does not run; another may
  for (Trial& trial : trials) {
    auto prepared = stage.prepare(prepare(trial));
    if (!prepared) {
      wrong = prepared.error();
      continue;
    }
    contenders.push_back(std::move(prepared).value());
    of.push_back(&trial);
  }
  if (auto ok = stage.reserve(contenders); !ok) return ok;
  std::vector<Work> works;
  std::vector<Trial*> timed;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    RungResult result;
    if (auto ok = stage.check(contenders[i], reference,
                              of[i]->tiles.whole ? Rung::one_kernel : Rung::two_kernel, result);
        !ok) {
      wrong = ok.error();
      continue;
    }
    if (!result.ok) continue;
    if (auto ok = stage.capture(contenders[i]); !ok) return ok;
    works.push_back(stage.replays(contenders[i], 1));
    timed.push_back(of[i]);
  }
  if (works.empty() && wrong) return *wrong;
  auto timer = StageTimer::make(stage);
  if (!timer) return timer.error();
  const auto measured =
      sample(works, **timer,
             {.samples = samples, .most_seconds = options_.most_seconds, .shuffle = options_.seed + 3},
             [&](double fraction) { tell(from + (to - from) * fraction, "timing tiles"); });
  if (!measured) return measured.error();
  for (std::size_t i = 0; i < timed.size(); ++i)
    timed[i]->us = summarize((*measured)[i]).median_us / stage.copies();
  return {};
}

/// The trials that run, fastest first.
std::vector<Trial> ranked(std::vector<Trial> trials) {
  std::erase_if(trials, [](const Trial& trial) { return trial.us <= 0; });
  std::ranges::stable_sort(trials, {}, &Trial::us);
  return trials;
}

bool same(const TrialTiles& a, const TrialTiles& b) {
  if (a.whole || b.whole) return a.whole && b.whole && label(*a.whole) == label(*b.whole);
  return label(a.first) == label(b.first) && label(a.second) == label(b.second);
}

/// Of the ranked trials, brings what the forecasts chose before its own kind (two kernels, or one), unless
/// the fastest of them is worth a change.
void prefer(std::vector<Trial>& order, const TrialTiles& forecast) {
  const auto at =
      std::ranges::find_if(order, [&](const Trial& trial) { return same(trial.tiles, forecast); });
  const auto fastest = std::ranges::find_if(
      order, [&](const Trial& trial) { return trial.tiles.whole.has_value() == forecast.whole.has_value(); });
  if (at != order.end() && fastest->us > worth_a_change * at->us) std::rotate(fastest, at, at + 1);
}

Result<std::vector<Trial>> Tuner::best_pairs(GpuStage& stage, const cpu::Reference& reference, int& measured,
                                             Trial& forecast) const {
  const GpuDescription& gpu = description_.gpu;
  const auto firsts = rank_kernels(specs_.first, problem_.tokens(), gpu, tiles_each);
  const auto seconds = rank_kernels(specs_.second, problem_.tokens(), gpu, tiles_each);
  if (firsts.empty() || seconds.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("no kernel for {} on {}", to_string(problem_.mlp()), description_.name)};
  }
  const auto pair_of = [&](const KernelTile& first, const KernelTile& second) {
    return Trial{{first, fit_behind(specs_.first, first, second)}};
  };
  std::vector<Trial> trials;
  trials.reserve(firsts.size() + seconds.size());
  for (const KernelTile& tile : firsts) trials.push_back(pair_of(tile, seconds.front()));
  for (std::size_t i = 1; i < seconds.size(); ++i) trials.push_back(pair_of(firsts.front(), seconds[i]));
  if (auto ok = measure(stage, reference, trials, 0, 0.6); !ok) return ok.error();
  measured += static_cast<int>(trials.size());
  forecast = trials.front();
  const auto end_of_firsts = trials.begin() + static_cast<std::ptrdiff_t>(firsts.size());
  std::vector<Trial> by_second(end_of_firsts, trials.end());
  by_second.insert(by_second.begin(), trials.front());  // both favourites
  std::vector<Trial> by_first = ranked({trials.begin(), end_of_firsts});
  by_second = ranked(by_second);
  by_first.resize(std::min(by_first.size(), best_each));
  by_second.resize(std::min(by_second.size(), best_each));
  std::vector<Trial> pairs;
  for (const Trial& one : by_first) {
    for (const Trial& two : by_second) pairs.push_back(pair_of(one.tiles.first, two.tiles.second));
  }
  if (forecast.us > 0 &&
      std::ranges::none_of(pairs, [&](const Trial& pair) { return same(pair.tiles, forecast.tiles); }))
    pairs.push_back({forecast.tiles});
  return pairs;
}

Result<Tuned> Tuner::run() {
  const gpu::CurrentContext current(*device_);
  if (auto ok = current.ready(); !ok) return ok.error();
  auto stage = GpuStage::make(device_, problem_, options_.copies);
  if (!stage) return stage.error();
  const auto reference =
      reference_of(problem_, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  if (!reference) return reference.error();
  int measured = 0;
  Trial forecast;
  auto pairs = best_pairs(**stage, *reference, measured, forecast);
  if (!pairs) return pairs.error();
  std::vector<Trial> finals = std::move(pairs).value();
  const std::size_t first_whole = finals.size();
  for (const MlpTile& tile : rank_mlp_kernels(specs_.whole, problem_.tokens(), description_.gpu, tiles_each))
    finals.push_back({{.first = {}, .second = {}, .whole = tile}});
  if (!finals.empty()) {
    if (auto ok = measure(**stage, *reference, finals, 0.6, 1); !ok) return ok.error();
  }
  measured += static_cast<int>(finals.size());
  // What the forecasts would have taken.
  const bool forecast_whole =
      choose_route(problem_.mlp(), problem_.tokens(), description_.gpu, {.numerics = options_.numerics})
          .takes_one;
  auto order = ranked(finals);
  double forecast_us = forecast.us;
  prefer(order, forecast.tiles);
  if (first_whole < finals.size()) {
    if (forecast_whole) forecast_us = finals[first_whole].us;
    prefer(order, finals[first_whole].tiles);
  }
  if (order.empty()) {
    return Error{ErrorCode::check_failed, fmt::format("no choice of tiles runs {} right on {}",
                                                      to_string(problem_.mlp()), description_.name)};
  }
  Tuned found = tuned(order);
  // It is known that one kernel was possible, and lost.
  if (first_whole < finals.size() && !order.front().tiles.whole)
    found.choices.mlps.push_back({specs_.whole, specs_.tokens, std::nullopt, order.front().us});
  found.tuning.forecast_us = forecast_us;
  found.tuning.measured = measured;
  return found;
}

/// The fastest of all, and the fastest pair beside it. `order`: fastest first.
Tuned Tuner::tuned(const std::vector<Trial>& order) const {
  const Trial& best = order.front();
  Tuned found;
  found.tuning.time_us = best.us;
  found.choices = specs_.tuned(best.tiles, best.us);
  if (best.tiles.whole) {
    const auto pair = std::ranges::find_if(order, [](const Trial& trial) { return !trial.tiles.whole; });
    if (pair != order.end()) found.choices.tiles = specs_.tuned(pair->tiles, pair->us).tiles;
    found.tuning.kernels = {
        {"mlp", label(*best.tiles.whole),
         ingot::forecast_us(specs_.whole, *best.tiles.whole, problem_.tokens(), description_.gpu), true}};
    return found;
  }
  for (const TunedTile& tile : found.choices.tiles) {
    found.tuning.kernels.push_back(
        {found.tuning.kernels.empty() ? "fc1" : "fc2", label(tile.tile),
         ingot::forecast_us(tile.linear, tile.tile, problem_.tokens(), description_.gpu), true});
  }
  return found;
}

}  // namespace

Result<Tuned> tune_tiles(const std::shared_ptr<const gpu::Device>& device,
                         const DeviceDescription& description, const Problem& problem,
                         const PrepareTiles& prepare, const BenchOptions& options) {
  return Tuner(device, description, problem, prepare, options).run();
}

Result<Tuned> tune_gpu(const std::shared_ptr<const gpu::Gpu>& gpu, const Problem& problem,
                       const BenchOptions& options) {
  const Specs specs(problem, options.numerics);
  // A GPU on which these tiles are the measured ones takes them.
  const auto prepare = [&](const TrialTiles& tiles, const Weights& weights) -> Result<PreparedMlp> {
    const auto trial = std::make_shared<gpu::Gpu>(*gpu);
    trial->tuned = TuningTable("", "");
    trial->tuned.replace(specs.tuned(tiles, 1));
    const Rung rung = tiles.whole ? Rung::one_kernel : Rung::two_kernel;
    auto executor = gpu::prepare(trial, problem.mlp(), weights, {.numerics = options.numerics, .rung = rung});
    if (!executor) return executor.error();
    return PreparedMlp(std::move(executor).value());
  };
  return tune_tiles(gpu->device, gpu->description, problem, prepare, options);
}

}  // namespace ingot::profile
