// SPDX-License-Identifier: Apache-2.0
//
// A whole MLP as one GPU kernel is compiled for it, the tiles there are, and which of them the planner takes.
// As with linears, tokens are not part of a kernel. A new kernel is one more alternative of MlpTile, its
// layout in kernels/, its rules in arch/, and its launch in src/gpu.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/sm90/cluster_layout.cuh"
#include "kernels/sm90/narrow_layout.cuh"
#include "plan/linear.h"

namespace ingot {

/// y[tokens, dim] = step(x[tokens, dim] W1^T + b1) W2^T + b2, the step as in ingot/mlp.h.
struct MlpSpec {
  std::int64_t dim = 0, hidden = 0;
  Activation activation = Activation::identity;
  bool gated = false;
  bool gate_first = true;  ///< gated: gate's weights lie before up's in memory
  bool up_bias = false;    ///< gated: of gate and up
  bool down_bias = false;
  DType dtype = DType::bf16;
  Numerics numerics = Numerics::match;
  bool aligned = true;  ///< every row of every tensor starts at a multiple of 16 bytes

  bool operator==(const MlpSpec&) const = default;
};

/// With the biases that the MLP may have. `aligned`: of addresses and row strides; the spec's own is false,
/// too, where a width is no multiple of 16 bytes.
MlpSpec mlp_spec(const Mlp& mlp, bool gate_first, Numerics numerics, bool aligned = true);

/// Which kernel, and how it is cut. All are Hopper's: 16-bit types, tensors at 16-byte addresses and strides.
/// narrow: y and one chunk of hidden stay in registers, weights stream past. cluster: the blocks of a cluster
/// share a few tokens, each with a slice of hidden.
using MlpTile = std::variant<sm90::NarrowTile, sm90::ClusterTile>;

/// The kernel's letter and its tile's fields in order: "n64x1", "c8x4".
std::string label(const MlpTile& tile);
/// The fields alone, as the kernel's template takes them: {64, 1}.
std::vector<int> fields_of(const MlpTile& tile);
/// Error invalid_argument: not a label.
Result<MlpTile> parse_mlp_tile(std::string_view label);

/// Why the kernel of this tile cannot be made for this MLP on this GPU; empty: it can.
std::string_view reject(const MlpSpec& mlp, const MlpTile& tile, const GpuDescription& gpu);
/// What the launch takes, in microseconds. The tile is legal; tokens >= 1.
double forecast_us(const MlpSpec& mlp, const MlpTile& tile, std::int64_t tokens, const GpuDescription& gpu);
/// What a launch needs of the caller's workspace, in bytes. Never less for more tokens.
std::int64_t scratch_bytes(const MlpSpec& mlp, const MlpTile& tile, std::int64_t tokens,
                           const GpuDescription& gpu);
/// The most that any legal tile needs of it.
std::int64_t most_scratch_bytes(const MlpSpec& mlp, std::int64_t tokens, const GpuDescription& gpu);
/// Dynamic shared memory of a block. The tile is legal.
int shared_bytes(const MlpSpec& mlp, const MlpTile& tile);

/// The kernel of `one_kernel`.
struct MlpPick {
  MlpTile tile;
  double us = 0;  ///< forecast, launch included
  bool found = false;
  bool tuned = false;  ///< a measured choice
};
/// The legal tile with the least forecast for the class of `tokens`, with the forecast of `tokens`; a
/// measured one comes first. Pure, allocates nothing.
MlpPick choose_mlp_kernel(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                          const KernelOptions& options);

/// How Ingot's own kernels run an MLP: as a pair, or as one.
struct KernelRoute {
  KernelPair pair;
  double pair_us = 0;  ///< forecast of both; less than their sum where the second may start early
  MlpPick one;
  bool takes_one = false;  ///< else the pair
  bool measured = false;   ///< what decided between them

  bool found() const { return takes_one ? one.found : pair.found; }
};
/// Tiles and the way taken are those of the tokens' class, forecasts those of `tokens`. `asked`: one_kernel
/// or two_kernel decide it; others and none leave it to what was measured, else to the forecasts. Pure,
/// allocates nothing.
KernelRoute choose_route(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                         const KernelOptions& options, std::optional<Rung> asked = {});

/// The tiles with the least forecasts for the class of `tokens`, best first, at most `count`.
std::vector<MlpTile> rank_mlp_kernels(const MlpSpec& mlp, std::int64_t tokens, const GpuDescription& gpu,
                                      std::size_t count);

/// Why no tile is legal, each kernel with its reason: "narrow: …; cluster: …". Empty where one is.
std::string why_no_mlp_kernel(const MlpSpec& mlp, const GpuDescription& gpu);

}  // namespace ingot
