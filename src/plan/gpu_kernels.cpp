// SPDX-License-Identifier: Apache-2.0
//
// Which kernel, cut how, runs a linear on a GPU. Tiles, what forbids one and what one takes are in arch; here
// they are held against a linear, and the best is taken.
#include <algorithm>

#include "arch/sm80.h"
#include "arch/sm90.h"
#include "plan/linear.h"
#include "plan/sm90_shapes.h"
#include "plan/tuning.h"

namespace ingot {

namespace {

arch::sm80::LinearShape sm80_shape(const LinearSpec& linear) {
  return {.out = linear.out,
          .in = linear.in,
          .gated = linear.gated,
          .element_bytes = static_cast<int>(size_of(linear.dtype)),
          .aligned = linear.aligned};
}

arch::Chip chip_of(const GpuDescription& gpu) {
  return {.major = gpu.major,
          .minor = gpu.minor,
          .multiprocessors = gpu.multiprocessors,
          .tensor_flops_per_s = gpu.tensor_flops_per_s,
          .f32_flops_per_s = gpu.f32_flops_per_s,
          .memory_bytes_per_s = gpu.memory_bytes_per_s,
          .launch_s = gpu.launch_s};
}

bool has_sm90_kernels(const LinearSpec& linear, const GpuDescription& gpu) {
  return is_sm90(gpu) && linear.dtype != DType::f32 && linear.aligned;
}

/// The best so far.
struct Pick {
  KernelTile tile;
  double us = 0;
  bool found = false, tuned = false;

  void offer(const KernelTile& other, double other_us) {
    if (found && other_us >= us) return;
    tile = other;
    us = other_us;
    found = true;
  }
};

/// All of them.
struct Ranking {
  struct Entry {
    KernelTile tile;
    double us;
  };
  std::vector<Entry> entries;
  bool found = false;

