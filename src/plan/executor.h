// SPDX-License-Identifier: Apache-2.0
//
// What a device's folder implements for the engine: a prepared MLP. See PreparedMlp in ingot/engine.h for the
// contract of each function.
#pragma once

#include "ingot/engine.h"

namespace ingot {

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual const Mlp& mlp() const = 0;
  virtual std::size_t workspace_bytes(std::int64_t tokens) const = 0;
  virtual Result<void> run(const RunArguments& arguments) const = 0;
  virtual Result<void> warm(std::int64_t tokens) const = 0;
  virtual Result<Plan> plan(std::int64_t tokens) const = 0;
  virtual std::size_t owned_bytes() const = 0;
};

}  // namespace ingot
