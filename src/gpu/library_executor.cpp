// SPDX-License-Identifier: Apache-2.0
#include "gpu/library_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include "gpu/alignment.h"
#include "gpu/launch.h"
#include "plan/choose.h"

namespace ingot::gpu {

namespace {

constexpr std::size_t vector_bytes = 16;  // what the pointwise kernels load at once

/// Where a step reads and writes. `first` and `second` lie in the workspace.
enum class Place : std::uint8_t { x, first, second, y };

/// A part of a tensor: columns from one on.
struct Part {
  Place place = Place::x;
  std::int64_t column = 0;
};

struct GemmLaunch {
  Gemm gemm;
  std::optional<BlasAlgorithm> algorithm;  ///< chosen in the first run
  const void* weight;
  Part from, to;
};

struct PointwiseLaunch {
  std::shared_ptr<const Module> module;
  std::int64_t blocks;
  const void* bias;
  Part from, second, to;
};

using Step = std::variant<GemmLaunch, PointwiseLaunch>;

/// What the steps depend on beside the weights.
struct CallShape {
  std::int64_t tokens = 0, x_stride = 0, y_stride = 0;
  int alignment = 0;  ///< bytes that x and y are at a multiple of
  auto operator<=>(const CallShape&) const = default;
};

/// The greatest power of two up to 256 that divides all.
int common_alignment(std::initializer_list<const void*> addresses) {
  std::uintptr_t bits = tensor_alignment;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<int>(bits & (~bits + 1));
}

class LibraryExecutor final : public Executor {
 public:
  LibraryExecutor(std::shared_ptr<const Gpu> gpu, std::shared_ptr<GemmChoices> library, const Mlp& mlp,
                  const ResolvedWeights& weights, const PlanOptions& options)
      : gpu_(std::move(gpu)),
        library_(std::move(library)),
        mlp_(mlp),
        weights_(weights),
        options_(options),
        description_(gpu_->description) {
    description_.gpu.library = true;
  }

  const Mlp& mlp() const override { return mlp_; }
  std::size_t workspace_bytes(std::int64_t tokens) const override {
    if (tokens <= 0 || !validate(mlp_, tokens)) return 0;
    // The caller's address may be any multiple of workspace_alignment.
    return first_bytes(tokens) + second_bytes(tokens) + blas_workspace_bytes + tensor_alignment;
  }
  Result<void> run(const RunArguments& arguments) const override;
  Result<void> warm(std::int64_t tokens) const override;
  Result<Plan> plan(std::int64_t tokens) const override {
    return ingot::plan(mlp_, tokens, description_, options_);
  }
  std::size_t owned_bytes() const override { return 0; }

 private:
  using Steps = std::vector<Step>;

  /// Columns of the first buffer: packed gate and up come out of one product side by side.
  std::int64_t first_width() const { return options_.packed ? 2 * mlp_.hidden : mlp_.hidden; }
  std::size_t bytes(std::int64_t tokens, std::int64_t width) const {
    return round_up(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(width) * size_of(mlp_.dtype));
  }
  std::size_t first_bytes(std::int64_t tokens) const { return bytes(tokens, first_width()); }
  std::size_t second_bytes(std::int64_t tokens) const { return mlp_.gated ? bytes(tokens, mlp_.hidden) : 0; }
  /// Where the first buffer starts.
  static char* buffers(const RunArguments& run) {
    auto* const workspace = static_cast<char*>(run.workspace);
    return workspace + (round_up(reinterpret_cast<std::uintptr_t>(workspace)) -
                        reinterpret_cast<std::uintptr_t>(workspace));
  }
  std::int64_t stride(Place place, const CallShape& call) const;
  const void* address(const Part& part, const RunArguments& run) const;

  Result<std::shared_ptr<const Steps>> steps(const CallShape& call, const RunArguments& run) const;
  Result<Steps> make_steps(const CallShape& call) const;
  Result<void> add_linear(Steps& steps, const CallShape& call, const Linear& linear, std::int64_t out,
                          std::int64_t in, Part from, Part to, GemmStep step) const;
  Result<void> add_pointwise(Steps& steps, const CallShape& call, jit::PointwiseSpec spec, const void* bias,
                             Part from, Part second, Part to) const;
  Result<void> add_hidden(Steps& steps, const CallShape& call) const;
  Result<void> choose_algorithms(Steps& steps, const RunArguments& run) const;
  Result<void> launch(const GemmLaunch& step, const RunArguments& run) const;
  Result<void> launch(const PointwiseLaunch& step, const RunArguments& run, const CallShape& call) const;
  GemmOperands operands(const GemmLaunch& step, const RunArguments& run) const;

