// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "cpu/numbers.h"
#include "engine/check.h"

namespace ingot::check {

namespace {

/// In [-1, 1), the same for a seed and an index everywhere: SplitMix64 (Steele, Lea and Flood, 2014).
float uniform(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xd1342543de82ef95U + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return static_cast<float>(static_cast<std::int32_t>(z >> 32U)) * 0x1p-31F;
}

void put(DType dtype, char* at, float value) {
  if (dtype == DType::f32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = dtype == DType::bf16
                                 ? cpu::Element<DType::bf16>::pack(cpu::Element<DType::bf16>::round(value))
                                 : cpu::Element<DType::f16>::pack(cpu::Element<DType::f16>::round(value));
  std::memcpy(at, &bits, sizeof bits);
}

std::size_t align_up(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Places of the tensors in one allocation, bytes.
struct Places {
  std::size_t up = 0, gate = 0, down = 0, up_bias = 0, gate_bias = 0, down_bias = 0, total = 0;
};

Places places(const Mlp& mlp, Place place, std::size_t weight_offset) {
  const std::size_t element = size_of(mlp.dtype);
  const auto first = static_cast<std::size_t>(mlp.hidden * mlp.dim) * element;
  const auto bias = static_cast<std::size_t>(mlp.hidden) * element;
  const bool packed = place == Place::packed_value_first || place == Place::packed_gate_first;
  const bool gate_first = place == Place::gate_then_up || place == Place::packed_gate_first;
  Places p;
  std::size_t at = weight_offset;
  const auto put_two = [&](std::size_t& up, std::size_t& gate, std::size_t bytes) {
    std::size_t &one = gate_first ? gate : up, &two = gate_first ? up : gate;
    one = at;
    at = packed ? at + bytes : weight_offset + align_up(at + bytes);
    two = at;
    at = weight_offset + align_up(at + (mlp.gated ? bytes : 0));
  };
  if (!mlp.gated) {
    p.up = at;
    at = weight_offset + align_up(at + first);
    // Biases one element off: they need no more than that.
    p.up_bias = at += element;
    at = weight_offset + align_up(at + bias);
  } else {
    put_two(p.up, p.gate, first);
    at += element;
    put_two(p.up_bias, p.gate_bias, bias);
  }
  p.down = at;
  at = weight_offset + align_up(at + first);
  p.down_bias = at += element;
  p.total = at + static_cast<std::size_t>(mlp.dim) * element + 256;
  return p;
}

Weights weights_at(const Mlp& mlp, Place place, const Places& p, const char* base) {
  const auto bias = [&](std::size_t offset) { return mlp.bias ? base + offset : nullptr; };
  Weights w;
  w.down = {base + p.down, 0, bias(p.down_bias)};
  w.up = {base + p.up, 0, bias(p.up_bias)};
  if (!mlp.gated) return w;
  if (place == Place::packed_value_first) w.layout = GateLayout::packed_value_first;
  if (place == Place::packed_gate_first) {
    w.layout = GateLayout::packed_gate_first;
    w.up = {base + p.gate, 0, bias(p.gate_bias)};
  }
  if (w.layout == GateLayout::separate) w.gate = {base + p.gate, 0, bias(p.gate_bias)};
  return w;
}

}  // namespace

Problem::Problem(const Session& session, const Mlp& mlp, Place place, std::int64_t rows, std::uint64_t seed,
                 std::size_t weight_offset)
    : mlp_(mlp), device_(session, places(mlp, place, weight_offset).total) {
  const Places p = places(mlp, place, weight_offset);
  const std::size_t element = size_of(mlp.dtype);
  host_.assign(p.total, '\0');
  std::uint64_t stream = seed * 16;
  // Uniform in +-sqrt(3 / in): every linear keeps the variance of its input.
  const auto fill = [&](char* at, std::int64_t count, double scale) {
    ++stream;
    for (std::int64_t i = 0; i < count; ++i) {
      put(mlp.dtype, at + static_cast<std::size_t>(i) * element,
          static_cast<float>(scale) * uniform(stream, static_cast<std::uint64_t>(i)));
    }
  };
  const double dim_scale = std::sqrt(3.0 / static_cast<double>(mlp.dim));
  const double hidden_scale = std::sqrt(3.0 / static_cast<double>(mlp.hidden));
  fill(host_.data() + p.up, mlp.hidden * mlp.dim, dim_scale);
  fill(host_.data() + p.down, mlp.hidden * mlp.dim, hidden_scale);
  if (mlp.gated) fill(host_.data() + p.gate, mlp.hidden * mlp.dim, dim_scale);
  if (mlp.bias) {
    fill(host_.data() + p.up_bias, mlp.hidden, 0.3);
    fill(host_.data() + p.down_bias, mlp.dim, 0.3);
    if (mlp.gated) fill(host_.data() + p.gate_bias, mlp.hidden, 0.3);
  }
  x_.resize(static_cast<std::size_t>(rows * mlp.dim) * element);
  fill(x_.data(), rows * mlp.dim, std::sqrt(3.0));
  device_.upload(host_.data(), host_.size());
  host_weights_ = weights_at(mlp, place, p, host_.data());
  device_weights_ = weights_at(mlp, place, p, device_.at(0));
}

std::vector<char> Problem::strided_x(std::int64_t tokens, std::int64_t stride) const {
  const std::size_t pitch = static_cast<std::size_t>(stride) * size_of(mlp_.dtype);
  std::vector<char> out(static_cast<std::size_t>(tokens) * pitch, '\xff');  // not-a-number, should it be read
  for (std::size_t r = 0; r < static_cast<std::size_t>(tokens); ++r)
    std::memcpy(out.data() + r * pitch, x_.data() + r * row_bytes(), row_bytes());
  return out;
}

std::string Problem::judge(const std::vector<std::int64_t>& rows, const void* y) const {
  const auto pool = take(cpu::ThreadPool::create(1));
  std::vector<char> gathered(rows.size() * row_bytes());
  std::vector<std::int64_t> ordered;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(gathered.data() + i * row_bytes(),
                x_.data() + static_cast<std::size_t>(rows[i]) * row_bytes(), row_bytes());
    ordered.push_back(static_cast<std::int64_t>(i));
  }
  const auto reference = take(cpu::reference(mlp_, host_weights_, gathered.data(), mlp_.dim, ordered, *pool));
  const cpu::Verdict verdict = cpu::judge(mlp_, reference, Rung::two_kernel, y, mlp_.dim);
  if (verdict.ok) return {};
  return fmt::format("{}: error {:.2e}, framework {:.2e}, bound {:.2e}, worst {:.1f} deviations",
                     verdict.reason, verdict.error, verdict.framework_error, verdict.bound, verdict.worst);
}

}  // namespace ingot::check
