// SPDX-License-Identifier: Apache-2.0
//
// Tiles and forecasts of the CPU rungs. The model, its terms and how well it fits are in docs/cost-model.md.
#include <algorithm>
#include <cmath>

#include "plan/choose.h"

namespace ingot {

namespace {

// The library packs the weights for every call, which costs as much as some dozens of rows: the more rows,
// the less it weighs, as long as their sums stay in the second-level cache.
constexpr std::int64_t least_most_rows = 192, most_most_rows = 512;
// Narrower steps leave the GEMM too little work per call.
constexpr std::int64_t least_columns = 64, good_columns = 128;
// From one row, which the library multiplies in a loop of its own, to this many the cost of packing sets in.
constexpr double packed_rows = 15;
// Fewer rows of bf16 than this, but more than one, cost as much: the rows of a tile register (AMX).
constexpr std::int64_t least_bf16_rows = 16;
// Splits of a tile's columns start at multiples of this: two vectors of the widest instruction set.
constexpr std::int64_t column_grain = 32;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Rows per task so that every thread gets as many tiles as the others, give or take one row.
std::int64_t balanced_rows(std::int64_t tokens, std::int64_t threads, std::int64_t most_rows) {
  const std::int64_t rounds = std::max<std::int64_t>(1, divide_up(tokens, threads * most_rows));
  return std::max<std::int64_t>(1, divide_up(tokens, threads * rounds));
}

class CpuModel {
 public:
  CpuModel(const Mlp& mlp, std::int64_t tokens, const CpuDescription& cpu)
      : mlp_(mlp),
        tokens_(tokens),
        cpu_(cpu),
        first_(mlp.gated ? 2 : 1),
        native_(mlp.dtype == DType::bf16 && cpu.native_bf16),
        most_rows_(
            std::clamp(static_cast<std::int64_t>(cpu.l2_bytes / 4096), least_most_rows, most_most_rows)) {}

  Tile split_tile() const;
  Tile one_pass_tile() const;
  double seconds(Rung rung, const Tile& tile, bool packed) const;

 private:
  std::int64_t hidden_step(std::int64_t rows) const;
  double gemm(const Tile& tile, double weights) const;
  double overhead_rows(std::int64_t rows) const;
  double missed(double bytes) const;
  double cached_stream() const;
  double moved(double bytes) const;
  double output_sums(const Tile& tile) const;
  double elements(bool hidden_stored) const;