  std::shared_ptr<const Gpu> gpu_;
  std::shared_ptr<GemmChoices> library_;
  Mlp mlp_;
  ResolvedWeights weights_;
  PlanOptions options_;
  DeviceDescription description_;  ///< the library at hand
  mutable std::mutex mutex_;       // guards made_
  mutable std::map<CallShape, std::shared_ptr<const Steps>> made_;
};

std::int64_t LibraryExecutor::stride(Place place, const CallShape& call) const {
  switch (place) {
    case Place::x:
      return call.x_stride;
    case Place::first:
      return first_width();
    case Place::second:
      return mlp_.hidden;
    case Place::y:
      break;
  }
  return call.y_stride;
}

const void* LibraryExecutor::address(const Part& part, const RunArguments& run) const {
  const auto* const workspace = buffers(run);
  const auto* base = static_cast<const char*>(run.x);
  if (part.place == Place::y) base = static_cast<const char*>(run.y);
  if (part.place == Place::first) base = workspace;
  if (part.place == Place::second) base = workspace + first_bytes(run.tokens);
  return base + part.column * static_cast<std::int64_t>(size_of(mlp_.dtype));
}

Result<void> LibraryExecutor::add_pointwise(Steps& steps, const CallShape& call, jit::PointwiseSpec spec,
                                            const void* bias, Part from, Part second, Part to) const {
  spec.dtype = mlp_.dtype;
  spec.aligned = true;
  for (const Part& part : {from, second, to}) {
    const std::size_t element = size_of(mlp_.dtype);
    const bool caller = part.place == Place::x || part.place == Place::y;
    if (caller && static_cast<std::size_t>(call.alignment) < vector_bytes) spec.aligned = false;
    if (static_cast<std::size_t>(stride(part.place, call)) * element % vector_bytes != 0 ||
        static_cast<std::size_t>(part.column) * element % vector_bytes != 0) {
      spec.aligned = false;
    }
  }
  auto module = gpu_->modules->get(jit::pointwise_text(spec, gpu_->device->target()));
  if (!module) return module.error();
  const std::int64_t blocks = jit::pointwise_blocks(spec, call.tokens);
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("tokens: {} are more than one launch takes, give fewer at a time", call.tokens)};
  }
  steps.push_back(PointwiseLaunch{std::move(module).value(), blocks, bias, from, second, to});
  return {};
}

/// The product, its bias folded in or as a pass of its own.
Result<void> LibraryExecutor::add_linear(Steps& steps, const CallShape& call, const Linear& linear,
                                         std::int64_t out, std::int64_t in, Part from, Part to,
                                         GemmStep step) const {
  const bool folds = options_.rung != Rung::matmul_add && linear.bias != nullptr;
  const int weights = common_alignment({linear.weight, folds ? linear.bias : nullptr});
  const GemmShape shape{.dtype = mlp_.dtype,
                        .tokens = call.tokens,
                        .out = out,
                        .in = in,
                        .x_stride = stride(from.place, call),
                        .weight_stride = linear.row_stride,
                        .y_stride = stride(to.place, call),
                        .bias = folds,
                        .step = step,
                        .alignment = std::min(weights, call.alignment)};
  auto gemm = Gemm::make(library_->blas(), shape, linear.bias);
  if (!gemm) return gemm.error();
  steps.push_back(GemmLaunch{std::move(gemm).value(), std::nullopt, linear.weight, from, to});
  if (folds || linear.bias == nullptr) return {};
  return add_pointwise(steps, call, {.step = jit::PointwiseSpec::Step::add_bias, .columns = out}, linear.bias,
                       to, to, to);
}

