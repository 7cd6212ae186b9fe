// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <tuple>

#include "trace/context.h"
#include "trace/mlp_finder.h"

namespace ingot::trace {

namespace {

/// Time a fused kernel would take on a card, in microseconds: the larger of arithmetic at 80 % of the data
/// sheet's dense rate and bytes at 90 % of its bandwidth (what well-made kernels sustain:
/// docs/cost-model.md), plus one launch.
std::optional<double> fused_estimate_us(const Card* card, const MlpCall& mlp) {
  constexpr double reachable_rate = 0.80;
  constexpr double reachable_bandwidth = 0.90;
  constexpr double launch_us = 2.0;
  const std::optional<std::uint64_t> bytes = fused_bytes(mlp);
  if (card == nullptr || !bytes) return std::nullopt;
  const double peak = peak_flops(*card, mlp.dtype);
  if (peak <= 0 || card->bandwidth_tb_s <= 0) return std::nullopt;
  const double matrices = mlp.gated ? 3 : 2;
  const double flops = 2 * matrices * static_cast<double>(*mlp.tokens) * static_cast<double>(*mlp.dim) *
                       static_cast<double>(*mlp.hidden);
  const double compute_us = flops / (peak * reachable_rate) * 1e6;
  const double memory_us =
      static_cast<double>(*bytes) / (card->bandwidth_tb_s * 1e12 * reachable_bandwidth) * 1e6;
  return std::max(compute_us, memory_us) + launch_us;
}

/// Tokens and widths alone do not make two MLPs one row: form, type, evidence and region must agree as well.
using RowKey =
    std::tuple<std::string, bool, std::optional<bool>, std::optional<bool>, std::optional<std::int64_t>,
               std::optional<std::int64_t>, std::optional<std::int64_t>, std::string, bool, std::string>;

/// Type of operands as the kernels' names have it, where the operators recorded none.
std::string dtype_from_kernels(Context& context, const MlpCall& call) {
  for (const std::uint32_t activity : call.activities) {
    if (context.trace.gpu.kind[activity] != ActivityKind::kernel) continue;
    const KernelName& name = context.names.of(context.trace.gpu.name[activity]);
    if (name.kind == KernelKind::gemm && !name.dtype.empty()) return name.dtype;
  }
  return "";
}

struct Building {
  MlpRow row;
  std::vector<double> times, bytes;
  std::uint64_t kernels = 0, memsets = 0, memcpys = 0;
  std::vector<std::size_t> found;  ///< entries of Context::mlps
};

}  // namespace

std::vector<MlpRow> mlp_rows(Context& context, const std::vector<Region>& regions) {
  const auto& gpu = context.trace.gpu;
  std::map<RowKey, Building> built;
  for (const StageSequence& sequence :
       stage_sequences(context.trace, context.links, context.signatures, context.names)) {
    for (MlpCall& call : find_mlps(context.trace, sequence)) {
      if (!call.shapes && call.activities.empty())
        continue;  // names of operators alone, none of which ran a kernel
      std::uint32_t annotation = none;
      for (const std::uint32_t activity : call.activities) {
        annotation = region_annotation(context, activity);
        if (annotation != none) break;
      }
      const std::string region =
          annotation == none
              ? ""
              : std::string(region_name(context.trace.strings[context.trace.annotations.name[annotation]]));
      const std::string dtype =
          call.dtype.empty() ? dtype_from_kernels(context, call) : std::string(call.dtype);
      Building& b = built[{call.activation, call.gated, call.packed, call.bias, call.tokens, call.dim,
                           call.hidden, dtype, call.shapes, region}];
      if (b.row.calls++ == 0) {
        MlpRow& row = b.row;
        row.activation = call.activation;
        row.gated = call.gated;
        row.packed = call.packed;
        row.bias = call.bias;
        row.tokens = call.tokens;
        row.dim = call.dim;
        row.hidden = call.hidden;
        if (!dtype.empty()) row.dtype = dtype;
        row.evidence = call.shapes ? "shapes" : "names";
        if (!region.empty()) row.region = region;
        row.fused_bytes_per_call = fused_bytes(call);
        row.fused_us_estimate = fused_estimate_us(context.card, call);
        for (const std::uint32_t activity : call.activities) {
          row.kernels.push_back(gpu.kind[activity] == ActivityKind::kernel
                                    ? context.names.of(gpu.name[activity]).short_name
                                    : std::string(context.trace.strings[gpu.name[activity]]));
        }
      }
      double time_us = 0;
      for (const std::uint32_t activity : call.activities) {
        time_us += context.duration_us(activity);
        if (gpu.kind[activity] == ActivityKind::kernel) ++b.kernels;
        if (gpu.kind[activity] == ActivityKind::memset) ++b.memsets;
        if (gpu.kind[activity] == ActivityKind::memcpy) ++b.memcpys;
      }
      b.times.push_back(time_us);
      if (call.bytes) b.bytes.push_back(static_cast<double>(*call.bytes));
      b.found.push_back(context.mlps.size());
      context.mlps.push_back({.row = 0, .activities = std::move(call.activities)});
    }
  }

  std::vector<Building*> order;
  for (auto& [key, b] : built) {
    MlpRow& row = b.row;
    const auto calls = static_cast<double>(row.calls);
    if (gpu.size() != 0) {
      row.kernels_per_call = static_cast<double>(b.kernels) / calls;
      row.gpu_us_per_call = median(std::move(b.times));
    }
    row.memsets_per_call = static_cast<double>(b.memsets) / calls;
    row.memcpys_per_call = static_cast<double>(b.memcpys) / calls;
    if (b.bytes.size() == row.calls)
      row.bytes_per_call = static_cast<std::uint64_t>(median(std::move(b.bytes)));
    for (const Region& region : regions) {
      if (row.region == region.name) row.calls_per_region_call = calls / static_cast<double>(region.calls);
    }
    order.push_back(&b);
  }
  std::stable_sort(order.begin(), order.end(), [](const Building* a, const Building* b) {
    return a->row.gpu_us_per_call.value_or(0) * static_cast<double>(a->row.calls) >
           b->row.gpu_us_per_call.value_or(0) * static_cast<double>(b->row.calls);
  });
  std::vector<MlpRow> rows;
  for (Building* b : order) {
    for (const std::size_t found : b->found)
      context.mlps[found].row = static_cast<std::uint32_t>(rows.size());
    rows.push_back(std::move(b->row));
  }
  return rows;
}

}  // namespace ingot::trace
