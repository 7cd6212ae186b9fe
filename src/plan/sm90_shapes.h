// SPDX-License-Identifier: Apache-2.0
//
// MLPs, their linears and GPUs as arch/sm90.h and its neighbours take them.
#pragma once

#include "arch/sm90.h"
#include "arch/sm90_mlp.h"
#include "plan/mlp_kernel.h"

namespace ingot {

inline arch::sm90::Card sm90_card(const GpuDescription& gpu) {
  using namespace arch::sm90;
  const double each = gpu.tensor_flops_per_s / gpu.multiprocessors;
  return {.multiprocessors = gpu.multiprocessors,
          .speed = each / (tensor_flops_per_s / arch::sm90::multiprocessors),
          .memory = gpu.memory_bytes_per_s / memory_bytes_per_s,
          .launch_us = 1e6 * gpu.launch_s};
}

/// Whether the activation is a few instructions.
inline bool has_short_tanh(Activation activation, DType dtype) {
  return activation == Activation::identity || activation == Activation::relu || dtype == DType::bf16;
}

inline arch::sm90::LinearShape sm90_shape(const LinearSpec& linear) {
  return {.out = linear.out,
          .in = linear.in,
          .gated = linear.gated,
          .bias = linear.bias,
          .activated = linear.gated || linear.activation != Activation::identity,
          .rounds = linear.numerics == Numerics::match,
          .short_tanh = has_short_tanh(linear.activation, linear.dtype)};
}

inline arch::sm90::MlpShape sm90_shape(const MlpSpec& mlp) {
  return {.dim = mlp.dim,
          .hidden = mlp.hidden,
          .gated = mlp.gated,
          .up_bias = mlp.up_bias,
          .down_bias = mlp.down_bias,
          .activated = mlp.gated || mlp.activation != Activation::identity,
          .rounds = mlp.numerics == Numerics::match,
          .short_tanh = has_short_tanh(mlp.activation, mlp.dtype)};
}

/// wgmma is Hopper's alone: nothing newer runs it.
inline bool is_sm90(const GpuDescription& gpu) {
  return gpu.major == 9 && gpu.minor == 0;
}

}  // namespace ingot
