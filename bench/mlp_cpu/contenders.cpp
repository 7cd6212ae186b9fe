// SPDX-License-Identifier: Apache-2.0
#include "contenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cpu/reference.h"

namespace ingot::bench_mlp {

double middle(std::vector<double> values) {
  return profile::summarize(std::move(values)).median_us * 1e-6;
}

double over(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t run = 0; run < std::min(a.size(), b.size()); ++run) ratios.push_back(a[run] / b[run]);
  return middle(std::move(ratios));
}

std::unique_ptr<Contenders> Contenders::make(const Engine& engine, const Mlp& mlp, std::int64_t tokens,
                                             GateLayout layout, const std::vector<Rung>& rungs) {
  auto problem = profile::Problem::make(mlp, tokens, layout, 1);
  if (!problem) {
    fmt::print("{}\n", problem.error().message);
    return nullptr;
  }
  std::unique_ptr<Contenders> contenders(new Contenders(std::move(problem).value()));
  for (const Rung rung : rungs) {
    if (!contenders->add(engine, rung)) return nullptr;
  }
  return contenders;
}

bool Contenders::add(const Engine& engine, Rung rung) {
  const Mlp& mlp = problem_.mlp();
  const std::int64_t tokens = problem_.tokens();
  auto prepared = engine.prepare(mlp, problem_.weights(), {.numerics = {}, .rung = rung});
  if (!prepared) {
    fmt::print("{}: {}\n", to_string(rung), prepared.error().message);
    return false;
  }
  const std::size_t bytes = prepared->workspace_bytes(tokens);
  auto y = std::make_unique<cpu::Buffer<char>>(
      cpu::Buffer<char>::allocate(static_cast<std::size_t>(tokens * mlp.dim) * size_of(mlp.dtype)));
  auto workspace = std::make_unique<cpu::Buffer<char>>(cpu::Buffer<char>::allocate(bytes));
  const RunArguments arguments{.tokens = tokens,
                               .x = problem_.x(),
                               .x_row_stride = mlp.dim,
                               .y = y->data(),
                               .y_row_stride = mlp.dim,
                               .workspace = workspace->data(),
                               .workspace_bytes = bytes,
                               .stream = {}};
  memory_.push_back(std::move(y));
  memory_.push_back(std::move(workspace));

  const auto plan = prepared->plan(tokens);
  const auto ran = prepared->run(arguments);
  const auto pool = cpu::ThreadPool::create(engine.device().cpu.threads);
  const auto reference =
      cpu::reference(mlp, problem_.weights(), problem_.x(), mlp.dim, cpu::spread_rows(tokens, 4), **pool);
  if (!plan || !ran || !reference) {
    fmt::print("{}: cannot run\n", to_string(rung));
    return false;
  }
  const cpu::Verdict verdict = cpu::judge(mlp, *reference, rung, arguments.y, mlp.dim);
  if (!verdict.ok) fmt::print("{}: WRONG, {}\n", to_string(rung), verdict.reason);
  all_.push_back({std::string(to_string(rung)),
                  [mlp = std::move(prepared).value(), arguments] { return mlp.run(arguments); },
                  plan->chosen.forecast_us, verdict.ok});
  return true;
}

Contender& Contenders::named(const std::string& name) {
  return *std::find_if(all_.begin(), all_.end(), [&](const Contender& c) { return c.name == name; });
}

Samples Contenders::samples(const profile::SamplingLimits& limits) const {
  std::vector<profile::Work> works;
  for (const Contender& contender : all_) works.push_back(contender.work);
  profile::SteadyTimer timer;
  return profile::sample(works, timer, limits).value();
}

std::string at_least(double value, double figure) {
  return fmt::format("{:.2f} (at least {:.2f}){}", value, figure, value >= figure ? "" : "  MISSED");
}
std::string at_most(double value, double figure) {
  return fmt::format("{:.2f} (at most {:.2f}){}", value, figure, value <= figure ? "" : "  MISSED");
}

}  // namespace ingot::bench_mlp
