// SPDX-License-Identifier: Apache-2.0
//
// One linear as a GPU kernel is compiled for it, the tiles there are, and which a pair of them the planner
// takes. Tokens are not part of a kernel: another number of tokens may choose another tile, never another
// text for the same tile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingot/mlp.h"
#include "ingot/plan.h"
#include "ingot/status.h"
#include "kernels/sm80/layout.cuh"
#include "kernels/sm90/layout.cuh"

namespace ingot {

/// y[tokens, out] = step(x[tokens, in] W^T + bias). Gated: W is gate and up, each [out, in].
struct LinearSpec {
  std::int64_t out = 0, in = 0;
  Activation activation = Activation::identity;  ///< applied to the sums (gated: to the gate's)
  bool gated = false;
  bool gate_first = true;  ///< gated: gate's weights lie before up's in memory
  bool bias = false;
  DType dtype = DType::bf16;
  Numerics numerics = Numerics::match;
  bool aligned = true;  ///< every row of every tensor starts at a multiple of 16 bytes

  bool operator==(const LinearSpec&) const = default;
};

/// The two linears of an MLP: x to hidden, and hidden to y. `aligned`: of addresses and row strides; the
/// linear's own is false, too, where a width is no multiple of 16 bytes.
LinearSpec first_linear(const Mlp& mlp, bool gate_first, Numerics numerics, bool aligned = true);
LinearSpec second_linear(const Mlp& mlp, Numerics numerics, bool aligned = true);

/// Which kernel, and how it is cut. sm90: TMA and wgmma, 16-bit types, widths that are multiples of 8,
/// tensors at 16-byte addresses and strides. sm80: mma.sync or plain multiply-adds (f32), everything else.
using KernelTile = std::variant<sm90::GemmTile, sm90::FewTile, sm80::Tile>;

/// "g2x1x256s3c21e" (warpgroups x blocks of 64 rows x columns, stages, cluster rows and columns, kN splits of
/// K, e: epilogue warps, lN lag), "f1x2x32s8h1k4" (feature x K warpgroups x tokens, stages, share, splits),
/// "p128x128x32s3w2x4" (sm80: rows x columns x K block, stages, warps along rows x columns). Parts that are 1
/// (splits, share) or off are left out.
std::string label(const KernelTile& tile);
/// Error invalid_argument: not a label.
Result<KernelTile> parse_tile(std::string_view label);

/// Whether the kernel of this tile can be made for this linear on this GPU.
bool can_run(const LinearSpec& linear, const KernelTile& tile, const GpuDescription& gpu);
/// What one launch takes, in microseconds. The tile can_run(); tokens >= 1.
double forecast_us(const LinearSpec& linear, const KernelTile& tile, std::int64_t tokens,
                   const GpuDescription& gpu);

class TuningTable;

/// What decides the kernels beside MLP and tokens.
struct KernelOptions {
  Numerics numerics = Numerics::match;
  bool aligned = true;  ///< every address and row stride is a multiple of 16 bytes (weights: of `prepare`)
  const TuningTable* tuned = nullptr;  ///< measured choices that come before the forecasts
};

/// Both launches of `two_kernel`.
struct KernelPair {
  KernelTile first, second;
  double first_us = 0, second_us = 0;  ///< forecasts, launch included
  bool found = false;
  bool first_tuned = false, second_tuned = false;  ///< a measured choice
};

/// The pair with the least forecast among the legal ones. The tiles are those of the tokens' class, the
/// forecasts those of `tokens`. Pure, allocates nothing; a few microseconds, so callers keep the answer per
/// class. Not found: on a GPU older than compute capability 8.0.
KernelPair choose_kernels(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                          const KernelOptions& options);

/// `second` as it runs best behind `first`: where both are few tokens' kernels, with no more stages than let
/// its blocks start beside the first's.
KernelTile fit_behind(const LinearSpec& first_linear, const KernelTile& first, const KernelTile& second);

/// The tiles with the least forecasts for a linear and the class of `tokens`, best first, at most `count`.
std::vector<KernelTile> rank_kernels(const LinearSpec& linear, std::int64_t tokens, const GpuDescription& gpu,
                                     std::size_t count);

/// Numbers of tokens that run the same kernels: each its own up to 64, then 32 classes to every doubling.
/// `representative` is the greatest of the class, `next` the least of the class above.
struct TokenClass {
  std::int64_t representative = 0, next = 0;
  int index = 0;  ///< counts up from 0 without gaps, for tables
};
/// Less than one token counts as one.
TokenClass token_class(std::int64_t tokens);
/// One more than any index.
inline constexpr int token_classes = 64 + 32 * 56;

}  // namespace ingot
