// SPDX-License-Identifier: Apache-2.0
//
// One MLP with random weights and inputs for the numeric tests, and a run of it with everything around the
// output guarded: strides wider than the rows, data off by one element, gaps and workspace filled with a
// pattern.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/buffer.h"
#include "cpu/describe.h"
#include "cpu/gemm.h"
#include "cpu/numbers.h"
#include "cpu/reference.h"
#include "ingot/engine.h"

namespace ingot::test {

/// An engine whose tiles are the same on every machine and whatever is stored there. native_bf16: bf16 is
/// multiplied as it is, where the processor can.
inline Engine open_engine(int threads, bool native_bf16 = cpu::has_gemm_bf16()) {
  const cpu::CpuFacts facts{.name = "test CPU",
                            .processors = threads,
                            .l1_bytes = 32U << 10U,
                            .l2_bytes = 512U << 10U,
                            .l3_bytes = 8U << 20U,
                            .memory_bytes = 0};
  DeviceDescription description = cpu::estimate_cpu(facts, threads);
  description.cpu.native_bf16 = native_bf16;
  return Engine::open({.description = description}).value();
}

/// Uniform numbers, the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// In [-1, 1): the top bits of SplitMix64 (Steele, Lea and Flood, 2014).
  float next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    return static_cast<float>(static_cast<std::int32_t>(z >> 32U)) * 0x1p-31F;
  }

 private:
  std::uint64_t state_;
};

/// Numbers of a dtype as bytes.
class Numbers {
 public:
  Numbers() = default;
  Numbers(DType dtype, std::int64_t count, float scale, Random& random)
      : dtype_(dtype), bytes_(bytes(count)) {
    for (std::int64_t i = 0; i < count; ++i) set(i, random.next() * scale);
  }

  void* at(std::int64_t i) { return bytes_.data() + bytes(i); }
  const void* at(std::int64_t i) const { return bytes_.data() + bytes(i); }
  std::vector<char>& raw() { return bytes_; }

  void set(std::int64_t i, float value) {
    if (dtype_ == DType::f32) {
      std::memcpy(at(i), &value, sizeof value);
    } else {
      const std::uint16_t packed =
          dtype_ == DType::bf16 ? cpu::Element<DType::bf16>::pack(cpu::Element<DType::bf16>::round(value))
                                : cpu::Element<DType::f16>::pack(cpu::Element<DType::f16>::round(value));
      std::memcpy(at(i), &packed, sizeof packed);
    }
  }

 private:
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(dtype_); }

  DType dtype_ = DType::f32;
  std::vector<char> bytes_;
};

struct MlpCase {
  Mlp mlp;
  std::int64_t most_tokens = 0;
  std::int64_t x_stride = 0;
  Numbers up, gate, down, up_bias, gate_bias, down_bias, packed, packed_bias, x;

  MlpCase(const Mlp& of, std::int64_t tokens, std::uint64_t seed = 1) : mlp(of), most_tokens(tokens) {
    Random random(seed * 7919 + static_cast<std::uint64_t>(mlp.dim * 4099 + mlp.hidden));
    const DType dtype = mlp.dtype;
    const auto numbers = [&](std::int64_t count, float scale) {
      return Numbers(dtype, count, scale, random);
    };
    const std::int64_t weight = mlp.dim * mlp.hidden;
    const float dim_scale = std::sqrt(3.0F / static_cast<float>(mlp.dim));
    const float hidden_scale = std::sqrt(3.0F / static_cast<float>(mlp.hidden));
    up = numbers(weight, dim_scale);
    gate = numbers(mlp.gated ? weight : 0, dim_scale);
    down = numbers(weight, hidden_scale);
    up_bias = numbers(mlp.bias ? mlp.hidden : 0, 0.3F);
    gate_bias = numbers(mlp.bias && mlp.gated ? mlp.hidden : 0, 0.3F);
    down_bias = numbers(mlp.bias ? mlp.dim : 0, 0.3F);
    x_stride = mlp.dim + 3;
    x = numbers(1 + tokens * x_stride, std::sqrt(3.0F));
  }

  /// The same weights in another layout: results must not depend on it.
  Weights weights(GateLayout layout) {
    const auto bias = [&](Numbers& numbers) { return mlp.bias ? numbers.at(0) : nullptr; };
    Weights out;
    out.layout = layout;
    out.down = {down.at(0), 0, bias(down_bias)};
    if (layout == GateLayout::separate) {
      out.up = {up.at(0), 0, bias(up_bias)};
      if (mlp.gated) out.gate = {gate.at(0), 0, bias(gate_bias)};
      return out;
    }
    const bool gate_first = layout == GateLayout::packed_gate_first;
    packed = gate_first ? gate : up;
    append(packed, gate_first ? up : gate);
    packed_bias = gate_first ? gate_bias : up_bias;
    append(packed_bias, gate_first ? up_bias : gate_bias);
    out.up = {packed.at(0), 0, bias(packed_bias)};
    return out;
  }

  /// x off by one element and with gaps between its rows.
  const void* x_data() const { return x.at(1); }

 private:
  static void append(Numbers& to, Numbers& from) {
    to.raw().insert(to.raw().end(), from.raw().begin(), from.raw().end());
  }
};

/// Output of a run: rows `stride` apart, the first one element into the memory.
struct Output {
  std::vector<char> bytes;
  std::int64_t stride = 0;
  std::size_t element = 0;
  const void* data() const { return bytes.data() + element; }
};

/// Runs and checks that nothing but the output's rows was written. `gap`: elements between rows.
inline Output run_guarded(const PreparedMlp& prepared, const MlpCase& c, std::int64_t tokens,
                          std::int64_t gap) {
  constexpr char pattern = '\xa5';
  const std::size_t element = size_of(c.mlp.dtype);
  Output y;
  y.stride = c.mlp.dim + gap;
  y.element = element;
  y.bytes.assign((1 + static_cast<std::size_t>(tokens * y.stride) + 8) * element, pattern);
  const std::size_t needed = prepared.workspace_bytes(tokens);
  const auto workspace = cpu::Buffer<char>::allocate(needed);
  std::memset(workspace.data(), 0xff, needed);  // not-a-number in every dtype: reading before writing shows
  const Result<void> ran = prepared.run({.tokens = tokens,
                                         .x = c.x_data(),
                                         .x_row_stride = c.x_stride,
                                         .y = y.bytes.data() + element,
                                         .y_row_stride = y.stride,
                                         .workspace = workspace.data(),
                                         .workspace_bytes = needed,
                                         .stream = {}});
  EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
  const auto untouched = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (y.bytes[i] != pattern) return false;
    }
    return true;
  };
  const std::size_t row = static_cast<std::size_t>(c.mlp.dim) * element;
  const std::size_t pitch = static_cast<std::size_t>(y.stride) * element;
  bool clean = untouched(0, element);
  for (std::int64_t r = 0; r < tokens; ++r) {
    const std::size_t end = element + static_cast<std::size_t>(r) * pitch + row;
    clean = clean && untouched(end, end + pitch - row);
  }
  clean = clean && untouched(element + static_cast<std::size_t>(tokens) * pitch, y.bytes.size());
  EXPECT_TRUE(clean) << "written outside the output: " << to_string(c.mlp) << ", " << tokens << " tokens";
  return y;
}

}  // namespace ingot::test
