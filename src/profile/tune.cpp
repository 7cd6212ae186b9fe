// SPDX-License-Identifier: Apache-2.0
//
// Measured tiles: those with the best forecasts, each pair as the whole MLP, since what two kernels leave in
// the cache and how they overlap is part of their time.
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

constexpr std::size_t tiles_each = 6;  // of a linear, by forecast
constexpr std::size_t best_each = 2;   // of a linear, that meet in the second round
constexpr int samples = 15;

/// Tiles of both linears, and their time.
struct Trial {
  KernelTile first, second;
  double us = 0;  ///< 0: it does not run, or is wrong
};

/// Both linears of the MLP, to look up and keep tiles by. Whether the gate lies first is not told apart.
struct Linears {
  LinearSpec first, second;
  std::int64_t tokens = 0;  ///< representative of the class

  Linears(const Problem& problem, Numerics numerics)
      : first(first_linear(problem.mlp(), true, numerics)),
        second(second_linear(problem.mlp(), numerics)),
        tokens(token_class(problem.tokens()).representative) {}
  std::vector<TunedTile> tuned(const KernelTile& one, const KernelTile& two, double us) const {
    return {{first, tokens, one, us}, {second, tokens, two, us}};
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
        linears_(problem, options.numerics) {}

  Result<TunedPair> run();

 private:
  Prepare prepare(const Trial& trial) const {
    return [this, &trial](const Weights& weights) { return prepare_(trial.first, trial.second, weights); };
  }
  void compile(const GpuStage& stage, const std::vector<Trial>& trials) const;
  Result<void> measure(GpuStage& stage, const cpu::Reference& reference, std::vector<Trial>& trials,
                       double from, double to) const;
  void tell(double fraction, const std::string& what) const {
    if (options_.progress) options_.progress(fraction, what);
  }

  std::shared_ptr<const gpu::Device> device_;
  const DeviceDescription& description_;
  const Problem& problem_;
  const PrepareTiles& prepare_;
  const BenchOptions& options_;
  Linears linears_;
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
  tell(from, fmt::format("compiling {} pairs of tiles", trials.size()));
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
    if (auto ok = stage.check(contenders[i], reference, Rung::two_kernel, result); !ok) {
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
             [&](double fraction) { tell(from + (to - from) * fraction, "timing pairs of tiles"); });
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

Result<TunedPair> Tuner::run() {
  const gpu::CurrentContext current(*device_);
  if (auto ok = current.ready(); !ok) return ok.error();
  const GpuDescription& gpu = description_.gpu;
  const auto firsts = rank_kernels(linears_.first, problem_.tokens(), gpu, tiles_each);
  const auto seconds = rank_kernels(linears_.second, problem_.tokens(), gpu, tiles_each);
  if (firsts.empty() || seconds.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("no kernel for {} on {}", to_string(problem_.mlp()), description_.name)};
  }
  auto stage = GpuStage::make(device_, problem_, options_.copies);
  if (!stage) return stage.error();
  const auto reference =
      reference_of(problem_, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  if (!reference) return reference.error();

  // Each linear's tiles beside the other's favourite; then the best of both.
  std::vector<Trial> by_first, by_second;
  for (const KernelTile& tile : firsts) by_first.push_back({tile, seconds.front()});
  for (const KernelTile& tile : seconds) by_second.push_back({firsts.front(), tile});
  std::vector<Trial> trials(by_first);
  trials.insert(trials.end(), by_second.begin() + 1, by_second.end());
  if (auto ok = measure(**stage, *reference, trials, 0, 0.6); !ok) return ok.error();
  const double forecast_us = trials.front().us;
  by_second.front() = trials.front();
  std::copy_n(trials.begin(), by_first.size(), by_first.begin());
  std::copy(trials.begin() + static_cast<std::ptrdiff_t>(by_first.size()), trials.end(),
            by_second.begin() + 1);
  by_first = ranked(by_first);
  by_second = ranked(by_second);
  if (by_first.empty() || by_second.empty()) {
    return Error{ErrorCode::check_failed, fmt::format("no pair of tiles runs {} right on {}",
                                                      to_string(problem_.mlp()), description_.name)};
  }
  by_first.resize(std::min(by_first.size(), best_each));
  by_second.resize(std::min(by_second.size(), best_each));
  std::vector<Trial> finals;
  for (const Trial& one : by_first) {
    for (const Trial& two : by_second) finals.push_back({one.first, two.second});
  }
  if (auto ok = measure(**stage, *reference, finals, 0.6, 1); !ok) return ok.error();
  const auto order = ranked(finals);
  if (order.empty()) return Error{ErrorCode::check_failed, "no pair of tiles ran twice"};
  const Trial& best = order.front();
  TunedPair pair;
  pair.tiles = linears_.tuned(best.first, best.second, best.us);
  pair.tuning.time_us = best.us;
  pair.tuning.forecast_us = forecast_us;
  pair.tuning.measured = static_cast<int>(trials.size() + finals.size());
  for (const TunedTile& tuned : pair.tiles) {
    pair.tuning.kernels.push_back({pair.tuning.kernels.empty() ? "fc1" : "fc2", label(tuned.tile),
                                   ingot::forecast_us(tuned.linear, tuned.tile, problem_.tokens(), gpu),
                                   true});
  }
  return pair;
}

}  // namespace

Result<TunedPair> tune_pairs(const std::shared_ptr<const gpu::Device>& device,
                             const DeviceDescription& description, const Problem& problem,
                             const PrepareTiles& prepare, const BenchOptions& options) {
  return Tuner(device, description, problem, prepare, options).run();
}

Result<TunedPair> tune_gpu(const std::shared_ptr<const gpu::Gpu>& gpu, const Problem& problem,
                           const BenchOptions& options) {
  const Linears linears(problem, options.numerics);
  // A GPU on which these tiles are the measured ones takes them.
  const auto prepare = [&](const KernelTile& first, const KernelTile& second,
                           const Weights& weights) -> Result<PreparedMlp> {
    const auto trial = std::make_shared<gpu::Gpu>(*gpu);
    trial->tuned = TuningTable("", "");
    for (const TunedTile& tuned : linears.tuned(first, second, 1)) trial->tuned.add(tuned);
    auto executor =
        gpu::prepare(trial, problem.mlp(), weights, {.numerics = options.numerics, .rung = Rung::two_kernel});
    if (!executor) return executor.error();
    return PreparedMlp(std::move(executor).value());
  };
  return tune_pairs(gpu->device, gpu->description, problem, prepare, options);
}

}  // namespace ingot::profile
