// SPDX-License-Identifier: Apache-2.0
//
// What the engine says, as JSON: ladders, plans, the catalogue, the machine.
#include <cmath>
#include <nlohmann/json.hpp>

#include "ingot/report.h"

namespace ingot::report {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Nanoseconds are the resolution of clocks.
Json microseconds(double us) {
  return std::isfinite(us) ? Json(std::round(us * 1000) / 1000) : Json(nullptr);
}

/// Four significant digits: errors and rates are not known better.
Json significant(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

const char* layout_name(GateLayout layout) {
  switch (layout) {
    case GateLayout::separate:
      break;
    case GateLayout::packed_value_first:
      return "packed_value_first";
    case GateLayout::packed_gate_first:
      return "packed_gate_first";
  }
  return "separate";
}

Json mlp_object(const Mlp& mlp, std::int64_t tokens) {
  return {{"activation", to_string(mlp.activation)},
          {"gated", mlp.gated},
          {"bias", mlp.bias},
          {"tokens", tokens},
          {"dim", mlp.dim},
          {"hidden", mlp.hidden},
          {"dtype", to_string(mlp.dtype)}};
}

Json cpu_object(const CpuDescription& cpu) {
  return {{"threads", cpu.threads},
          {"isa", cpu.isa},
          {"library", cpu.library},
          {"l1_bytes", cpu.l1_bytes},
          {"l2_bytes", cpu.l2_bytes},
          {"l3_bytes", cpu.l3_bytes},
          {"gemm_flops_per_s", significant(cpu.gemm_flops_per_s)},
          {"cache_bytes_per_s", significant(cpu.cache_bytes_per_s)},
          {"memory_bytes_per_s", significant(cpu.memory_bytes_per_s)},
          {"stream_bytes_per_s", significant(cpu.stream_bytes_per_s)}};
}

Json gpu_object(const GpuDescription& gpu) {
  return {{"compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"l2_bytes", gpu.l2_bytes},
          {"tensor_flops_per_s", significant(gpu.tensor_flops_per_s)},
          {"f32_flops_per_s", significant(gpu.f32_flops_per_s)},
          {"memory_bytes_per_s", significant(gpu.memory_bytes_per_s)},
          {"launch_us", microseconds(1e6 * gpu.launch_s)}};
}

Json device_object(const DeviceDescription& device) {
  Json out{{"kind", to_string(device.kind)}, {"name", device.name}, {"source", device.source}};
  out.update(device.kind == DeviceKind::cpu ? cpu_object(device.cpu) : gpu_object(device.gpu));
  return out;
}

Json kernel_list(const std::vector<KernelPlan>& kernels) {
  Json list = Json::array();
  for (const KernelPlan& kernel : kernels) {
    list.push_back({{"name", kernel.name},
                    {"tile", kernel.tile},
                    {"forecast_us", microseconds(kernel.forecast_us)},
                    {"tuned", kernel.tuned}});
  }
  return list;
}

std::string joined_tiles(const std::vector<KernelPlan>& kernels) {
  std::string out;
  for (const KernelPlan& kernel : kernels) out += (out.empty() ? "" : ", ") + kernel.tile;
  return out;
}

/// Of a CPU's legal candidate; a GPU's kernels have theirs in a plan.
Json tile_or_null(const Candidate& candidate) {
  return candidate.tile.tokens > 0 && candidate.forecast_us > 0 ? Json(to_string(candidate.tile))
                                                                : Json(nullptr);
}

Json rung_object(const RungResult& rung) {
  const Candidate& candidate = rung.candidate;
  Json time = nullptr;
  if (rung.time.samples > 0) {
    time = {{"median", microseconds(rung.time.median_us)},
            {"min", microseconds(rung.time.min_us)},
            {"max", microseconds(rung.time.max_us)}};
  }
  return {{"name", to_string(candidate.rung)},
          {"launches", candidate.launches},
          {"time_us", time},
          {"bytes", candidate.bytes},
          {"speedup", rung.speedup ? significant(*rung.speedup) : Json(nullptr)},
          {"error", significant(rung.error)},
          {"ok", rung.ok},
          {"samples", rung.time.samples},
          {"forecast_us", microseconds(candidate.forecast_us)},
          {"tile", rung.kernels.empty() ? tile_or_null(candidate) : Json(joined_tiles(rung.kernels))},
          {"chosen", rung.chosen},
          {"framework_error", significant(rung.framework_error)},
          {"error_bound", significant(rung.bound)},
          {"reason", rung.reason.empty() ? Json(nullptr) : Json(rung.reason)},
          {"sustained_us", rung.sustained_us ? microseconds(*rung.sustained_us) : Json(nullptr)},
          {"kernels", kernel_list(rung.kernels)}};
}

Json ladder_object(const Ladder& ladder) {
  Json rungs = Json::array();
  for (const RungResult& rung : ladder.rungs) rungs.push_back(rung_object(rung));
  Json skipped = Json::array();
  for (const SkippedRung& rung : ladder.skipped)
    skipped.push_back({{"name", to_string(rung.rung)}, {"reason", rung.reason}});
  Json mlp = mlp_object(ladder.mlp, ladder.tokens);
  mlp["layout"] = ladder.mlp.gated ? Json(layout_name(ladder.layout)) : Json(nullptr);
  return {{"device", device_object(ladder.device)},
          {"mlp", mlp},
          {"numerics", to_string(ladder.numerics)},
          {"seed", ladder.seed},
          {"floor",
           {{"flops", ladder.floor.flops},
            {"bytes", ladder.floor.bytes},
            {"compute_us", microseconds(ladder.floor.compute_us)},
            {"memory_us", microseconds(ladder.floor.memory_us)}}},
          {"rungs", std::move(rungs)},
          {"skipped", std::move(skipped)},
          {"library", ladder.library.empty() ? Json(nullptr) : Json(ladder.library)},
          {"copies", ladder.copies}};
}

Json candidate_object(const Candidate& candidate) {
  const bool legal = candidate.forecast_us > 0;
  return {
      {"rung", to_string(candidate.rung)},
      {"forecast_us", legal ? microseconds(candidate.forecast_us) : Json(nullptr)},
      {"rejected", candidate.rejected == Rejection::none ? Json(nullptr) : Json(rejection_text(candidate))},
      {"tile", tile_or_null(candidate)},
      {"launches", candidate.launches},
      {"bytes", candidate.bytes}};
}

}  // namespace

std::string json(const Ladder& ladder) {
  Json document{{"schema", "ingot.bench/1"}};
  document.update(ladder_object(ladder));
  return dump(document);
}

std::string json(const std::string& trace, const std::vector<Ladder>& ladders) {
  Json list = Json::array();
  for (const Ladder& ladder : ladders) list.push_back(ladder_object(ladder));
  return dump({{"schema", "ingot.bench/1"}, {"trace", trace}, {"ladders", std::move(list)}});
}

std::string json(const Plan& plan) {
  Json candidates = Json::array();
  for (const Candidate& candidate : plan.candidates) candidates.push_back(candidate_object(candidate));
  const Candidate& chosen = plan.chosen;
  const std::string tile = tile_text(plan);
  return dump({{"schema", "ingot.plan/1"},
               {"mlp", mlp_object(plan.mlp, plan.tokens)},
               {"device", device_object(plan.device)},
               {"numerics", to_string(plan.numerics)},
               {"chosen",
                {{"rung", to_string(chosen.rung)},
                 {"tile", tile.empty() ? Json(nullptr) : Json(tile)},
                 {"launches", chosen.launches},
                 {"bytes", chosen.bytes},
                 {"forecast_us", microseconds(chosen.forecast_us)},
                 {"kernels", kernel_list(plan.kernels)}}},
               {"candidates", std::move(candidates)}});
}

std::string json(const std::vector<KnownModel>& models) {
  Json list = Json::array();
  for (const KnownModel& model : models) {
    list.push_back({{"name", model.name},
                    {"title", model.title},
                    {"mlp", mlp_object(model.mlp, model.tokens)},
                    {"at", model.at.empty() ? Json(nullptr) : Json(model.at)},
                    {"blocks", model.blocks},
                    {"gate", model.gate.empty() ? Json(nullptr) : Json(model.gate)}});
    if (model.tokens == 0) list.back()["mlp"]["tokens"] = nullptr;
  }
  return dump({{"schema", "ingot.models/1"}, {"models", std::move(list)}});
}

std::string json(const Machine& machine) {
  Json gpus = Json::array(), missing = Json::array();
  for (const GpuDevice& gpu : machine.gpus) {
    gpus.push_back(
        {{"name", gpu.name},
         {"compute_capability", std::to_string(gpu.compute_major) + "." + std::to_string(gpu.compute_minor)},
         {"memory_bytes", gpu.memory_bytes}});
  }
  for (const MissingPart& part : machine.missing) {
    missing.push_back({{"what", part.what}, {"effect", part.effect}, {"command", part.command}});
  }
  return dump({{"schema", "ingot.doctor/1"},
               {"cpu",
                {{"name", machine.cpu},
                 {"processors", machine.processors},
                 {"instruction_sets", machine.instruction_sets},
                 {"loops_isa", machine.loops_isa},
                 {"l1_bytes", machine.l1_bytes},
                 {"l2_bytes", machine.l2_bytes},
                 {"l3_bytes", machine.l3_bytes},
                 {"measured", machine.measured ? device_object(*machine.measured) : Json(nullptr)}}},
               {"memory", {{"bytes", machine.memory_bytes}, {"available_bytes", machine.available_bytes}}},
               {"gemm", {{"library", machine.gemm_library}, {"dtypes", machine.gemm_dtypes}}},
               {"gpu",
                {{"driver", or_null(machine.driver)},
                 {"devices", std::move(gpus)},
                 {"device_compiler", or_null(machine.device_compiler)}}},
               {"cache",
                {{"folder", or_null(machine.cache_folder)},
                 {"writable", machine.cache_writable},
                 {"files", machine.cache_files},
                 {"bytes", machine.cache_bytes}}},
               {"missing", std::move(missing)}});
}

}  // namespace ingot::report
