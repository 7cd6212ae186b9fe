// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>

#include "cpu/buffer.h"
#include "cpu/numbers.h"
#include "profile/ladder.h"

namespace ingot::profile {

namespace {

/// SplitMix64 (Steele, Lea and Flood, 2014): a number for every index, whatever the order.
float uniform(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (seed + 1) * 0xd1342543de82ef95U + (i + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return static_cast<float>(static_cast<std::int32_t>(z >> 32U)) * 0x1p-31F;
}

template <DType D>
void fill(void* to, std::int64_t count, float scale, std::uint64_t seed) {
  auto* const out = static_cast<typename cpu::Element<D>::type*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = scale * uniform(seed, static_cast<std::uint64_t>(i));
    out[i] = cpu::Element<D>::pack(cpu::Element<D>::round(value));
  }
}

}  // namespace

void Problem::Free::operator()(void* pointer) const {
  std::free(pointer);
}

double Problem::bytes(const Mlp& mlp, std::int64_t tokens) {
  const double x = static_cast<double>(tokens) * static_cast<double>(mlp.dim);
  return (static_cast<double>(parameter_count(mlp)) + x) * static_cast<double>(size_of(mlp.dtype));
}

Result<Problem> Problem::make(const Mlp& mlp, std::int64_t tokens, GateLayout layout, std::uint64_t seed) {
  Problem problem;
  problem.mlp_ = mlp;
  problem.tokens_ = tokens;
  problem.layout_ = layout;
  bool enough = true;
  std::uint64_t stream = seed * 16;
  // Uniform in ±sqrt(3 / in): every linear keeps the variance of its input, as initialised networks do.
  const auto random = [&](Memory& memory, std::int64_t count, double scale) {
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(mlp.dtype);
    memory.reset(std::aligned_alloc(cpu::cache_line, cpu::round_up(bytes + 1)));
    enough = enough && memory != nullptr;
    if (memory == nullptr) return;
    const auto value_scale = static_cast<float>(scale);
    switch (mlp.dtype) {
      case DType::f32:
        return fill<DType::f32>(memory.get(), count, value_scale, stream++);
      case DType::bf16:
        return fill<DType::bf16>(memory.get(), count, value_scale, stream++);
      case DType::f16:
        return fill<DType::f16>(memory.get(), count, value_scale, stream++);
    }
  };
  const double in_scale = std::sqrt(3.0 / static_cast<double>(mlp.dim));
  const double hidden_scale = std::sqrt(3.0 / static_cast<double>(mlp.hidden));
  const std::int64_t parts = layout == GateLayout::separate ? 1 : 2;
  random(problem.up_, parts * mlp.hidden * mlp.dim, in_scale);
  if (mlp.gated && parts == 1) random(problem.gate_, mlp.hidden * mlp.dim, in_scale);
  random(problem.down_, mlp.hidden * mlp.dim, hidden_scale);
  if (mlp.bias) {
    random(problem.up_bias_, parts * mlp.hidden, 0.1);
    if (mlp.gated && parts == 1) random(problem.gate_bias_, mlp.hidden, 0.1);
    random(problem.down_bias_, mlp.dim, 0.1);
  }
  random(problem.x_, tokens * mlp.dim, std::sqrt(3.0));
  if (!enough) return Error{ErrorCode::out_of_memory, "not enough memory for weights and inputs"};
  return problem;
}

Weights Problem::weights() const {
  return {.up = {up_.get(), 0, up_bias_.get()},
          .gate = {gate_.get(), 0, gate_bias_.get()},
          .down = {down_.get(), 0, down_bias_.get()},
          .layout = layout_};
}

}  // namespace ingot::profile