/// x to the hidden tensor, which ends in `second` where gate and up are packed, else in `first`.
Result<void> LibraryExecutor::add_hidden(Steps& steps, const CallShape& call) const {
  const std::int64_t hidden = mlp_.hidden, dim = mlp_.dim;
  const Part x{Place::x}, first{Place::first}, second{Place::second};
  const jit::PointwiseSpec activate{
      .step = jit::PointwiseSpec::Step::activate, .activation = mlp_.activation, .columns = hidden};
  const jit::PointwiseSpec multiply{.step = jit::PointwiseSpec::Step::multiply, .columns = hidden};
  const bool activates = mlp_.activation != Activation::identity;
  if (options_.packed) {
    const bool gate_first = gate_lies_first(weights_);
    const Part gate{Place::first, gate_first ? 0 : hidden}, up{Place::first, gate_first ? hidden : 0};
    const Linear& both = gate_first ? weights_.gate : weights_.up;
    if (auto ok = add_linear(steps, call, both, 2 * hidden, dim, x, first, GemmStep::none); !ok) return ok;
    if (!activates) return add_pointwise(steps, call, multiply, nullptr, up, gate, second);
    if (auto ok = add_pointwise(steps, call, activate, nullptr, gate, gate, second); !ok) return ok;
    return add_pointwise(steps, call, multiply, nullptr, up, second, second);
  }
  // Not gated, `gate` is the one linear.
  GemmStep fused = GemmStep::none;
  if (options_.rung == Rung::epilogue)
    fused = mlp_.activation == Activation::relu ? GemmStep::relu : GemmStep::gelu_tanh;
  if (auto ok = add_linear(steps, call, weights_.gate, hidden, dim, x, first, fused); !ok) return ok;
  if (mlp_.gated) {
    if (auto ok = add_linear(steps, call, weights_.up, hidden, dim, x, second, GemmStep::none); !ok)
      return ok;
  }
  if (activates && fused == GemmStep::none) {
    if (auto ok = add_pointwise(steps, call, activate, nullptr, first, first, first); !ok) return ok;
  }
  if (!mlp_.gated) return {};
  return add_pointwise(steps, call, multiply, nullptr, second, first, first);
}

Result<LibraryExecutor::Steps> LibraryExecutor::make_steps(const CallShape& call) const {
  Steps steps;
  if (auto ok = add_hidden(steps, call); !ok) return ok.error();
  const Part hidden{options_.packed ? Place::second : Place::first}, y{Place::y};
  if (auto ok = add_linear(steps, call, weights_.down, mlp_.dim, mlp_.hidden, hidden, y, GemmStep::none);
      !ok) {
    return ok.error();
  }
  return steps;
}

/// Each with the operands that it will have: what it reads need not hold anything sensible yet.
Result<void> LibraryExecutor::choose_algorithms(Steps& steps, const RunArguments& run) const {
  for (Step& step : steps) {
    auto* const gemm = std::get_if<GemmLaunch>(&step);
    if (gemm == nullptr) continue;
    auto chosen =
        library_->choose(gemm->gemm, operands(*gemm, run), static_cast<CuStream>(run.stream.handle));
    if (!chosen) return chosen.error();
    gemm->algorithm = *chosen;
  }
  return {};
}

Result<std::shared_ptr<const LibraryExecutor::Steps>> LibraryExecutor::steps(const CallShape& call,
                                                                             const RunArguments& run) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = made_.find(call); found != made_.end()) return found->second;
  }
  const auto capturing = is_capturing(gpu_->device->driver(), static_cast<CuStream>(run.stream.handle));
  if (!capturing) return capturing.error();
  if (*capturing) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} for {} tokens has no algorithms chosen yet; run it once before the capture",
                             to_string(mlp_), run.tokens)};
  }
  auto made = make_steps(call);
  if (!made) return made.error();
  if (auto ok = choose_algorithms(*made, run); !ok) return ok.error();
  const std::lock_guard lock(mutex_);
  return made_.emplace(call, std::make_shared<const Steps>(std::move(made).value())).first->second;
}

GemmOperands LibraryExecutor::operands(const GemmLaunch& step, const RunArguments& run) const {
  return {.x = address(step.from, run),
          .weight = step.weight,
          .y = const_cast<void*>(address(step.to, run)),
          .workspace = buffers(run) + first_bytes(run.tokens) + second_bytes(run.tokens)};
}

