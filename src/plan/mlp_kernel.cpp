// SPDX-License-Identifier: Apache-2.0
#include "plan/mlp_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "arch/sm90_cluster.h"
#include "arch/sm90_narrow.h"
#include "plan/label_reader.h"
#include "plan/sm90_shapes.h"
#include "plan/tuning.h"

namespace ingot {

namespace {

// What the second of two kernels has done before the first one is through, where it may start early.
constexpr double early_start_us = 0.9;

bool starts_early(const GpuDescription& gpu) {
  return gpu.major >= 9;
}

/// Calls with each kernel's tiles.
template <class Visit>
void each_kernel(Visit visit) {
  visit("narrow", arch::sm90::narrow_frames);
  visit("cluster", arch::sm90::cluster_frames);
}

/// What no tile can help; empty: nothing.
std::string_view reject_all(const MlpSpec& mlp, const GpuDescription& gpu) {
  if (!is_sm90(gpu)) return "compute capability 9.0 only";
  if (mlp.dtype == DType::f32) return "16-bit types only";
  if (!mlp.aligned) return "tensors, row strides and widths are multiples of 16 bytes";
  return {};
}

template <class Tile>
bool same(const Tile& a, const Tile& b) {
  return std::ranges::all_of(Tile::fields, [&](auto field) { return a.*field == b.*field; });
}
/// Whether it is one of the tiles that are worth trying: of others a table's file may hold anything.
bool is_listed(const MlpTile& tile) {
  bool listed = false;
  each_kernel([&](const char*, const auto& tiles) {
    for (const auto& each : tiles) {
      const auto* const other = std::get_if<std::remove_cvref_t<decltype(each)>>(&tile);
      listed = listed || (other != nullptr && same(*other, each));
    }
  });
  return listed;
}

template <class Tile>
std::optional<Tile> read(std::string_view label) {
  if (label.empty() || label.front() != Tile::letter) return std::nullopt;
  LabelReader in(label.substr(1));
  Tile tile{};
  bool first = true;
  for (const auto field : Tile::fields) {
    if (!first) in.expect('x');
    first = false;
    tile.*field = in.number(4, 0);
  }
  return in.done() ? std::optional(tile) : std::nullopt;
}

}  // namespace

MlpSpec mlp_spec(const Mlp& mlp, bool gate_first, Numerics numerics, bool aligned) {
  // Of the linears' rules, which are the same.
  const LinearSpec first = first_linear(mlp, gate_first, numerics, aligned);
  MlpSpec spec;
  spec.dim = mlp.dim;
  spec.hidden = mlp.hidden;
  spec.activation = first.activation;
  spec.gated = first.gated;
  spec.gate_first = first.gate_first;
  spec.up_bias = spec.down_bias = mlp.bias;
  spec.dtype = mlp.dtype;
  spec.numerics = numerics;
  spec.aligned = first.aligned;
  return spec;
}

std::vector<int> fields_of(const MlpTile& tile) {
  return std::visit(
      [](const auto& t) {
        std::vector<int> values;
        for (const auto field : t.fields) values.push_back(t.*field);
        return values;
      },
      tile);
}

std::string label(const MlpTile& tile) {
  const char letter = std::visit([](const auto& t) { return t.letter; }, tile);
  return fmt::format("{}{}", letter, fmt::join(fields_of(tile), "x"));
}

Result<MlpTile> parse_mlp_tile(std::string_view label) {
  if (const auto narrow = read<sm90::NarrowTile>(label)) return MlpTile(*narrow);
  if (const auto cluster = read<sm90::ClusterTile>(label)) return MlpTile(*cluster);
  return Error{ErrorCode::invalid_argument, fmt::format("tile: '{}' is no label of a tile", label)};
}

std::string_view reject(const MlpSpec& mlp, const MlpTile& tile, const GpuDescription& gpu) {
  if (const std::string_view reason = reject_all(mlp, gpu); !reason.empty()) return reason;
  return std::visit([&](const auto& t) { return arch::sm90::reject(t, sm90_shape(mlp)); }, tile);
}

double forecast_us(const MlpSpec& mlp, const MlpTile& tile, std::int64_t tokens, const GpuDescription& gpu) {
  tokens = std::max<std::int64_t>(tokens, 1);
  return std::visit(
      [&](const auto& t) { return arch::sm90::forecast_us(t, sm90_shape(mlp), tokens, sm90_card(gpu)); },
      tile);
}

std::int64_t scratch_bytes(const MlpSpec& mlp, const MlpTile& tile, std::int64_t tokens,
                           const GpuDescription& gpu) {
  return std::visit(
      [&](const auto& t) {
        return arch::sm90::scratch_bytes(t, sm90_shape(mlp), tokens, gpu.multiprocessors);
      },
      tile);
}

std::int64_t most_scratch_bytes(const MlpSpec& mlp, std::int64_t tokens, const GpuDescription& gpu) {
  std::int64_t most = 0;
  each_kernel([&](const char*, const auto& tiles) {
    for (const auto& tile : tiles) {
      if (reject(mlp, tile, gpu).empty()) most = std::max(most, scratch_bytes(mlp, tile, tokens, gpu));
    }
  });
  return most;
}

int shared_bytes(const MlpSpec& mlp, const MlpTile& tile) {
  return std::visit([&](const auto& t) { return arch::sm90::shared_bytes(t, sm90_shape(mlp)); }, tile);
}

MlpPick choose_mlp_kernel(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                          const KernelOptions& options) {
  // Whether the gate lies first changes no time.
  const MlpSpec spec = mlp_spec(mlp, true, options.numerics, options.aligned);
  const std::int64_t of_class = token_class(tokens).representative;
  if (options.tuned != nullptr) {
    const TunedMlp* const tuned = options.tuned->find(spec, of_class);
    if (tuned != nullptr && tuned->tile && is_listed(*tuned->tile) && reject(spec, *tuned->tile, gpu).empty())
      return {*tuned->tile, forecast_us(spec, *tuned->tile, tokens, gpu), true, true};
  }
  MlpPick best;
  each_kernel([&](const char*, const auto& tiles) {
    for (const auto& tile : tiles) {
      if (!reject(spec, tile, gpu).empty()) continue;
      const double us = forecast_us(spec, tile, of_class, gpu);
      if (best.found && us >= best.us) continue;
      best = {.tile = tile, .us = us, .found = true};
    }
  });
  if (best.found) best.us = forecast_us(spec, best.tile, tokens, gpu);
  return best;
}

KernelRoute choose_route(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                         const KernelOptions& options, std::optional<Rung> asked) {
  const std::int64_t of_class = token_class(tokens).representative;
  KernelRoute route;
  route.pair = choose_kernels(mlp, tokens, gpu, options);
  route.pair_us = route.pair.first_us + route.pair.second_us - (starts_early(gpu) ? early_start_us : 0);
  route.one = choose_mlp_kernel(mlp, tokens, gpu, options);
  if (asked == Rung::one_kernel || asked == Rung::two_kernel) {
    route.takes_one = asked == Rung::one_kernel;
    return route;
  }
  if (!route.one.found || !route.pair.found) {
    route.takes_one = route.one.found;
    return route;
  }
  const MlpSpec spec = mlp_spec(mlp, true, options.numerics, options.aligned);
  const TunedMlp* const tuned = options.tuned == nullptr ? nullptr : options.tuned->find(spec, of_class);
  // A measured tile that is not legal any more says nothing.
  if (tuned != nullptr && (!tuned->tile || route.one.tuned)) {
    route.takes_one = tuned->tile.has_value();
    route.measured = true;
  } else if (tokens != of_class) {
    route.takes_one = choose_route(mlp, of_class, gpu, options, asked).takes_one;
  } else {
    route.takes_one = route.one.us <= route.pair_us;
  }
  return route;
}

std::vector<MlpTile> rank_mlp_kernels(const MlpSpec& mlp, std::int64_t tokens, const GpuDescription& gpu,
                                      std::size_t count) {
  const std::int64_t of_class = token_class(tokens).representative;
  std::vector<std::pair<double, MlpTile>> ranking;
  each_kernel([&](const char*, const auto& tiles) {
    for (const auto& tile : tiles) {
      if (reject(mlp, tile, gpu).empty()) ranking.emplace_back(forecast_us(mlp, tile, of_class, gpu), tile);
    }
  });
  std::ranges::stable_sort(ranking, {}, [](const auto& entry) { return entry.first; });
  std::vector<MlpTile> tiles;
  for (const auto& [us, tile] : ranking) {
    if (tiles.size() < count) tiles.push_back(tile);
  }
  return tiles;
}

std::string why_no_mlp_kernel(const MlpSpec& mlp, const GpuDescription& gpu) {
  if (const std::string_view reason = reject_all(mlp, gpu); !reason.empty()) return std::string(reason);
  std::string out;
  bool found = false;
  each_kernel([&](const char* kernel, const auto& tiles) {
    std::string_view reason = "no tiles";
    for (const auto& tile : tiles) {
      reason = reject(mlp, tile, gpu);
      if (reason.empty()) found = true;
    }
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", kernel, reason);
  });
  return found ? "" : out;
}

}  // namespace ingot
