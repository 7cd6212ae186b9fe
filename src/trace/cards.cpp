// SPDX-License-Identifier: Apache-2.0
//
// Peak rates of GPU models, dense (no structured sparsity), from the vendors' data sheets. A rate the sheet
// does not give is 0. On cards without bf16 tensor cores the 16-bit rate is f16's. AMD states a matrix rate
// for full f32; it stands in f32_tflops, since that is what an f32 GEMM reaches there.
#include <algorithm>
#include <array>
#include <string>

#include "ingot/explain.h"

namespace ingot {
namespace {

// name, 16-bit tensor, TF32, f32, FP8, TB/s, source
const std::vector<Card> kCards = {
    {"NVIDIA V100 SXM2", 125, 0, 15.7, 0, 0.9, "NVIDIA V100 data sheet, 2020"},
    {"NVIDIA V100 PCIe", 112, 0, 14, 0, 0.9, "NVIDIA V100 data sheet, 2020"},
    {"NVIDIA V100S PCIe", 130, 0, 16.4, 0, 1.134, "NVIDIA V100 data sheet, 2020"},
    {"NVIDIA T4", 65, 0, 8.1, 0, 0.32, "NVIDIA T4 product brief, 2019"},
    {"NVIDIA A100 SXM4 40GB", 312, 156, 19.5, 0, 1.555, "NVIDIA A100 data sheet, 2021"},
    {"NVIDIA A100 SXM4 80GB", 312, 156, 19.5, 0, 2.039, "NVIDIA A100 data sheet, 2021"},
    {"NVIDIA A100 PCIe 40GB", 312, 156, 19.5, 0, 1.555, "NVIDIA A100 data sheet, 2021"},
    {"NVIDIA A100 PCIe 80GB", 312, 156, 19.5, 0, 1.935, "NVIDIA A100 data sheet, 2021"},
    {"NVIDIA A10", 125, 62.5, 31.2, 0, 0.6, "NVIDIA A10 data sheet, 2021"},
    {"NVIDIA A30", 165, 82, 10.3, 0, 0.933, "NVIDIA A30 data sheet, 2021"},
    {"NVIDIA A40", 149.7, 74.8, 37.4, 0, 0.696, "NVIDIA A40 data sheet, 2021"},
    {"NVIDIA L4", 121, 60, 30.3, 242.5, 0.3, "NVIDIA L4 data sheet, 2023"},
    {"NVIDIA L40", 181.05, 90.5, 90.5, 362, 0.864, "NVIDIA L40 data sheet, 2023"},
    {"NVIDIA L40S", 362.05, 183, 91.6, 733, 0.864, "NVIDIA L40S data sheet, 2023"},
    {"NVIDIA GeForce RTX 3090", 71, 35.6, 35.6, 0, 0.936,
     "NVIDIA Ampere GA102 architecture white paper, 2021"},
    {"NVIDIA GeForce RTX 4090", 165.2, 82.6, 82.6, 330.3, 1.008, "NVIDIA Ada architecture white paper, 2022"},
    {"NVIDIA GeForce RTX 5090", 209.5, 104.8, 104.8, 419, 1.792,
     "NVIDIA RTX Blackwell architecture white paper, 2025"},
    {"NVIDIA RTX 6000 Ada", 364.2, 182.1, 91.1, 728.5, 0.96,
     "NVIDIA Ada professional architecture white paper, 2022"},
    {"NVIDIA H100 SXM", 989.4, 494.7, 66.9, 1978.9, 3.35, "NVIDIA H100 data sheet, 2023"},
    {"NVIDIA H100 PCIe", 756, 378, 51, 1513, 2.0, "NVIDIA H100 data sheet, 2023"},
    {"NVIDIA H100 NVL", 835.5, 417.5, 60, 1670.5, 3.9, "NVIDIA H100 data sheet, 2024"},
    {"NVIDIA H200", 989.4, 494.7, 66.9, 1978.9, 4.8, "NVIDIA H200 data sheet, 2024"},
    {"NVIDIA H200 NVL", 835.5, 417.5, 60, 1670.5, 4.8, "NVIDIA H200 data sheet, 2024"},
    {"NVIDIA GH200 96GB", 989.4, 494.7, 66.9, 1978.9, 4.0, "NVIDIA GH200 data sheet, 2024"},
    {"NVIDIA GH200 144GB", 989.4, 494.7, 66.9, 1978.9, 4.9, "NVIDIA GH200 data sheet, 2024"},
    {"NVIDIA H20", 148, 74, 44, 296, 4.0,
     "NVIDIA H20 specification as quoted by resellers, 2023; no public data sheet"},
    {"NVIDIA B200", 2250, 1125, 75, 4500, 8.0, "NVIDIA HGX B200 and DGX B200 data sheets, 2024"},
    {"NVIDIA B100", 1750, 875, 60, 3500, 8.0, "NVIDIA Blackwell architecture technical brief, 2024"},
    {"NVIDIA GB200", 2500, 1250, 80, 5000, 8.0, "NVIDIA GB200 NVL72 data sheet, 2024"},
    {"AMD Instinct MI210", 181, 0, 45.3, 0, 1.6,
     "AMD Instinct MI210 data sheet, 2022; f32 is the matrix rate"},
    {"AMD Instinct MI250 (one die)", 181, 0, 45.3, 0, 1.6,
     "AMD Instinct MI250 data sheet, 2021; half of the card, which is what ROCm shows as one device; f32 is "
     "the matrix rate"},
    {"AMD Instinct MI250X (one die)", 191.5, 0, 47.9, 0, 1.6,
     "AMD Instinct MI250X data sheet, 2021; half of the card, which is what ROCm shows as one device; f32 is "
     "the matrix rate"},
    {"AMD Instinct MI300X", 1307.4, 653.7, 163.4, 2614.9, 5.3, "AMD Instinct MI300X data sheet, 2023"},
    {"AMD Instinct MI325X", 1307.4, 653.7, 163.4, 2614.9, 6.0, "AMD Instinct MI325X data sheet, 2024"},
    {"AMD Instinct MI355X", 2516.6, 0, 157.3, 5033.2, 8.0, "AMD Instinct MI355X data sheet, 2025"},
};

struct Alias {
  std::string_view device;  ///< as the driver names it, lower case, '-' as blank
  std::string_view card;
};

// Only whole names: a partition ("… MIG 1g.10gb"), a board variant or a newer model is another device.
constexpr Alias kAliases[] = {
    {"tesla v100 sxm2 16gb", "NVIDIA V100 SXM2"},
    {"tesla v100 sxm2 32gb", "NVIDIA V100 SXM2"},
    {"tesla v100 pcie 16gb", "NVIDIA V100 PCIe"},
    {"tesla v100 pcie 32gb", "NVIDIA V100 PCIe"},
    {"tesla v100s pcie 32gb", "NVIDIA V100S PCIe"},
    {"tesla t4", "NVIDIA T4"},
    {"t4", "NVIDIA T4"},
    {"a100 sxm4 40gb", "NVIDIA A100 SXM4 40GB"},
    {"a100 sxm4 80gb", "NVIDIA A100 SXM4 80GB"},
    {"a100 sxm 80gb", "NVIDIA A100 SXM4 80GB"},
    {"a100 pcie 40gb", "NVIDIA A100 PCIe 40GB"},
    {"a100 80gb pcie", "NVIDIA A100 PCIe 80GB"},
    {"a100 pcie 80gb", "NVIDIA A100 PCIe 80GB"},
    {"a10", "NVIDIA A10"},
    {"a30", "NVIDIA A30"},
    {"a40", "NVIDIA A40"},
    {"l4", "NVIDIA L4"},
    {"l40", "NVIDIA L40"},
    {"l40s", "NVIDIA L40S"},
    {"geforce rtx 3090", "NVIDIA GeForce RTX 3090"},
    {"geforce rtx 4090", "NVIDIA GeForce RTX 4090"},
    {"geforce rtx 5090", "NVIDIA GeForce RTX 5090"},
    {"rtx 6000 ada generation", "NVIDIA RTX 6000 Ada"},
    {"h100 80gb hbm3", "NVIDIA H100 SXM"},
    {"h100 sxm5 80gb", "NVIDIA H100 SXM"},
    {"h100 pcie", "NVIDIA H100 PCIe"},
    {"h100 nvl", "NVIDIA H100 NVL"},
    {"h200", "NVIDIA H200"},
    {"h200 nvl", "NVIDIA H200 NVL"},
    {"gh200 480gb", "NVIDIA GH200 96GB"},
    {"gh200 144g hbm3e", "NVIDIA GH200 144GB"},
    {"h20", "NVIDIA H20"},
    {"b200", "NVIDIA B200"},
    {"b100", "NVIDIA B100"},
    {"gb200", "NVIDIA GB200"},
    {"instinct mi210", "AMD Instinct MI210"},
    {"instinct mi250", "AMD Instinct MI250 (one die)"},
    {"instinct mi250x", "AMD Instinct MI250X (one die)"},
    {"instinct mi300x", "AMD Instinct MI300X"},
    {"instinct mi325x", "AMD Instinct MI325X"},
    {"instinct mi355x", "AMD Instinct MI355X"},
};

// Lower case, '-' and '_' as one blank, without the vendor in front.
std::string plain(std::string_view device) {
  std::string out;
  for (const char c : device) {
    if (c == ' ' || c == '-' || c == '_') {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  for (const std::string_view vendor : {"nvidia ", "amd "}) {
    if (out.starts_with(vendor)) out.erase(0, vendor.size());
  }
  return out;
}

}  // namespace

const std::vector<Card>& known_cards() {
  return kCards;
}

const Card* find_card(std::string_view device_name) {
  const std::string device = plain(device_name);
  const auto* alias = std::ranges::find(kAliases, device, &Alias::device);
  if (alias == std::end(kAliases)) return nullptr;
  const auto card = std::ranges::find(kCards, alias->card, &Card::name);
  return card == kCards.end() ? nullptr : &*card;
}

}  // namespace ingot
