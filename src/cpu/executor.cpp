// SPDX-License-Identifier: Apache-2.0
#include "cpu/executor.h"

#include <fmt/format.h>

#include "cpu/gemm.h"
#include "cpu/rungs.h"
#include "plan/choose.h"

namespace ingot::cpu {

namespace {

constexpr int most_threads = 1024;

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(std::shared_ptr<const CpuDevice> device, const Mlp& mlp, CpuWeights weights,
              const PlanOptions& options)
      : device_(std::move(device)), mlp_(mlp), weights_(std::move(weights)), options_(options) {}

  const Mlp& mlp() const override { return mlp_; }

  std::size_t workspace_bytes(std::int64_t tokens) const override {
    if (tokens <= 0 || !validate(mlp_, tokens)) return 0;
    const Choice choice = choose(mlp_, tokens, device_->description, options_);
    return layout_of(choice.chosen(), tokens).bytes;
  }

  Result<void> run(const RunArguments& arguments) const override {
    if (auto ok = validate(mlp_, arguments.tokens); !ok) return ok;
    if (arguments.tokens == 0) return {};
    const Choice choice = choose(mlp_, arguments.tokens, device_->description, options_);
    const Candidate& chosen = choice.chosen();
    const Layout layout = layout_of(chosen, arguments.tokens);
    Result<RunArguments> resolved = resolve_run(mlp_, arguments, layout.bytes);
    if (!resolved) return resolved.error();
    return cpu::run({.mlp = mlp_,
                     .weights = weights_,
                     .passes = *device_->passes,
                     .pool = *device_->pool,
                     .numerics = options_.numerics,
                     .packed = options_.packed,
                     .operands = operands(mlp_.dtype, device_->description.cpu.native_bf16),
                     .rung = chosen.rung,
                     .tile = chosen.tile,
                     .layout = layout,
                     .arguments = *resolved});
  }

  Result<void> warm(std::int64_t tokens) const override { return validate(mlp_, tokens); }

  Result<Plan> plan(std::int64_t tokens) const override {
    return ingot::plan(mlp_, tokens, device_->description, options_);
  }

  std::size_t owned_bytes() const override { return weights_.owned_bytes(); }

 private:
  Layout layout_of(const Candidate& candidate, std::int64_t tokens) const {
    return layout(mlp_, tokens, candidate.rung, candidate.tile, device_->description.cpu);
  }

  std::shared_ptr<const CpuDevice> device_;
  Mlp mlp_;
  CpuWeights weights_;
  PlanOptions options_;
};

}  // namespace

Result<std::shared_ptr<const CpuDevice>> open(DeviceDescription description) {
  const int threads = description.cpu.threads;
  if (threads < 1 || threads > most_threads) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("threads: {} is not accepted, give 1 to {}", threads, most_threads)};
  }
  if (auto ok = validate(description); !ok) return ok.error();
  description.cpu.native_bf16 = description.cpu.native_bf16 && has_gemm_bf16();
  auto pool = ThreadPool::create(threads);
  if (!pool) return pool.error();
  auto device = std::make_shared<CpuDevice>();
  device->description = std::move(description);
  device->pool = std::move(pool).value();
  device->passes = passes(widest_isa());
  return std::shared_ptr<const CpuDevice>(std::move(device));
}

Result<std::shared_ptr<const Executor>> prepare(std::shared_ptr<const CpuDevice> device, const Mlp& mlp,
                                                const Weights& weights, const PrepareOptions& options) {
  const auto resolved = resolve_weights(mlp, weights);
  if (!resolved) return resolved.error();
  const PlanOptions planning = planning_options(mlp, weights, options);
  // Whether there is a way to run does not depend on the number of tokens.
  if (auto possible = plan(mlp, 1, device->description, planning); !possible) return possible.error();
  auto made = make_weights(mlp, *resolved, *device->passes);
  if (!made) return made.error();
  return std::shared_ptr<const Executor>(
      std::make_shared<CpuExecutor>(std::move(device), mlp, std::move(made).value(), planning));
}

}  // namespace ingot::cpu