Result<void> LibraryExecutor::launch(const GemmLaunch& step, const RunArguments& run) const {
  return step.gemm.run(*step.algorithm, operands(step, run), static_cast<CuStream>(run.stream.handle));
}

Result<void> LibraryExecutor::launch(const PointwiseLaunch& step, const RunArguments& run,
                                     const CallShape& call) const {
  LinearArgs arguments{.x = address(step.from, run),
                       .x_stride = stride(step.from.place, call),
                       .up = nullptr,
                       .up_stride = 0,
                       .gate = address(step.second, run),
                       .gate_stride = stride(step.second.place, call),
                       .tokens = run.tokens,
                       .epilogue = {.up_bias = step.bias,
                                    .gate_bias = nullptr,
                                    .y = const_cast<void*>(address(step.to, run)),
                                    .y_stride = stride(step.to.place, call)}};
  LaunchShape shape(step.module->shape(), static_cast<std::uint32_t>(step.blocks),
                    static_cast<CuStream>(run.stream.handle), false);
  void* parameters[] = {&arguments};
  const Driver& driver = gpu_->device->driver();
  if (const CuResult r =
          driver.cuLaunchKernelEx(shape.config(), step.module->function(), parameters, nullptr);
      r != 0) {
    return driver_error(driver, r, "cuLaunchKernelEx");
  }
  return {};
}

Result<void> LibraryExecutor::run(const RunArguments& arguments) const {
  if (auto ok = validate(mlp_, arguments.tokens); !ok) return ok;
  const Result<RunArguments> resolved = resolve_run(mlp_, arguments, workspace_bytes(arguments.tokens));
  if (!resolved) return resolved.error();
  const RunArguments& run = *resolved;
  if (run.tokens == 0) return {};
  const Device& device = *gpu_->device;
  const CurrentContext current(device);
  if (auto ok = current.ready(); !ok) return ok;
  if (auto ok = device.check_pointers(run); !ok) return ok;
  const CallShape call{run.tokens, run.x_row_stride, run.y_row_stride, common_alignment({run.x, run.y})};
  try {
    const auto found = steps(call, run);
    if (!found) return found.error();
    for (const Step& step : **found) {
      const auto* const gemm = std::get_if<GemmLaunch>(&step);
      auto done = gemm != nullptr ? launch(*gemm, run) : launch(std::get<PointwiseLaunch>(step), run, call);
      if (!done) return done;
    }
    return {};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to run the library's rungs"};
  }
}

/// Runs once on zeros, which is as good for loading and compiling.
Result<void> LibraryExecutor::warm(std::int64_t tokens) const {
  if (auto ok = validate(mlp_, tokens); !ok) return ok;
  if (tokens == 0) return {};
  const auto& device = gpu_->device;
  const CurrentContext current(*device);
  if (auto ok = current.ready(); !ok) return ok;
  const std::size_t rows = bytes(tokens, mlp_.dim);
  auto memory = DeviceMemory::zeros(device, 2 * rows + workspace_bytes(tokens));
  if (!memory) return memory.error();
  auto* const base = static_cast<char*>(const_cast<void*>(memory->data()));
  if (auto ok = run({.tokens = tokens,
                     .x = base,
                     .y = base + rows,
                     .workspace = base + 2 * rows,
                     .workspace_bytes = workspace_bytes(tokens),
                     .stream = {}});
      !ok) {
    return ok;
  }
  const Driver& driver = device->driver();
  if (const CuResult r = driver.cuStreamSynchronize(nullptr); r != 0)
    return driver_error(driver, r, "cuStreamSynchronize");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Executor>> prepare_library(std::shared_ptr<const Gpu> gpu,
                                                        std::shared_ptr<GemmChoices> library, const Mlp& mlp,
                                                        const ResolvedWeights& weights,
                                                        const PlanOptions& options) {
  auto executor =
      std::make_shared<LibraryExecutor>(std::move(gpu), std::move(library), mlp, weights, options);
  // Whether the library has such a rung does not depend on the number of tokens.
  if (auto possible = executor->plan(1); !possible) return possible.error();
  return std::shared_ptr<const Executor>(std::move(executor));
}

}  // namespace ingot::gpu