  const Mlp& mlp_;
  std::int64_t tokens_;
  const CpuDescription& cpu_;
  int first_;    // linears into the hidden width
  bool native_;  // the library multiplies the 16-bit weights as they are
  std::int64_t most_rows_;
};

/// Columns whose gate and up sums take a quarter of the second-level cache, or half of it where that is
/// little; the rest is the GEMM's own.
std::int64_t CpuModel::hidden_step(std::int64_t rows) const {
  const auto budget = static_cast<std::int64_t>(cpu_.l2_bytes / 4 / sizeof(float));
  std::int64_t columns = budget / (rows * first_) / least_columns * least_columns;
  if (columns < good_columns)
    columns = std::min(good_columns, 2 * budget / (rows * first_) / least_columns * least_columns);
  return std::clamp(columns, std::min(least_columns, mlp_.hidden), mlp_.hidden);
}

/// Rungs with a barrier between the linears: tiles of tokens, each shared by several tasks when there are
/// fewer tiles than threads.
Tile CpuModel::split_tile() const {
  Tile tile;
  const std::int64_t threads = cpu_.threads;
  if (tokens_ >= threads * most_rows_) {
    tile.tokens = balanced_rows(tokens_, threads, most_rows_);
  } else {
    // All weights are read once per tile: one tile, and the threads share its columns.
    tile.tokens = std::clamp<std::int64_t>(tokens_, 1, most_rows_);
    const double work =
        flops(mlp_, tokens_) / cpu_.gemm_flops_per_s + least_bytes(mlp_, 0) / cpu_.cache_bytes_per_s;
    const std::int64_t most_splits = divide_up(std::min(mlp_.hidden, mlp_.dim), column_grain);
    if (work > 2 * cpu_.task_s) tile.splits = std::min(threads, most_splits);
  }
  tile.hidden = hidden_step(tile.tokens);
  return tile;
}

Tile CpuModel::one_pass_tile() const {
  Tile tile;
  tile.tokens = balanced_rows(tokens_, cpu_.threads, most_rows_);
  tile.hidden = hidden_step(tile.tokens);
  return tile;
}

/// Rows that a product of `rows` rows takes the time of, beyond its own.
double CpuModel::overhead_rows(std::int64_t rows) const {
  if (rows == 1) return 0;  // a single row is read along and nothing packed
  if (!native_) {
    return std::min(1.0, static_cast<double>(rows - 1) / packed_rows) * cpu_.gemm_row_overhead;
  }
  return static_cast<double>(std::max<std::int64_t>(0, least_bf16_rows - rows)) + cpu_.bf16_row_overhead;
}

/// Products of all tokens with `weights` elements.
double CpuModel::gemm(const Tile& tile, double weights) const {
  const double tiles = static_cast<double>(divide_up(tokens_, tile.tokens));
  const double rows = static_cast<double>(tokens_) + tiles * overhead_rows(tile.tokens);
  double compute = 2 * rows * weights / (native_ ? cpu_.bf16_flops_per_s : cpu_.gemm_flops_per_s);
  // 16-bit weights that the library does not multiply become f32 once for every tile.
  if (mlp_.dtype != DType::f32 && !native_) {
    compute += tiles * weights * cpu_.convert_s[static_cast<std::size_t>(mlp_.dtype)];
  }
  const auto element = static_cast<double>(size_of(mlp_.dtype));
  const double from_memory = missed(static_cast<double>(parameter_count(mlp_)) * element);
  const double read = weights * element *
                      (from_memory / cpu_.memory_bytes_per_s + (1 - from_memory) / cpu_.cache_bytes_per_s);
  return compute + read * std::max(1.0, tiles / cpu_.threads);
}

/// Of `bytes` gone through again and again, the share that the last-level cache does not hold: what is beyond
/// its size, and as much again that this pushes out.
double CpuModel::missed(double bytes) const {
  const double cached = cpu_.cached_bytes > 0 ? cpu_.cached_bytes : static_cast<double>(cpu_.l3_bytes);
  return bytes <= cached ? 0 : std::min(1.0, 2 * (1 - cached / bytes));
}

double CpuModel::cached_stream() const {
  return cpu_.cache_stream_bytes_per_s > 0 ? cpu_.cache_stream_bytes_per_s : cpu_.cache_bytes_per_s;
}

/// A pass over memory: bytes read and written.
double CpuModel::moved(double bytes) const {
  const double from_memory = missed(bytes);
  return bytes * (from_memory / cpu_.stream_bytes_per_s + (1 - from_memory) / cached_stream());
}

/// one_pass adds to a tile's output sums once for every step of hidden columns: free beside f32 products
/// where they stay in the second-level cache, never free beside products in bf16.
double CpuModel::output_sums(const Tile& tile) const {
  const double bytes = static_cast<double>(tile.tokens * mlp_.dim) * sizeof(float);
  if (!native_ && bytes <= static_cast<double>(cpu_.l2_bytes) / 2) return 0;
  const auto steps = static_cast<double>(divide_up(mlp_.hidden, tile.hidden));
  return 2 * steps * static_cast<double>(tokens_ * mlp_.dim) * sizeof(float) / cached_stream();
}

/// Element-wise work in cache: hidden values, and 16-bit numbers to f32 and back around the GEMMs.
double CpuModel::elements(bool hidden_stored) const {
  const auto dtype = static_cast<std::size_t>(mlp_.dtype);
  const auto rows = static_cast<double>(tokens_);
  const double hidden = rows * static_cast<double>(mlp_.hidden), dim = rows * static_cast<double>(mlp_.dim);
  double time = hidden * cpu_.activation_s[dtype][static_cast<std::size_t>(mlp_.activation)];
  if (mlp_.gated) time += hidden * cpu_.gate_s[dtype];
  // To f32 and back; what the library multiplies as it is goes one way only.
  return time + (native_ ? 1 : 2) * (dim + (hidden_stored ? hidden : 0)) * cpu_.convert_s[dtype];
}

double CpuModel::seconds(Rung rung, const Tile& tile, bool packed) const {
  const double weight = static_cast<double>(mlp_.dim) * static_cast<double>(mlp_.hidden);
  const double row_bytes = static_cast<double>(tokens_) * static_cast<double>(size_of(mlp_.dtype));
  const double h = row_bytes * static_cast<double>(mlp_.hidden);
  const double y = row_bytes * static_cast<double>(mlp_.dim);
  const double gemms = gemm(tile, first_ * weight) + gemm(tile, weight);
  const double launches = traffic(mlp_, tokens_, rung, packed).launches;
  double time = gemms + elements(rung != Rung::one_pass) + launches * cpu_.task_s;
  switch (rung) {
    case Rung::matmul_add:
      if (mlp_.bias) time += moved(2 * first_ * h) + moved(2 * y);
      [[fallthrough]];
    case Rung::unfused:
      if (mlp_.activation != Activation::identity) time += moved(2 * h);
      if (mlp_.gated) time += moved(3 * h);
      break;
    case Rung::epilogue:
      time += moved(2 * h);
      break;
    case Rung::one_pass:
      time += output_sums(tile);
      break;
    case Rung::two_kernel:
    case Rung::one_kernel:
      break;
  }
  return time;
}

}  // namespace

void cpu_candidates(const Mlp& mlp, std::int64_t tokens, const CpuDescription& cpu,
                    const PlanOptions& options, std::array<Candidate, rung_count>& candidates) {
  const CpuModel model(mlp, tokens, cpu);
  for (Candidate& candidate : candidates) {
    if (is_compiled_rung(candidate.rung)) continue;  // nothing is compiled for a CPU
    candidate.rejected = Rejection::none;
    const bool one_pass = candidate.rung == Rung::one_pass;
    candidate.tile = one_pass ? model.one_pass_tile() : model.split_tile();
    // A forced rung runs even where it would be turned down.
    const bool forced = options.rung && *options.rung == candidate.rung;
    if (one_pass && !forced && tokens < cpu.threads) candidate.rejected = Rejection::too_few_tokens;
    if (candidate.rejected == Rejection::none) {
      candidate.forecast_us = 1e6 * model.seconds(candidate.rung, candidate.tile, options.packed);
    }
  }
}

}  // namespace ingot
