// SPDX-License-Identifier: Apache-2.0
#include "gpu/executor.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <system_error>

#include "gpu/launch.h"
#include "gpu/library_executor.h"
#include "plan/arguments.h"
#include "plan/choose.h"

namespace ingot::gpu {

namespace {

constexpr std::size_t hidden_alignment = 256;  // bytes, of the workspace's size
constexpr std::int64_t vector_bytes = 16;      // what the fast kernels load and store at once
constexpr std::int64_t most_row_bytes = std::int64_t{1} << 40;  // exclusive; of a tensor map

/// Both linears of the MLP with the kernels of one class of tokens.
struct Route {
  PreparedLinear first, second;
};

/// Routes found so far, by class of tokens and alignment of x and y. Reading takes no lock; a route stays
/// until the table goes.
class RouteTable {
 public:
  const Route* find(int token_class, bool aligned) const {
    return slots_[slot(token_class, aligned)].load(std::memory_order_acquire);
  }
  /// The route of that place, which another thread may have filled first.
  const Route* insert(int token_class, bool aligned, std::unique_ptr<const Route> route) {
    const Route* expected = nullptr;
    if (slots_[slot(token_class, aligned)].compare_exchange_strong(
            expected, route.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return route.release();
    }
    return expected;
  }
  RouteTable() = default;
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;
  ~RouteTable() {
    for (auto& place : slots_) delete place.load(std::memory_order_relaxed);
  }

 private:
  static std::size_t slot(int token_class, bool aligned) {
    return 2 * static_cast<std::size_t>(token_class) + (aligned ? 1 : 0);
  }
  std::array<std::atomic<const Route*>, 2 * std::size_t{token_classes}> slots_{};
};

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
      : gpu_(std::move(gpu)), mlp_(mlp), weights_(std::move(weights)), options_(options) {}

  const Mlp& mlp() const override { return mlp_; }

  std::size_t workspace_bytes(std::int64_t tokens) const override {
    if (tokens <= 0 || !validate(mlp_, tokens)) return 0;
    const auto bytes =
        static_cast<std::size_t>(tokens) * static_cast<std::size_t>(mlp_.hidden) * size_of(mlp_.dtype);
    return (bytes + hidden_alignment - 1) / hidden_alignment * hidden_alignment;
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
  Result<const Route*> route(std::int64_t tokens, bool aligned) const;
  Result<std::unique_ptr<const Route>> make_route(std::int64_t tokens, bool aligned) const;

  std::shared_ptr<const Gpu> gpu_;
  Mlp mlp_;
  GpuWeights weights_;
  PlanOptions options_;
  mutable RouteTable routes_;
};

bool GpuExecutor::aligned(const RunArguments& run) const {
  const auto fits = [&](const void* data, std::int64_t stride) {
    const std::int64_t row = stride * static_cast<std::int64_t>(size_of(mlp_.dtype));
    return reinterpret_cast<std::uintptr_t>(data) % vector_bytes == 0 && row % vector_bytes == 0 &&
           row < most_row_bytes;
  };
  return weights_.aligned && run.tokens <= most_mapped_tokens && fits(run.x, run.x_row_stride) &&
         fits(run.y, run.y_row_stride);
}

Result<void> GpuExecutor::run(const RunArguments& arguments) const {
  if (auto ok = validate(mlp_, arguments.tokens); !ok) return ok;
  const Result<RunArguments> resolved = resolve_run(mlp_, arguments, workspace_bytes(arguments.tokens));
  if (!resolved) return resolved.error();
  const RunArguments& run = *resolved;
  if (run.tokens == 0) return {};
  const Device& device = *gpu_->device;
  const CurrentContext current(device);
  if (auto ok = current.ready(); !ok) return ok;
  if (auto ok = device.check_pointers(run); !ok) return ok;

  const bool fast = aligned(run);
  auto* const stream = static_cast<CuStream>(run.stream.handle);
  const Route* found = routes_.find(token_class(run.tokens).index, fast);
  if (found == nullptr) {
    const auto capturing = is_capturing(device.driver(), stream);
    if (!capturing) return capturing.error();
    if (*capturing) {
      return unsupported(
          fmt::format("{} for {} tokens is not compiled yet; call warm({}) or run it once before the capture",
                      to_string(mlp_), run.tokens, run.tokens));
    }
    auto made = route(run.tokens, fast);
    if (!made) return made.error();
    found = *made;
  }
  const Matrix x{run.x, run.x_row_stride}, hidden{run.workspace, mlp_.hidden}, y{run.y, run.y_row_stride};
  if (auto ok = found->first.launch(x, hidden, run.tokens, stream, false); !ok) return ok;
  return found->second.launch(hidden, y, run.tokens, stream, device.has_dependent_launch());
}

Result<void> GpuExecutor::warm(std::int64_t tokens) const {
  if (auto ok = validate(mlp_, tokens); !ok) return ok;
  if (tokens == 0) return {};
  const CurrentContext current(*gpu_->device);
  if (auto ok = current.ready(); !ok) return ok;
  // x and y as allocators give them; a run with others is another route.
  const auto made = route(tokens, weights_.aligned && tokens <= most_mapped_tokens);
  if (!made) return made.error();
  return {};
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
  const KernelPair pair = choose_kernels(mlp_, token_class(tokens).representative, gpu_->description.gpu,
                                         {options_.numerics, aligned, &gpu_->tuned});
  if (!pair.found) {
    return unsupported(fmt::format("no kernel for {} on {}", to_string(mlp_), gpu_->description.name));
  }
  LinearSpec first = first_linear(mlp_, weights_.gate_first, options_.numerics, aligned);
  LinearSpec second = second_linear(mlp_, options_.numerics, aligned);
  first.bias = weights_.first.up.bias != nullptr;
  second.bias = weights_.second.up.bias != nullptr;
  auto later = start([&] { return gpu_->modules->get(second, pair.second); });
  const auto first_module = gpu_->modules->get(first, pair.first);
  const auto second_module = later.get();
  if (!first_module) return first_module.error();
  if (!second_module) return second_module.error();
  auto one = PreparedLinear::make(gpu_->device, *first_module, first, pair.first, weights_.first);
  if (!one) return one.error();
  auto two = PreparedLinear::make(gpu_->device, *second_module, second, pair.second, weights_.second);
  if (!two) return two.error();
  return std::unique_ptr<const Route>(new Route{std::move(one).value(), std::move(two).value()});
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
  const PlanOptions planning = planning_options(mlp, weights, options);
  const CurrentContext current(*gpu->device);
  if (auto ok = current.ready(); !ok) return ok.error();
  if (auto ok = check_weights(*gpu->device, *resolved, mlp.gated); !ok) return ok.error();
  if (options.rung && is_library_rung(*options.rung)) {
    if (gpu->library == nullptr) return unsupported("the vendor's library is not at hand");
    auto library = gpu->library->get(gpu->device);
    if (!library) return library.error();
    return prepare_library(std::move(gpu), std::move(library).value(), mlp, *resolved, planning);
  }
  // Whether there is a way to run does not depend on the number of tokens.
  if (auto possible = plan(mlp, 1, gpu->description, planning); !possible) return possible.error();
  auto made = make_weights(gpu->device, mlp, *resolved);
  if (!made) return made.error();
  return std::shared_ptr<const Executor>(
      std::make_shared<GpuExecutor>(std::move(gpu), mlp, std::move(made).value(), planning));
}

}  // namespace ingot::gpu
