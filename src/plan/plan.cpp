// SPDX-License-Identifier: Apache-2.0
#include "ingot/plan.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/nearest.h"
#include "plan/choose.h"

namespace ingot {

std::string_view to_string(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : "cuda";
}

const std::vector<std::string_view>& rung_names() {
  static const std::vector<std::string_view> names{"matmul_add", "unfused", "epilogue", "one_pass"};
  return names;
}

std::string_view to_string(Rung rung) {
  return rung_names()[static_cast<std::size_t>(rung)];
}

Result<Rung> parse_rung(std::string_view name) {
  for (std::size_t i = 0; i < rung_names().size(); ++i) {
    if (rung_names()[i] == name) return static_cast<Rung>(i);
  }
  return Error{ErrorCode::invalid_argument, unknown_name("rung", name, rung_names())};
}

std::string to_string(const Tile& tile) {
  if (tile.splits > 1) return fmt::format("{}x{}/{}", tile.tokens, tile.hidden, tile.splits);
  return fmt::format("{}x{}", tile.tokens, tile.hidden);
}

std::string_view to_string(Rejection rejection) {
  switch (rejection) {
    case Rejection::none:
      break;
    case Rejection::slower:
      return "slower than the chosen one";
    case Rejection::not_asked_for:
      return "another rung was asked for";
    case Rejection::too_few_tokens:
      return "fewer tiles of tokens than threads";
    case Rejection::not_on_device:
      return "this kind of device has no such rung";
  }
  return "";
}

Result<void> validate(const DeviceDescription& device) {
  if (device.kind != DeviceKind::cpu) return {};
  const CpuDescription& cpu = device.cpu;
  if (cpu.threads < 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("threads: {} is not accepted, give 1 or more", cpu.threads)};
  }
  const std::array<std::pair<std::string_view, double>, 4> rates{
      {{"gemm_flops_per_s", cpu.gemm_flops_per_s},
       {"cache_bytes_per_s", cpu.cache_bytes_per_s},
       {"memory_bytes_per_s", cpu.memory_bytes_per_s},
       {"stream_bytes_per_s", cpu.stream_bytes_per_s}}};
  for (const auto& [name, rate] : rates) {
    if (std::isfinite(rate) && rate > 0) continue;
    return Error{ErrorCode::invalid_argument, fmt::format("{}: {} is not accepted, give a rate", name, rate)};
  }
  return {};
}

Result<Plan> plan(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
                  const PlanOptions& options) {
  if (auto ok = validate(mlp, tokens); !ok) return ok.error();
  if (auto ok = validate(device); !ok) return ok.error();
  const Choice choice = choose(mlp, tokens, device, options);
  if (!choice.found) {
    const Candidate& last =
        options.rung ? choice.candidates[static_cast<std::size_t>(*options.rung)] : choice.candidates.back();
    return Error{ErrorCode::unsupported,
                 fmt::format("no way to run {} on {}: {}: {}", to_string(mlp), device.name,
                             to_string(last.rung), to_string(last.rejected))};
  }
  return Plan{mlp,    tokens,          options.numerics,
              device, choice.chosen(), {choice.candidates.begin(), choice.candidates.end()}};
}

}  // namespace ingot
