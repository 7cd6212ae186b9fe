// SPDX-License-Identifier: Apache-2.0
//
// GPUs to plan for where there is none.
#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "ingot/plan.h"

namespace ingot {

namespace {

struct Card {
  std::string_view generation, name;
  int major, minor, multiprocessors;
  double memory_gb, l2_mb;
  int shared_kb;
  double tensor_tflops, f32_tflops, memory_tb_s;  // data sheet
};

constexpr std::array cards{
    Card{"sm80", "NVIDIA A100 SXM4 80GB", 8, 0, 108, 80, 40, 163, 312, 19.5, 2.039},
    Card{"sm86", "NVIDIA A10", 8, 6, 72, 24, 6, 99, 125, 31.2, 0.6},
    Card{"sm89", "NVIDIA L40S", 8, 9, 142, 48, 96, 99, 362, 91.6, 0.864},
    Card{"sm90", "NVIDIA H200", 9, 0, 132, 141, 50, 227, 989, 66.9, 4.8},
    Card{"sm100", "NVIDIA B200", 10, 0, 148, 180, 126, 227, 2250, 75, 8.0},
    Card{"sm120", "NVIDIA GeForce RTX 5090", 12, 0, 170, 32, 96, 99, 209.5, 104.8, 1.792},
};

}  // namespace

const std::vector<std::string_view>& gpu_generations() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Card& card : cards) all.push_back(card.generation);
    return all;
  }();
  return names;
}

Result<DeviceDescription> describe_gpu(std::string_view generation) {
  const auto* card = std::ranges::find(cards, generation, &Card::generation);
  if (card == cards.end()) {
    return Error{ErrorCode::invalid_argument, unknown_name("GPU", generation, gpu_generations())};
  }
  DeviceDescription device{
      .kind = DeviceKind::cuda, .name = std::string(card->name), .source = "data sheet", .cpu = {}};
  GpuDescription& gpu = device.gpu;
  gpu.major = card->major;
  gpu.minor = card->minor;
  gpu.multiprocessors = card->multiprocessors;
  gpu.memory_bytes = static_cast<std::uint64_t>(card->memory_gb * 1e9);
  gpu.l2_bytes = static_cast<std::uint64_t>(card->l2_mb * (1U << 20U));
  gpu.shared_bytes = card->shared_kb << 10;
  gpu.tensor_flops_per_s = 0.8 * 1e12 * card->tensor_tflops;
  gpu.f32_flops_per_s = 0.8 * 1e12 * card->f32_tflops;
  gpu.memory_bytes_per_s = 0.9 * 1e12 * card->memory_tb_s;
  gpu.launch_s = 1.1e-6;
  gpu.library = true;
  return device;
}

}  // namespace ingot
