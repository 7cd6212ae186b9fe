// SPDX-License-Identifier: Apache-2.0
//
// A kernel's text names constants and nothing else; the algorithm is in kernels/. The static_asserts make
// host and device agree on how it is launched, or not compile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "jit/kernel.h"

namespace ingot::jit {

namespace {

std::string element(DType dtype) {
  return fmt::format("ingot::device::{}", to_string(dtype));
}

bool has_steps(const LinearSpec& linear) {
  return linear.gated || linear.activation != Activation::identity;
}

/// f32 needs no rounding to f32.
bool rounds_between(const LinearSpec& linear) {
  return linear.numerics == Numerics::match && linear.dtype != DType::f32;
}

/// What follows the linear, up to the store, which every kernel does itself.
std::string chain(const LinearSpec& linear) {
  std::vector<std::string> steps;
  const std::string type = element(linear.dtype);
  if (has_steps(linear)) {
    steps.push_back(fmt::format("ingot::device::Activate<ingot::activation::{}, {}>",
                                to_string(linear.activation), type));
  }
  if (linear.gated && rounds_between(linear))
    steps.push_back(fmt::format("ingot::device::RoundActivated<{}>", type));
  if (linear.gated) steps.emplace_back("ingot::device::Multiply");
  return fmt::format("ingot::device::Chain<{}>", fmt::join(steps, ", "));
}

/// Without a next step the store rounds, and ReLU's result is the same rounded before or after.
bool rounds(const LinearSpec& linear) {
  return rounds_between(linear) && has_steps(linear) &&
         (linear.gated || linear.activation != Activation::relu);
}

std::string linear_name(const LinearSpec& linear, bool names_gate_order) {
  return fmt::format("{}_{}_{}_{}to{}{}{}{}{}", to_string(linear.dtype), to_string(linear.numerics),
                     to_string(linear.activation), linear.in, linear.out, linear.gated ? "_gated" : "",
                     names_gate_order && linear.gated && !linear.gate_first ? "_upfirst" : "",
                     linear.bias ? "_bias" : "", linear.aligned ? "" : "_unaligned");
}

struct Parts {
  const char* file;
  const char* space;  ///< namespace
  const char* shape;  ///< templates
  const char* kernel;
  std::string arguments;
  int threads, shared_bytes, cluster;
  int shared_percent = all_shared;
};

Parts parts(const LinearSpec& l, const sm90::GemmTile& t) {
  return {"sm90/gemm.cuh",
          "sm90",
          "GemmShape",
          "Gemm",
          fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}", element(l.dtype),
                      chain(l), rounds(l) || t.epilogue_warps, l.out, l.in, l.gated, l.gate_first, l.bias,
                      t.consumers, t.subtiles, t.cols, t.stages, t.cluster_rows, t.cluster_cols, t.splits,
                      t.epilogue_warps, t.lag),
          threads(t),
          layout(t, l.gated).total,
          blocks_in_cluster(t)};
}

Parts parts(const LinearSpec& l, const sm90::FewTile& t) {
  return {"sm90/few.cuh",
          "sm90",
          "FewShape",
          "Few",
          fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}", element(l.dtype), chain(l),
                      rounds(l), l.out, l.in, l.gated, l.gate_first, l.bias, t.feature_warpgroups,
                      t.k_warpgroups, t.tokens, t.stages, t.share, t.splits),
          threads(t),
          layout(t, l.gated).total,
          blocks_in_cluster(t)};
}

/// Gate and up are two pointers here, so their order in memory makes no other kernel.
Parts parts(const LinearSpec& l, const sm80::Tile& t) {
  const bool f32 = l.dtype == DType::f32;
  return {f32 ? "f32/linear.cuh" : "sm80/linear.cuh",
          f32 ? "f32" : "sm80",
          "Shape",
          "Linear",
          fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}", element(l.dtype), chain(l),
                      l.out, l.in, l.gated, l.bias, rounds(l), t.rows, t.cols, t.block_k, t.stages,
                      t.warp_rows, t.warp_cols, l.aligned),
          threads(t),
          shared_bytes(t, static_cast<int>(size_of(l.dtype)), l.gated),
          1};
}

