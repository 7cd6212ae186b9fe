// SPDX-License-Identifier: Apache-2.0
//
// GPUs Ingot plans for without one at hand: what a compute capability means for a kernel, and cards with the
// figures of their data sheets. Plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ingot::arch {

/// What of a chip decides how long a kernel takes.
struct Chip {
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  double tensor_flops_per_s =
      0;                       ///< dense 16-bit products that a good kernel sustains, in the chip's own way
  double f32_flops_per_s = 0;  ///< plain multiply-adds
  double memory_bytes_per_s = 0;  ///< that a copy sustains
  double launch_s = 0;            ///< from the end of one kernel of a graph to the start of the next
};

// Of the data sheet's rates, what well-made kernels sustain: measured on an H200 (docs/cost-model.md), taken
// for all. f32 by plain multiply-adds loses more to reading operands from shared memory.
inline constexpr double sustained_tensor = 0.80, sustained_f32 = 0.70, sustained_memory = 0.90;
inline constexpr double launch_seconds = 1.1e-6;

/// Shared memory of a multiprocessor; a block may use 1 KB less (CUDA programming guide, compute
/// capabilities).
constexpr int shared_bytes_per_multiprocessor(int major, int minor) {
  if (major == 8 && (minor == 0 || minor == 7)) return 164 << 10;
  if (major == 8 || major == 12) return 100 << 10;
  return 228 << 10;
}
constexpr int shared_bytes_per_block(int major, int minor) {
  return shared_bytes_per_multiprocessor(major, minor) - 1024;
}

/// Share of the dense 16-bit rate that mma.sync reaches. sm_90's full rate needs wgmma; microbenchmarks
/// published of mma.sync there give 0.62. sm_100's needs tcgen05; nothing is published, so as many products a
/// clock and multiprocessor as on sm_90 are taken.
constexpr double mma_sync_share(int major, int) {
  return major == 9 ? 0.62 : major == 10 ? 0.30 : 1.0;
}

struct Gpu {
  std::string_view name;  ///< as the driver calls it
  int major, minor, multiprocessors;
  double tensor_tflops;  ///< dense bf16, sums in f32
  double f32_tflops;
  double memory_tb_s;
  int memory_gb;
  double l2_mb;
  std::string_view source;
};

inline constexpr std::array gpus{
    Gpu{"NVIDIA A100-SXM4-80GB", 8, 0, 108, 312, 19.5, 2.039, 80, 40, "NVIDIA A100 data sheet, 2021"},
    Gpu{"NVIDIA A100-SXM4-40GB", 8, 0, 108, 312, 19.5, 1.555, 40, 40, "NVIDIA A100 data sheet, 2021"},
    Gpu{"NVIDIA A100 80GB PCIe", 8, 0, 108, 312, 19.5, 1.935, 80, 40, "NVIDIA A100 data sheet, 2021"},
    Gpu{"NVIDIA A100-PCIE-40GB", 8, 0, 108, 312, 19.5, 1.555, 40, 40, "NVIDIA A100 data sheet, 2021"},
    Gpu{"NVIDIA A30", 8, 0, 56, 165, 10.3, 0.933, 24, 24, "NVIDIA A30 data sheet, 2021"},
    Gpu{"NVIDIA A10", 8, 6, 72, 125, 31.2, 0.6, 24, 6, "NVIDIA A10 data sheet, 2021"},
    Gpu{"NVIDIA A40", 8, 6, 84, 149.7, 37.4, 0.696, 48, 6, "NVIDIA A40 data sheet, 2021"},
    Gpu{"NVIDIA GeForce RTX 3090", 8, 6, 82, 71, 35.6, 0.936, 24, 6,
        "NVIDIA Ampere GA102 architecture white paper, 2021"},
    Gpu{"NVIDIA L40S", 8, 9, 142, 362.05, 91.6, 0.864, 48, 96, "NVIDIA L40S data sheet, 2023"},
    Gpu{"NVIDIA L4", 8, 9, 58, 121, 30.3, 0.3, 24, 48, "NVIDIA L4 data sheet, 2023"},
    Gpu{"NVIDIA GeForce RTX 4090", 8, 9, 128, 165.2, 82.6, 1.008, 24, 72,
        "NVIDIA Ada architecture white paper, 2022"},
    Gpu{"NVIDIA RTX 6000 Ada Generation", 8, 9, 142, 364.2, 91.1, 0.96, 48, 96,
        "NVIDIA Ada professional architecture white paper, 2022"},
    Gpu{"NVIDIA H200", 9, 0, 132, 989.4, 66.9, 4.8, 141, 50, "NVIDIA H200 data sheet, 2024"},
    Gpu{"NVIDIA H100 80GB HBM3", 9, 0, 132, 989.4, 66.9, 3.35, 80, 50, "NVIDIA H100 data sheet, 2023"},
    Gpu{"NVIDIA H100 PCIe", 9, 0, 114, 756, 51, 2.0, 80, 50, "NVIDIA H100 data sheet, 2023"},
    Gpu{"NVIDIA H100 NVL", 9, 0, 132, 835.5, 60, 3.9, 94, 50, "NVIDIA H100 data sheet, 2024"},
    Gpu{"NVIDIA B200", 10, 0, 148, 2250, 75, 8.0, 180, 126, "NVIDIA HGX B200 and DGX B200 data sheets, 2024"},
    Gpu{"NVIDIA GeForce RTX 5090", 12, 0, 170, 209.5, 104.8, 1.792, 32, 96,
        "NVIDIA RTX Blackwell architecture white paper, 2025"},
};

/// The first card of a compute capability stands for it; one of the same generation where there is none, and
/// the newest for what is newer; none: older than sm_80.
constexpr const Gpu* typical_gpu(int major, int minor) {
  if (major < 8) return nullptr;
  const Gpu* found = &gpus.back();
  for (std::size_t i = gpus.size(); i-- > 0;) {
    const bool exact = gpus[i].major == major && gpus[i].minor == minor;
    const bool found_exact = found->major == major && found->minor == minor;
    if (exact || (gpus[i].major == major && !found_exact)) found = &gpus[i];
  }
  return found;
}
constexpr const Gpu* find_gpu(std::string_view name) {
  for (const Gpu& gpu : gpus) {
    if (gpu.name == name) return &gpu;
  }
  return nullptr;
}

constexpr Chip chip_of(const Gpu& gpu) {
  return {.major = gpu.major,
          .minor = gpu.minor,
          .multiprocessors = gpu.multiprocessors,
          .tensor_flops_per_s = gpu.tensor_tflops * 1e12 * sustained_tensor,
          .f32_flops_per_s = gpu.f32_tflops * 1e12 * sustained_f32,
          .memory_bytes_per_s = gpu.memory_tb_s * 1e12 * sustained_memory,
          .launch_s = launch_seconds};
}

}  // namespace ingot::arch
