// SPDX-License-Identifier: Apache-2.0
#include "cpu/stored_description.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/publish.h"
#include "cpu/rates.h"

namespace ingot::cpu {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema = "ingot.cpu/1";

bool same_machine(const DeviceDescription& a, const DeviceDescription& b) {
  return a.name == b.name && a.cpu.threads == b.cpu.threads && a.cpu.isa == b.cpu.isa &&
         a.cpu.library == b.cpu.library && a.cpu.native_bf16 == b.cpu.native_bf16 &&
         a.cpu.l1_bytes == b.cpu.l1_bytes && a.cpu.l2_bytes == b.cpu.l2_bytes &&
         a.cpu.l3_bytes == b.cpu.l3_bytes;
}

}  // namespace

std::string to_json(const DeviceDescription& description) {
  const CpuDescription& cpu = description.cpu;
  Json rates = Json::object();
  for_each_rate(cpu, [&](const std::string& name, double value) { rates[name] = value; });
  const Json document{{"schema", schema},
                      {"name", description.name},
                      {"source", description.source},
                      {"threads", cpu.threads},
                      {"isa", cpu.isa},
                      {"library", cpu.library},
                      {"native_bf16", cpu.native_bf16},
                      {"l1_bytes", cpu.l1_bytes},
                      {"l2_bytes", cpu.l2_bytes},
                      {"l3_bytes", cpu.l3_bytes},
                      {"rates", std::move(rates)}};
  return document.dump(2) + "\n";
}

std::optional<DeviceDescription> from_json(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  try {
    if (document.at("schema").get<std::string>() != schema) return std::nullopt;
    DeviceDescription description{.kind = DeviceKind::cpu,
                                  .name = document.at("name").get<std::string>(),
                                  .source = document.at("source").get<std::string>(),
                                  .cpu = {}};
    CpuDescription& cpu = description.cpu;
    cpu.threads = document.at("threads").get<int>();
    cpu.isa = document.at("isa").get<std::string>();
    cpu.library = document.at("library").get<std::string>();
    cpu.native_bf16 = document.at("native_bf16").get<bool>();
    cpu.l1_bytes = document.at("l1_bytes").get<std::uint64_t>();
    cpu.l2_bytes = document.at("l2_bytes").get<std::uint64_t>();
    cpu.l3_bytes = document.at("l3_bytes").get<std::uint64_t>();
    const Json& rates = document.at("rates");
    bool sound = cpu.threads > 0;
    for_each_rate(cpu, [&](const std::string& name, double& value) {
      value = rates.at(name).get<double>();
      sound = sound && std::isfinite(value) && value >= 0;
    });
    sound = sound && (!cpu.native_bf16 || cpu.bf16_flops_per_s > 0) && cpu.gemm_flops_per_s > 0 &&
            cpu.cache_bytes_per_s > 0 && cpu.memory_bytes_per_s > 0 && cpu.stream_bytes_per_s > 0 &&
            cpu.cache_stream_bytes_per_s > 0;
    return sound ? std::optional(description) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;  // a member is missing or of another type: written by another version, or damaged
  }
}

std::optional<std::string> description_path(int threads) {
  const auto folder = base::cache_folder(base::read_environment());
  if (!folder) return std::nullopt;
  return fmt::format("{}/cpu-{}.json", *folder, threads);
}

std::optional<DeviceDescription> load_description(const DeviceDescription& expected) {
  const auto path = description_path(expected.cpu.threads);
  if (!path) return std::nullopt;
  auto stored = from_json(base::read_whole(*path));
  return stored && same_machine(*stored, expected) ? stored : std::nullopt;
}

Result<void> store_description(const DeviceDescription& description) {
  const auto path = description_path(description.cpu.threads);
  if (!path) return Error{ErrorCode::unreadable, "no cache folder: set INGOT_CACHE or HOME"};
  return base::publish(*path, to_json(description));
}

}  // namespace ingot::cpu
