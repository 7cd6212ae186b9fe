// SPDX-License-Identifier: Apache-2.0
#include "ingot/engine.h"

#include <new>

#include "cpu/describe.h"
#include "cpu/executor.h"
#include "cpu/stored_description.h"
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
Result<Plan> PreparedMlp::plan(std::int64_t tokens) const {
  return executor_->plan(tokens);
}
std::size_t PreparedMlp::owned_bytes() const {
  return executor_->owned_bytes();
}

class Engine::State {
 public:
  explicit State(std::shared_ptr<const cpu::CpuDevice> device) : cpu_device(std::move(device)) {}
  std::shared_ptr<const cpu::CpuDevice> cpu_device;
};

Engine::Engine(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<Engine> Engine::open(const EngineOptions& options) {
  try {
    if (options.device != DeviceKind::cpu)
      return Error{ErrorCode::unsupported, "device cuda: not in this build"};
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
    auto device = cpu::open(std::move(description));
    if (!device) return device.error();
    return Engine(std::make_shared<const State>(std::move(device).value()));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to open the device"};
  }
}

const DeviceDescription& Engine::device() const {
  return state_->cpu_device->description;
}

Result<PreparedMlp> Engine::prepare(const Mlp& mlp, const Weights& weights,
                                    const PrepareOptions& options) const {
  try {
    auto executor = cpu::prepare(state_->cpu_device, mlp, weights, options);
    if (!executor) return executor.error();
    return PreparedMlp(std::move(executor).value());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to prepare the MLP"};
  }
}

}  // namespace ingot