  void offer(const KernelTile& tile, double us) {
    entries.push_back({tile, us});
    found = true;
  }
};

template <class Frames, class Sink>
void offer_sm90(const Frames& frames, const arch::sm90::LinearShape& shape, std::int64_t tokens,
                const arch::sm90::Card& card, Sink& best) {
  for (const auto& frame : frames) {
    const auto tile = arch::sm90::with_stages(frame, shape);
    if (tile.stages == 0 || !arch::sm90::reject(tile, shape).empty()) continue;
    best.offer(tile, arch::sm90::forecast_us(tile, shape, tokens, card));
  }
}

template <class Tiles, class Sink>
void offer_sm80(const Tiles& tiles, const arch::sm80::LinearShape& shape, std::int64_t tokens,
                const arch::Chip& chip, Sink& best) {
  for (const sm80::Tile& tile : tiles) {
    if (!arch::sm80::reject(tile, shape, chip).empty()) continue;
    best.offer(tile, arch::sm80::forecast_us(tile, shape, tokens, chip));
  }
}

/// What can run the linear on this GPU: its own kernels, else the portable ones.
template <class Sink>
void offer_all(const LinearSpec& linear, std::int64_t tokens, const GpuDescription& gpu, Sink& best) {
  if (has_sm90_kernels(linear, gpu)) {
    const arch::sm90::LinearShape shape = sm90_shape(linear);
    offer_sm90(arch::sm90::gemm_frames, shape, tokens, sm90_card(gpu), best);
    offer_sm90(arch::sm90::few_frames, shape, tokens, sm90_card(gpu), best);
  }
  if (best.found || gpu.major < 8) return;
  const arch::sm80::LinearShape shape = sm80_shape(linear);
  if (linear.dtype == DType::f32) {
    offer_sm80(arch::sm80::f32_tiles, shape, tokens, chip_of(gpu), best);
  } else {
    offer_sm80(arch::sm80::tiles, shape, tokens, chip_of(gpu), best);
  }
}

Pick pick(const LinearSpec& linear, std::int64_t tokens, const GpuDescription& gpu,
          const TuningTable* tuned) {
  const std::int64_t of_class = token_class(tokens).representative;
  if (tuned != nullptr) {
    const KernelTile* tile = tuned->find(linear, of_class);
    if (tile != nullptr && can_run(linear, *tile, gpu)) {
      return {*tile, forecast_us(linear, *tile, tokens, gpu), true, true};
    }
  }
  Pick best;
  offer_all(linear, of_class, gpu, best);
  if (best.found) best.us = forecast_us(linear, best.tile, tokens, gpu);
  return best;
}

}  // namespace

bool can_run(const LinearSpec& linear, const KernelTile& tile, const GpuDescription& gpu) {
  if (gpu.major < 8) return false;
  if (const auto* portable = std::get_if<sm80::Tile>(&tile)) {
    return arch::sm80::reject(*portable, sm80_shape(linear), chip_of(gpu)).empty();
  }
  if (!has_sm90_kernels(linear, gpu)) return false;
  const arch::sm90::LinearShape shape = sm90_shape(linear);
  if (const auto* few = std::get_if<sm90::FewTile>(&tile)) return arch::sm90::reject(*few, shape).empty();
  return arch::sm90::reject(std::get<sm90::GemmTile>(tile), shape).empty();
}

double forecast_us(const LinearSpec& linear, const KernelTile& tile, std::int64_t tokens,
                   const GpuDescription& gpu) {
  tokens = std::max<std::int64_t>(tokens, 1);
  if (const auto* portable = std::get_if<sm80::Tile>(&tile)) {
    return arch::sm80::forecast_us(*portable, sm80_shape(linear), tokens, chip_of(gpu));
  }
  const arch::sm90::LinearShape shape = sm90_shape(linear);
  const arch::sm90::Card card = sm90_card(gpu);
  if (const auto* few = std::get_if<sm90::FewTile>(&tile)) {
    return arch::sm90::forecast_us(*few, shape, tokens, card);
  }
  return arch::sm90::forecast_us(std::get<sm90::GemmTile>(tile), shape, tokens, card);
}

KernelPair choose_kernels(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                          const KernelOptions& options) {
  // Whether the gate lies first changes no time.
  const Pick first =
      pick(first_linear(mlp, true, options.numerics, options.aligned), tokens, gpu, options.tuned);
  Pick second = pick(second_linear(mlp, options.numerics, options.aligned), tokens, gpu, options.tuned);
  if (first.found && second.found && !second.tuned) {
    second.tile =
        fit_behind(first_linear(mlp, true, options.numerics, options.aligned), first.tile, second.tile);
  }
  return {first.tile,  second.tile, first.us, second.us, first.found && second.found,
          first.tuned, second.tuned};
}

KernelTile fit_behind(const LinearSpec& first_linear, const KernelTile& first, const KernelTile& second) {
  const auto* one = std::get_if<sm90::FewTile>(&first);
  const auto* two = std::get_if<sm90::FewTile>(&second);
  if (one == nullptr || two == nullptr) return second;
  return arch::sm90::beside(*one, first_linear.gated, *two);
}

std::vector<KernelTile> rank_kernels(const LinearSpec& linear, std::int64_t tokens, const GpuDescription& gpu,
                                     std::size_t count) {
  Ranking ranking;
  offer_all(linear, token_class(tokens).representative, gpu, ranking);
  std::ranges::stable_sort(ranking.entries, {}, &Ranking::Entry::us);
  std::vector<KernelTile> tiles;
  for (const Ranking::Entry& entry : ranking.entries) {
    if (tiles.size() == count) break;
    // Frames that differ only in what this linear does not use come out as one tile.
    const std::string name = label(entry.tile);
    if (std::ranges::none_of(tiles, [&](const KernelTile& tile) { return label(tile) == name; }))
      tiles.push_back(entry.tile);
  }
  return tiles;
}

}  // namespace ingot
