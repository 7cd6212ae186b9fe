// SPDX-License-Identifier: Apache-2.0
#include "ingot/plan.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/nearest.h"
#include "plan/choose.h"
#include "plan/mlp_kernel.h"

namespace ingot {

std::string_view to_string(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : "cuda";
}

const std::vector<std::string_view>& rung_names() {
  static const std::vector<std::string_view> names{"matmul_add", "unfused",  "epilogue",
                                                   "two_kernel", "one_pass", "one_kernel"};
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
    case Rejection::no_library_epilogue:
      return "the library fuses relu and gelu_tanh only, and no gate";
    case Rejection::no_library:
      return "the vendor's library is not at hand";
    case Rejection::within_model_error:
      return "faster by less than the model's error";
    case Rejection::no_mlp_kernel:
      return "no kernel takes the whole MLP";
    case Rejection::measured_slower:
      return "measured slower than the chosen one";
  }
  return "";
}

namespace {

using Rates = std::span<const std::pair<std::string_view, double>>;

Result<void> check_rates(Rates rates) {
  for (const auto& [name, rate] : rates) {
    if (std::isfinite(rate) && rate > 0) continue;
    return Error{ErrorCode::invalid_argument, fmt::format("{}: {} is not accepted, give a rate", name, rate)};
  }
  return {};
}

Result<void> check_count(std::string_view name, int count) {
  if (count >= 1) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: {} is not accepted, give 1 or more", name, count)};
}

std::vector<KernelPlan> kernels_of(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu, Rung rung,
                                   const KernelOptions& options) {
  if (rung == Rung::one_kernel) {
    const MlpPick one = choose_mlp_kernel(mlp, tokens, gpu, options);
    return {{"mlp", label(one.tile), one.us, one.tuned}};
  }
  const KernelPair pair = choose_kernels(mlp, tokens, gpu, options);
  return {{"fc1", label(pair.first), pair.first_us, pair.first_tuned},
          {"fc2", label(pair.second), pair.second_us, pair.second_tuned}};
}

}  // namespace

Result<void> validate(const DeviceDescription& device) {
  if (device.kind == DeviceKind::cpu) {
    const CpuDescription& cpu = device.cpu;
    if (auto ok = check_count("threads", cpu.threads); !ok) return ok;
    return check_rates(
        std::array<std::pair<std::string_view, double>, 4>{{{"gemm_flops_per_s", cpu.gemm_flops_per_s},
                                                            {"cache_bytes_per_s", cpu.cache_bytes_per_s},
                                                            {"memory_bytes_per_s", cpu.memory_bytes_per_s},
                                                            {"stream_bytes_per_s", cpu.stream_bytes_per_s}}});
  }
  const GpuDescription& gpu = device.gpu;
  if (auto ok = check_count("multiprocessors", gpu.multiprocessors); !ok) return ok;
  return check_rates(
      std::array<std::pair<std::string_view, double>, 4>{{{"tensor_flops_per_s", gpu.tensor_flops_per_s},
                                                          {"f32_flops_per_s", gpu.f32_flops_per_s},
                                                          {"memory_bytes_per_s", gpu.memory_bytes_per_s},
                                                          {"launch_s", gpu.launch_s}}});
}

Result<Plan> plan(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
                  const PlanOptions& options) {
  return plan(mlp, tokens, device, options, nullptr);
}

Result<Plan> plan(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
                  const PlanOptions& options, const TuningTable* tuned) {
  if (auto ok = validate(mlp, tokens); !ok) return ok.error();
  if (auto ok = validate(device); !ok) return ok.error();
  Choice choice = choose(mlp, tokens, device, options, tuned);
  for (Candidate& candidate : choice.candidates) {
    if (candidate.rejected != Rejection::no_mlp_kernel) continue;
    candidate.detail = why_no_mlp_kernel(mlp_spec(mlp, true, options.numerics, options.aligned), device.gpu);
  }
  if (!choice.found) {
    const Rung likeliest = device.kind == DeviceKind::cuda ? Rung::two_kernel : Rung::one_pass;
    const Candidate& last = choice.candidates[static_cast<std::size_t>(options.rung.value_or(likeliest))];
    return Error{ErrorCode::unsupported,
                 fmt::format("no way to run {} on {}: {}: {}", to_string(mlp), device.name,
                             to_string(last.rung), rejection_text(last))};
  }
  Plan made{mlp,    tokens,          options.numerics,
            device, choice.chosen(), {choice.candidates.begin(), choice.candidates.end()}};
  if (is_compiled_rung(choice.rung)) {
    made.kernels =
        kernels_of(mlp, tokens, device.gpu, choice.rung, {options.numerics, options.aligned, tuned});
  }
  return made;
}

std::string rejection_text(const Candidate& candidate) {
  const std::string_view rejection = to_string(candidate.rejected);
  return candidate.detail.empty() ? std::string(rejection)
                                  : fmt::format("{} ({})", rejection, candidate.detail);
}

std::string tile_text(const Plan& plan) {
  if (!plan.kernels.empty()) {
    std::string out;
    for (const KernelPlan& kernel : plan.kernels) out += (out.empty() ? "" : ", ") + kernel.tile;
    return out;
  }
  return plan.chosen.tile.tokens > 0 ? to_string(plan.chosen.tile) : "";
}

}  // namespace ingot
