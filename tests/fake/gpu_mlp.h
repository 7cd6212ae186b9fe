// SPDX-License-Identifier: Apache-2.0
//
// An MLP whose tensors are addresses in the fake GPU's memory, for tests of what is launched on them.
#pragma once

#include "fake/gpu_driver.h"
#include "gpu/executor.h"

namespace ingot::test {

inline std::shared_ptr<const gpu::Gpu> open_gpu(const FakeGpu& fake, std::shared_ptr<FakeStore> store) {
  return gpu::open(gpu::Device::open(fake.driver(), 0).value(), std::move(store)).value();
}

/// bf16 gelu_tanh with biases; gate behind up.
struct GpuMlp {
  static constexpr std::size_t apart = std::size_t{1} << 32;  ///< bytes from tensor to tensor

  explicit GpuMlp(std::int64_t dim, std::int64_t hidden, bool gated = false, DType dtype = DType::bf16)
      : mlp{dim, hidden, Activation::gelu_tanh, gated, true, dtype} {
    weights.up = {FakeGpu::memory(apart), 0, FakeGpu::memory(apart * 4 + 2)};
    if (dtype == DType::f32) weights.up.bias = FakeGpu::memory(apart * 4 + 4);
    if (gated) weights.gate = {FakeGpu::memory(apart * 2), 0, FakeGpu::memory(apart * 5)};
    weights.down = {FakeGpu::memory(apart * 3), 0, FakeGpu::memory(apart * 6)};
  }

  RunArguments run(std::int64_t tokens, const Executor& executor) const {
    return {.tokens = tokens,
            .x = FakeGpu::memory(apart * 10),
            .y = FakeGpu::memory(apart * 20),
            .workspace = FakeGpu::memory(apart * 30),
            .workspace_bytes = executor.workspace_bytes(tokens),
            .stream = {}};
  }

  Mlp mlp;
  Weights weights;
};

}  // namespace ingot::test
