// SPDX-License-Identifier: Apache-2.0
#include "gpu/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <system_error>
#include <variant>

#include "gpu/alignment.h"
#include "gpu/library_executor.h"
#include "gpu/route_table.h"
#include "plan/arguments.h"
#include "plan/choose.h"

namespace ingot::gpu {

namespace {

constexpr std::int64_t vector_bytes = 16;  // what the fast kernels load and store at once

// Tensors that the kernel of a whole MLP cannot take go through the portable pair so many tokens at a time,
// so that they need no room for all of hidden.
constexpr std::int64_t fallback_tokens = 4096;

/// What the executor keeps of the caller's weights.
struct GpuWeights {
  LinearWeights first, second;
  bool gate_first = true;  ///< gate's weights lie before up's
  bool aligned = false;    ///< the fast kernels can load them
  DeviceMemory zeros;      ///< bias of that one of gate and up which has none while the other has one
};

Error unsupported(std::string message) {
  return {ErrorCode::unsupported, std::move(message)};
}

/// Runs `work` on another thread where there is one to be had, else when its result is asked for.
template <class Work>
auto start(Work work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

class GpuExecutor final : public Executor {
 public:
  GpuExecutor(std::shared_ptr<const Gpu> gpu, const Mlp& mlp, GpuWeights weights, const PlanOptions& options)
      : gpu_(std::move(gpu)), mlp_(mlp), weights_(std::move(weights)), options_(options) {
    may_be_one_ = options_.rung != Rung::two_kernel && choose(1, weights_.aligned).one.found;
    needs_scratch_ = may_be_one_ && scratch(most_mapped_tokens) > 0;
  }

  const Mlp& mlp() const override { return mlp_; }

  std::size_t workspace_bytes(std::int64_t tokens) const override {
    return tokens <= 0 || !validate(mlp_, tokens) ? 0 : needed_bytes(tokens);
  }

  Result<void> run(const RunArguments& arguments) const override;
  Result<void> warm(std::int64_t tokens) const override;

  Result<Plan> plan(std::int64_t tokens) const override {
    return ingot::plan(mlp_, tokens, gpu_->description, options_, &gpu_->tuned);
  }
  std::size_t owned_bytes() const override { return weights_.zeros.bytes(); }

 private:
  /// Whether the fast kernels can load x and store y.
  bool aligned(const RunArguments& run) const;
  KernelRoute choose(std::int64_t tokens, bool aligned) const {
    return choose_route(mlp_, tokens, gpu_->description.gpu, {options_.numerics, aligned, &gpu_->tuned},
                        options_.rung);
  }
  /// Bytes that a kernel of the whole MLP may need beside its tensors.
  std::size_t scratch(std::int64_t tokens) const {
    const MlpSpec spec = mlp_spec(mlp_, weights_.gate_first, options_.numerics);
    return static_cast<std::size_t>(most_scratch_bytes(spec, tokens, gpu_->description.gpu));
  }
  /// workspace_bytes() of a valid number of tokens.
  std::size_t needed_bytes(std::int64_t tokens) const;
  /// Rows of hidden that the workspace holds. Never less for more tokens.
  std::int64_t hidden_rows(std::int64_t tokens) const;
  /// Tokens of a launch, or of a pair of launches; more are taken one such part after the other. Error
  /// unsupported: one_kernel was asked for and cannot take them.
  Result<std::int64_t> tokens_at_once(std::int64_t tokens, bool aligned) const;
  Result<const Route*> ready_route(std::int64_t tokens, bool aligned, CuStream stream) const;
  Result<const Route*> route(std::int64_t tokens, bool aligned) const;
  Result<std::unique_ptr<const Route>> make_route(std::int64_t tokens, bool aligned) const;
  Result<LinearPair> make_pair(const KernelPair& pair, bool aligned) const;
  /// Whether the kernels of these tokens are loaded, for this MLP or another of its kind.
  bool has_kernels(std::int64_t tokens, bool aligned) const;
  // What the kernels are compiled for.
  LinearSpec first_spec(bool aligned) const;
  LinearSpec second_spec(bool aligned) const;
  MlpSpec whole_spec() const;
  PreparedKernel make_kernel(const MlpTile& tile) const;
  Result<void> launch(const Route& route, const RunArguments& run, std::int64_t first,
                      std::int64_t tokens) const;

  std::shared_ptr<const Gpu> gpu_;
  Mlp mlp_;
  GpuWeights weights_;
  PlanOptions options_;
  bool may_be_one_ = false;     ///< some number of tokens may run in one launch
  bool needs_scratch_ = false;  ///< and for some it needs room beside its tensors
  mutable RouteTable routes_;
  /// By class of tokens: the most tokens up to it that run as a pair; 0: not asked yet, -1: none.
  mutable std::array<std::atomic<std::int64_t>, token_classes> most_paired_{};
};

bool GpuExecutor::aligned(const RunArguments& run) const {
  const auto fits = [&](const void* data, std::int64_t stride) {
    const std::int64_t row = stride * static_cast<std::int64_t>(size_of(mlp_.dtype));
    return reinterpret_cast<std::uintptr_t>(data) % vector_bytes == 0 && row % vector_bytes == 0 &&
           row < most_map_stride;
  };
  return weights_.aligned && run.tokens <= most_mapped_tokens && fits(run.x, run.x_row_stride) &&
         fits(run.y, run.y_row_stride);
}

std::size_t GpuExecutor::needed_bytes(std::int64_t tokens) const {
  const auto hidden = static_cast<std::size_t>(hidden_rows(tokens)) * static_cast<std::size_t>(mlp_.hidden) *
                      size_of(mlp_.dtype);
  return round_up(needs_scratch_ ? std::max(hidden, scratch(tokens)) : hidden);
}

std::int64_t GpuExecutor::hidden_rows(std::int64_t tokens) const {
  if (options_.rung == Rung::one_kernel) return 0;
  if (!may_be_one_ || tokens <= fallback_tokens) return tokens;
  // A number of tokens may run in one launch while fewer need two, and a workspace for more must do for
  // fewer: so the most tokens up to this many that run as a pair decide.
  const int index = token_class(tokens).index;
  auto& known = most_paired_[static_cast<std::size_t>(index)];
  std::int64_t most = known.load(std::memory_order_relaxed);
  if (most == 0) {
    most = -1;
    for (TokenClass each = token_class(fallback_tokens); each.index <= index; each = token_class(each.next)) {
      if (!choose(each.representative, true).takes_one) most = each.representative;
    }
    known.store(most, std::memory_order_relaxed);
  }
  return std::max(std::min(tokens, most), fallback_tokens);
}

Result<std::int64_t> GpuExecutor::tokens_at_once(std::int64_t tokens, bool aligned) const {
  if (aligned) return tokens;
  if (options_.rung == Rung::one_kernel) {
    return unsupported(
        fmt::format("one_kernel: x and y need addresses and row strides of 16 bytes, and at most {} tokens",
                    most_mapped_tokens));
  }
  return (tokens - 1) / ((tokens - 1) / hidden_rows(tokens) + 1) + 1;
}

Result<void> GpuExecutor::run(const RunArguments& arguments) const {
  if (auto ok = validate(mlp_, arguments.tokens); !ok) return ok;
  if (arguments.tokens == 0) return {};
  const Result<RunArguments> resolved = resolve_run(mlp_, arguments, needed_bytes(arguments.tokens));
  if (!resolved) return resolved.error();
  const RunArguments& run = *resolved;
  const Device& device = *gpu_->device;
  const CurrentContext current(device);
  if (auto ok = current.ready(); !ok) return ok;
  if (auto ok = device.check_pointers(run); !ok) return ok;

  const bool fast = aligned(run);
  const auto at_once = tokens_at_once(run.tokens, fast);
  if (!at_once) return at_once.error();
  const auto found = ready_route(*at_once, fast, static_cast<CuStream>(run.stream.handle));
  if (!found) return found.error();
  for (std::int64_t first = 0; first < run.tokens; first += *at_once) {
    if (auto ok = launch(**found, run, first, std::min(*at_once, run.tokens - first)); !ok) return ok;
  }
  return {};
}

/// `tokens` of the run, from its row `first` on.
Result<void> GpuExecutor::launch(const Route& route, const RunArguments& run, std::int64_t first,
                                 std::int64_t tokens) const {
  const auto element = static_cast<std::int64_t>(size_of(mlp_.dtype));
  const Matrix x{static_cast<const char*>(run.x) + first * run.x_row_stride * element, run.x_row_stride};
  const Matrix y{static_cast<const char*>(run.y) + first * run.y_row_stride * element, run.y_row_stride};
  auto* const stream = static_cast<CuStream>(run.stream.handle);
  const bool dependent = gpu_->device->has_dependent_launch();
  const Start start = dependent ? Start::early : Start::ordinary;
  if (const auto* const one = std::get_if<std::unique_ptr<const PreparedMlpKernel>>(&route))
    return (*one)->launch(x, y, run.workspace, tokens, stream, start);
  const auto& pair = std::get<LinearPair>(route);
  const Matrix hidden{run.workspace, mlp_.hidden};
  if (auto ok = pair.first.launch(x, hidden, tokens, stream, start); !ok) return ok;
  return pair.second.launch(hidden, y, tokens, stream, dependent ? Start::on_weights : Start::ordinary);
}

Result<void> GpuExecutor::warm(std::int64_t tokens) const {
  if (auto ok = validate(mlp_, tokens); !ok) return ok;
  if (tokens == 0) return {};
  const CurrentContext current(*gpu_->device);
  if (auto ok = current.ready(); !ok) return ok;
  // x and y as allocators give them; a run with others is another route.
  const bool fast = weights_.aligned && tokens <= most_mapped_tokens;
  const auto at_once = tokens_at_once(tokens, fast);
  if (!at_once) return at_once.error();
  const auto made = route(*at_once, fast);
  if (!made) return made.error();
  return {};
}

/// The route of a run, which may have to compile, but not while its stream is captured.
Result<const Route*> GpuExecutor::ready_route(std::int64_t tokens, bool aligned, CuStream stream) const {
  if (const Route* const found = routes_.find(token_class(tokens).index, aligned)) return found;
  const auto capturing = is_capturing(gpu_->device->driver(), stream);
  if (!capturing) return capturing.error();
  // With kernels that are loaded already a route is made by arithmetic alone.
  if (*capturing && !has_kernels(tokens, aligned)) {
    return unsupported(
        fmt::format("{} for {} tokens is not compiled yet; call warm({}) or run it once before the capture",
                    to_string(mlp_), tokens, tokens));
  }
  return route(tokens, aligned);
}

Result<const Route*> GpuExecutor::route(std::int64_t tokens, bool aligned) const {
  const int index = token_class(tokens).index;
  if (const Route* const found = routes_.find(index, aligned)) return found;
  try {
    auto made = make_route(tokens, aligned);
    if (!made) return made.error();
    return routes_.insert(index, aligned, std::move(made).value());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to compile the MLP's kernels"};
  }
}

Result<std::unique_ptr<const Route>> GpuExecutor::make_route(std::int64_t tokens, bool aligned) const {
  const KernelRoute chosen = choose(tokens, aligned);
  if (!chosen.found()) {
    return unsupported(fmt::format("no kernel for {} on {}", to_string(mlp_), gpu_->description.name));
  }
  if (chosen.takes_one) {
    auto one = make_kernel(chosen.one.tile);
    if (!one) return one.error();
    return std::make_unique<const Route>(std::move(one).value());
  }
  auto pair = make_pair(chosen.pair, aligned);
  if (!pair) return pair.error();
  return std::make_unique<const Route>(std::move(pair).value());
}

bool GpuExecutor::has_kernels(std::int64_t tokens, bool aligned) const {
  const KernelRoute chosen = choose(tokens, aligned);
  if (!chosen.found()) return false;
  if (chosen.takes_one) return gpu_->modules->has(whole_spec(), chosen.one.tile);
  return gpu_->modules->has(first_spec(aligned), chosen.pair.first) &&
         gpu_->modules->has(second_spec(aligned), chosen.pair.second);
}

LinearSpec GpuExecutor::first_spec(bool aligned) const {
  LinearSpec spec = first_linear(mlp_, weights_.gate_first, options_.numerics, aligned);
  spec.bias = weights_.first.up.bias != nullptr;
  return spec;
}
LinearSpec GpuExecutor::second_spec(bool aligned) const {
  LinearSpec spec = second_linear(mlp_, options_.numerics, aligned);
  spec.bias = weights_.second.up.bias != nullptr;
  return spec;
}
MlpSpec GpuExecutor::whole_spec() const {
  MlpSpec spec = mlp_spec(mlp_, weights_.gate_first, options_.numerics);
  spec.up_bias = weights_.first.up.bias != nullptr;
  spec.down_bias = weights_.second.up.bias != nullptr;
  return spec;
}

Result<LinearPair> GpuExecutor::make_pair(const KernelPair& pair, bool aligned) const {
  const LinearSpec first = first_spec(aligned), second = second_spec(aligned);
  auto later = start([&] { return gpu_->modules->get(second, pair.second); });
  const auto first_module = gpu_->modules->get(first, pair.first);
  const auto second_module = later.get();
  if (!first_module) return first_module.error();
  if (!second_module) return second_module.error();
  auto one = PreparedLinear::make(gpu_->device, *first_module, first, pair.first, weights_.first);
  if (!one) return one.error();
  auto two = PreparedLinear::make(gpu_->device, *second_module, second, pair.second, weights_.second);
  if (!two) return two.error();
  return LinearPair{std::move(one).value(), std::move(two).value()};
}

PreparedKernel GpuExecutor::make_kernel(const MlpTile& tile) const {
  const MlpSpec spec = whole_spec();
  auto module = gpu_->modules->get(spec, tile);
  if (!module) return module.error();
  const MlpKernelParts parts{gpu_->device, std::move(module).value(), spec, weights_.first,
                             weights_.second.up};
  return std::visit([&](const auto& each) { return prepare_kernel(parts, each); }, tile);
}

/// Every address of the weights must be of this device.
Result<void> check_weights(const Device& device, const ResolvedWeights& weights, bool gated) {
  const std::array<std::pair<std::string_view, const void*>, 6> pointers{
      {{gated ? "gate weight" : "up weight", weights.gate.weight},
       {gated ? "gate bias" : "up bias", weights.gate.bias},
       {"up weight", weights.up.weight},
       {"up bias", weights.up.bias},
       {"down weight", weights.down.weight},
       {"down bias", weights.down.bias}}};
  for (const auto& [name, pointer] : pointers) {
    if (pointer == nullptr) continue;
    if (auto ok = device.check_pointer(name, pointer); !ok) return ok;
  }
  return {};
}

Result<GpuWeights> make_weights(const std::shared_ptr<const Device>& device, const Mlp& mlp,
                                const ResolvedWeights& weights) {
  GpuWeights made;
  made.first = mlp.gated ? LinearWeights{weights.up, weights.gate} : LinearWeights{weights.gate, {}};
  made.second = {weights.down, {}};
  made.gate_first = !mlp.gated || gate_lies_first(weights);
  made.aligned =
      fit_tensor_maps(made.first, mlp.dtype, mlp.gated) && fit_tensor_maps(made.second, mlp.dtype, false);
  Linear &up = made.first.up, &gate = made.first.gate;
  if (mlp.gated && (up.bias == nullptr) != (gate.bias == nullptr)) {
    auto zeros = DeviceMemory::zeros(device, static_cast<std::size_t>(mlp.hidden) * size_of(mlp.dtype));
    if (!zeros) return zeros.error();
    made.zeros = std::move(zeros).value();
    (up.bias == nullptr ? up.bias : gate.bias) = made.zeros.data();
  }
  return made;
}

}  // namespace

Result<std::shared_ptr<const Gpu>> open(std::shared_ptr<const Device> device,
                                        std::shared_ptr<jit::KernelStore> store, const GpuOptions& options) {
  auto gpu = std::make_shared<Gpu>();
  gpu->device = std::move(device);
  gpu->modules = std::make_shared<ModuleTable>(gpu->device, std::move(store));
  gpu->description = options.description.value_or(gpu->device->description());
  gpu->library = options.library;
  gpu->tuned = options.tuned;
  if (gpu->description.kind != DeviceKind::cuda)
    return Error{ErrorCode::invalid_argument, "description: of a CPU, give one of a GPU"};
  gpu->description.gpu.library = false;  // it is called where it was asked for, never by choice
  if (auto ok = validate(gpu->description); !ok) return ok.error();
  return std::shared_ptr<const Gpu>(std::move(gpu));
}

Result<std::shared_ptr<const Executor>> prepare(std::shared_ptr<const Gpu> gpu, const Mlp& mlp,
                                                const Weights& weights, const PrepareOptions& options) {
  const auto resolved = resolve_weights(mlp, weights);
  if (!resolved) return resolved.error();
  PlanOptions planning = planning_options(mlp, weights, options);
  const CurrentContext current(*gpu->device);
  if (auto ok = current.ready(); !ok) return ok.error();
  if (auto ok = check_weights(*gpu->device, *resolved, mlp.gated); !ok) return ok.error();
  if (options.rung && is_library_rung(*options.rung)) {
    if (gpu->library == nullptr) return unsupported("the vendor's library is not at hand");
    auto library = gpu->library->get(gpu->device);
    if (!library) return library.error();
    return prepare_library(std::move(gpu), std::move(library).value(), mlp, *resolved, planning);
  }
  auto made = make_weights(gpu->device, mlp, *resolved);
  if (!made) return made.error();
  planning.aligned = made->aligned;
  // Whether there is a way to run does not depend on the number of tokens.
  if (auto possible = plan(mlp, 1, gpu->description, planning); !possible) return possible.error();
  return std::shared_ptr<const Executor>(
      std::make_shared<GpuExecutor>(std::move(gpu), mlp, std::move(made).value(), planning));
}

}  // namespace ingot::gpu
