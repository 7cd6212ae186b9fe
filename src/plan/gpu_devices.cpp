// SPDX-License-Identifier: Apache-2.0
//
// GPUs to plan for where there is none.
#include <algorithm>
#include <array>

#include "arch/gpus.h"
#include "base/nearest.h"
#include "ingot/plan.h"

namespace ingot {

namespace {

struct Generation {
  std::string_view name;
  int major, minor;
};
constexpr std::array generations{Generation{"sm80", 8, 0},   Generation{"sm86", 8, 6},
                                 Generation{"sm89", 8, 9},   Generation{"sm90", 9, 0},
                                 Generation{"sm100", 10, 0}, Generation{"sm120", 12, 0}};

}  // namespace

const std::vector<std::string_view>& gpu_generations() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    all.reserve(generations.size());
    for (const Generation& generation : generations) all.push_back(generation.name);
    return all;
  }();
  return names;
}

Result<DeviceDescription> describe_gpu(std::string_view generation) {
  const auto* found = std::ranges::find(generations, generation, &Generation::name);
  if (found == generations.end()) {
    return Error{ErrorCode::invalid_argument, unknown_name("GPU", generation, gpu_generations())};
  }
  const arch::Gpu& card = *arch::typical_gpu(found->major, found->minor);
  const arch::Chip chip = arch::chip_of(card);
  DeviceDescription device{.kind = DeviceKind::cuda,
                           .name = std::string(card.name),
                           .source = std::string(card.source),
                           .cpu = {}};
  GpuDescription& gpu = device.gpu;
  gpu.major = chip.major;
  gpu.minor = chip.minor;
  gpu.multiprocessors = chip.multiprocessors;
  gpu.memory_bytes = static_cast<std::uint64_t>(card.memory_gb) * 1'000'000'000;
  gpu.l2_bytes = static_cast<std::uint64_t>(card.l2_mb * (1U << 20U));
  gpu.shared_bytes = arch::shared_bytes_per_block(chip.major, chip.minor);
  gpu.tensor_flops_per_s = chip.tensor_flops_per_s;
  gpu.f32_flops_per_s = chip.f32_flops_per_s;
  gpu.memory_bytes_per_s = chip.memory_bytes_per_s;
  gpu.launch_s = chip.launch_s;
  gpu.library = true;
  return device;
}

}  // namespace ingot
