// SPDX-License-Identifier: Apache-2.0
#include "ingot/engine.h"

#include <new>

#include "base/env.h"
#include "cpu/describe.h"
#include "cpu/executor.h"
#include "cpu/stored_description.h"
#include "engine/inside.h"
#include "gpu/open.h"

namespace ingot {

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
      auto device = gpu::open(base::read_environment(), options.ordinal, options.description);
      if (!device) return device.error();
      state.gpu = std::move(device).value();
    }
    return Engine(std::make_shared<const State>(std::move(state)));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to open the device"};
  }
}

std::shared_ptr<const gpu::Gpu> EngineInside::gpu(const Engine& engine) {
  return engine.state_->gpu;
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
