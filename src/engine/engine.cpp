// SPDX-License-Identifier: Apache-2.0
#include "ingot/engine.h"

#include <new>

#include "base/env.h"
#include "cpu/describe.h"
#include "cpu/executor.h"
#include "cpu/stored_description.h"
#include "gpu/executor.h"
#include "gpu/nvrtc.h"
#include "jit/store.h"
#include "plan/executor.h"

namespace ingot {

PreparedMlp::PreparedMlp(std::shared_ptr<const Executor> executor) : executor_(std::move(executor)) {}
const Mlp& PreparedMlp::mlp() const {
  return executor_->mlp();
}
std::size_t PreparedMlp::workspace_bytes(std::int64_t tokens) const {
  return executor_->workspace_bytes(tokens);
}
Result<void> PreparedMlp::run(const RunArguments& arguments) const {
  return executor_->run(arguments);
}
Result<void> PreparedMlp::warm(std::int64_t tokens) const {
  return executor_->warm(tokens);
}
Result<Plan> PreparedMlp::plan(std::int64_t tokens) const {
  return executor_->plan(tokens);
}
std::size_t PreparedMlp::owned_bytes() const {
  return executor_->owned_bytes();
}

/// One of the two is set.
class Engine::State {
 public:
  std::shared_ptr<const cpu::CpuDevice> cpu;
  std::shared_ptr<const gpu::Gpu> gpu;
};

namespace {

Result<std::shared_ptr<const cpu::CpuDevice>> open_cpu(const EngineOptions& options) {
  if (options.threads < 0) {
    return Error{ErrorCode::invalid_argument, "threads: a negative number is not accepted, give 0 or more"};
  }
  DeviceDescription description;
  if (options.description) {
    description = *options.description;
  } else {
    description = cpu::estimate_cpu(cpu::cpu_facts(), options.threads);
    if (auto stored = cpu::load_description(description)) description = *stored;
  }
  return cpu::open(std::move(description));
}

Result<std::shared_ptr<const gpu::Gpu>> open_gpu(const EngineOptions& options) {
  const base::Environment environment = base::read_environment();
  auto driver = gpu::open_driver(environment);
  if (!driver) return driver.error();
  auto device = gpu::Device::open(std::move(driver).value(), options.ordinal);
  if (!device) return device.error();
  auto compiler = gpu::open_nvrtc(environment);
  if (!compiler) return compiler.error();
  auto store =
      std::make_shared<jit::CachedKernelStore>(std::move(compiler).value(), jit::kernel_cache(environment));
  return gpu::open(std::move(device).value(), std::move(store), options.description);
}

}  // namespace

Engine::Engine(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<Engine> Engine::open(const EngineOptions& options) {
  try {
    State state;
    if (options.device == DeviceKind::cpu) {
      auto device = open_cpu(options);
      if (!device) return device.error();
      state.cpu = std::move(device).value();
    } else {
      auto device = open_gpu(options);
      if (!device) return device.error();
      state.gpu = std::move(device).value();
    }
    return Engine(std::make_shared<const State>(std::move(state)));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to open the device"};
  }
}

const DeviceDescription& Engine::device() const {
  return state_->gpu ? state_->gpu->description : state_->cpu->description;
}

Result<PreparedMlp> Engine::prepare(const Mlp& mlp, const Weights& weights,
                                    const PrepareOptions& options) const {
  try {
    auto executor = state_->gpu ? gpu::prepare(state_->gpu, mlp, weights, options)
                                : cpu::prepare(state_->cpu, mlp, weights, options);
    if (!executor) return executor.error();
    return PreparedMlp(std::move(executor).value());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to prepare the MLP"};
  }
}

}  // namespace ingot
