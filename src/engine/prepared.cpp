// SPDX-License-Identifier: Apache-2.0
#include "ingot/engine.h"
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

}  // namespace ingot
