// SPDX-License-Identifier: Apache-2.0
#include "cpu/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace ingot::cpu {

namespace {

class Maker {
 public:
  Maker(const Mlp& mlp, const Passes& passes, CpuWeights& weights)
      : mlp_(mlp), passes_(passes), weights_(weights) {}

  bool make(const Linear& from, std::int64_t out, CpuLinear& to) {
    to.weight = from.weight;
    to.stride = from.row_stride;
    // Biases are small: a copy in f32, or zeros, leaves one form to the loops.
    to.bias = weights_.zeros;
    if (from.bias == nullptr) return true;
    float* const bias = own(static_cast<std::size_t>(out));
    if (bias == nullptr) return false;
    passes_.widen(mlp_.dtype, {1, out}, {from.bias, out}, {bias, out});
    to.bias = bias;
    return true;
  }

  bool make_zeros() {
    const std::int64_t longest = std::max(mlp_.dim, mlp_.hidden);
    float* const zeros = own(static_cast<std::size_t>(longest));
    if (zeros == nullptr) return false;
    std::fill_n(zeros, longest, 0.0F);
    weights_.zeros = zeros;
    return true;
  }

 private:
  float* own(std::size_t elements) {
    Buffer<float> buffer = Buffer<float>::allocate(elements);
    float* const data = buffer.data();
    if (data != nullptr) weights_.owned.push_back(std::move(buffer));
    return data;
  }

  const Mlp& mlp_;
  const Passes& passes_;
  CpuWeights& weights_;
};

}  // namespace

std::size_t CpuWeights::owned_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer<float>& buffer : owned) bytes += buffer.bytes();
  return bytes;
}

Result<CpuWeights> make_weights(const Mlp& mlp, const ResolvedWeights& weights, const Passes& passes) {
  try {
    CpuWeights made;
    Maker maker(mlp, passes, made);
    if (maker.make_zeros() && maker.make(weights.gate, mlp.hidden, made.gate) &&
        (!mlp.gated || maker.make(weights.up, mlp.hidden, made.up)) &&
        maker.make(weights.down, mlp.dim, made.down)) {
      return made;
    }
  } catch (const std::bad_alloc&) {
    // Reported below, as any other allocation that failed.
  }
  return Error{ErrorCode::out_of_memory, fmt::format("not enough memory to prepare {}", to_string(mlp))};
}

}  // namespace ingot::cpu