/// What the first half of a whole MLP does to hidden.
LinearSpec first_half(const MlpSpec& mlp) {
  LinearSpec linear;
  linear.out = mlp.hidden;
  linear.in = mlp.dim;
  linear.activation = mlp.activation;
  linear.gated = mlp.gated;
  linear.gate_first = mlp.gate_first;
  linear.bias = mlp.up_bias;
  linear.dtype = mlp.dtype;
  linear.numerics = mlp.numerics;
  linear.aligned = mlp.aligned;
  return linear;
}

/// `names_gate_order`: gate before up and behind are two kernels.
std::string mlp_name(const MlpSpec& mlp, bool names_gate_order) {
  return fmt::format("{}_{}_{}_{}to{}to{}{}{}{}{}", to_string(mlp.dtype), to_string(mlp.numerics),
                     to_string(mlp.activation), mlp.dim, mlp.hidden, mlp.dim, mlp.gated ? "_gated" : "",
                     names_gate_order && mlp.gated && !mlp.gate_first ? "_upfirst" : "",
                     mlp.up_bias ? "_upbias" : "", mlp.down_bias ? "_downbias" : "");
}

std::string mlp_arguments(const MlpSpec& m, const MlpTile& tile, bool names_gate_order) {
  const LinearSpec first = first_half(m);
  return fmt::format("{}, {}, {}, {}, {}, {}, {}{}, {}, {}", element(m.dtype), chain(first), rounds(first),
                     m.dim, m.hidden, m.gated, names_gate_order ? fmt::format("{}, ", m.gate_first) : "",
                     m.up_bias, m.down_bias, fmt::join(fields_of(tile), ", "));
}

Parts parts(const MlpSpec& m, const sm90::NarrowTile& t) {
  return {"sm90/narrow.cuh",         "sm90",     "NarrowShape",      "Narrow",
          mlp_arguments(m, t, true), threads(t), shared_bytes(m, t), blocks_in_cluster(t)};
}

/// Gate and up are two pointers here. Weights on their way to registers take room in the cache.
Parts parts(const MlpSpec& m, const sm90::ClusterTile& t) {
  return {"sm90/cluster.cuh",
          "sm90",
          "ClusterShape",
          "Cluster",
          mlp_arguments(m, t, false),
          threads(t),
          shared_bytes(m, t),
          blocks_in_cluster(t),
          shared_by_driver};
}

/// `shared`: how the shape names its dynamic shared memory.
KernelText text_of(const Parts& p, std::string name, const char* shared, const Target& target) {
  KernelText kernel;
  kernel.name = std::move(name);
  kernel.text = fmt::format(
      "#include \"{0}\"\n"
      "using Shape = ingot::{1}::{2}<{4}>;\n"
      "using Kernel = ingot::{1}::{3}<Shape>;\n"
      "static_assert(Kernel::threads == {5} && {6} == {7}, \"launch\");\n"
      "INGOT_KERNEL({8}, Kernel)\n",
      p.file, p.space, p.shape, p.kernel, p.arguments, p.threads, shared, p.shared_bytes, entry_point);
  kernel.target = target;
  kernel.threads = p.threads;
  kernel.shared_bytes = p.shared_bytes;
  kernel.cluster = p.cluster;
  kernel.shared_percent = p.shared_percent;
  return kernel;
}

}  // namespace

KernelText kernel_text(const LinearSpec& linear, const KernelTile& tile, const Target& target) {
  const bool sm90 = !std::holds_alternative<sm80::Tile>(tile);
  return text_of(std::visit([&](const auto& t) { return parts(linear, t); }, tile),
                 fmt::format("{}__{}", linear_name(linear, sm90), label(tile)),
                 sm90 ? "Shape::shared.total" : "Shape::shared_bytes", target);
}

KernelText kernel_text(const MlpSpec& mlp, const MlpTile& tile, const Target& target) {
  return text_of(
      std::visit([&](const auto& t) { return parts(mlp, t); }, tile),
      fmt::format("{}__{}", mlp_name(mlp, std::holds_alternative<sm90::NarrowTile>(tile)), label(tile)),
      "Shape::shared.total", target);
}

}  // namespace ingot::jit
