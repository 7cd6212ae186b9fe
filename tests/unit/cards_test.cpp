// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "ingot/explain.h"

namespace ingot {
namespace {

TEST(Cards, DeviceNamesAsTracesHaveThem) {
  const auto name = [](const char* device) -> std::string {
    const Card* card = find_card(device);
    return card == nullptr ? "" : card->name;
  };
  EXPECT_EQ(name("NVIDIA H200"), "NVIDIA H200");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "NVIDIA H100 SXM");
  EXPECT_EQ(name("NVIDIA H100 PCIe"), "NVIDIA H100 PCIe");
  EXPECT_EQ(name("NVIDIA H100 NVL"), "NVIDIA H100 NVL");
  EXPECT_EQ(name("NVIDIA A100-SXM4-80GB"), "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(name("A100-SXM4-40GB"), "NVIDIA A100 SXM4 40GB");
  EXPECT_EQ(name("NVIDIA A100 80GB PCIe"), "NVIDIA A100 PCIe 80GB");
  EXPECT_EQ(name("NVIDIA A100-PCIE-40GB"), "NVIDIA A100 PCIe 40GB");
  EXPECT_EQ(name("Tesla V100-SXM2-32GB"), "NVIDIA V100 SXM2");
  EXPECT_EQ(name("Tesla T4"), "NVIDIA T4");
  EXPECT_EQ(name("NVIDIA B200"), "NVIDIA B200");
  EXPECT_EQ(name("NVIDIA L40S"), "NVIDIA L40S");
  EXPECT_EQ(name("NVIDIA RTX 6000 Ada Generation"), "NVIDIA RTX 6000 Ada");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(name("NVIDIA GH200 480GB"), "NVIDIA GH200 96GB");
  EXPECT_EQ(name("AMD Instinct MI300X"), "AMD Instinct MI300X");
  EXPECT_EQ(name("AMD Instinct MI210"), "AMD Instinct MI210");
}

TEST(Cards, NeverTheNearest) {
  for (const char* device : {"",
                             " ",
                             "NVIDIA",
                             "AMD Radeon Graphics",
                             "ARTEMIS",
                             "NVIDIA A100-PG509-200",
                             "NVIDIA A10G",
                             "NVIDIA H2000",
                             "NVIDIA H100",
                             "NVIDIA A100",
                             "NVIDIA H200 NVL MIG 1g.18gb",
                             "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
                             "NVIDIA GeForce RTX 4090 D",
                             "NVIDIA GeForce RTX 4090 Laptop GPU",
                             "NVIDIA GeForce RTX 3090 Ti",
                             "NVIDIA L40G",
                             "NVIDIA B2000",
                             "AMD Instinct MI300A",
                             "AMD Instinct MI250X / MI250",
                             "xNVIDIA H200",
                             "Quadro RTX 6000"}) {
    EXPECT_EQ(find_card(device), nullptr) << device;
  }
}

// Relations every data sheet keeps; they catch a rate in the wrong column or one with sparsity counted in.
TEST(Cards, RatesAreDenseAndInTheirColumns) {
  std::set<std::string> names;
  for (const Card& card : known_cards()) {
    SCOPED_TRACE(card.name);
    EXPECT_TRUE(names.insert(card.name).second);
    EXPECT_FALSE(card.source.empty());
    EXPECT_GT(card.f32_tflops, 0);
    EXPECT_GT(card.bandwidth_tb_s, 0.2);
    EXPECT_LT(card.bandwidth_tb_s, 10);
    EXPECT_GT(card.bf16_tflops, 1.5 * card.f32_tflops);
    if (card.tf32_tflops > 0) {
      EXPECT_NEAR(card.bf16_tflops / card.tf32_tflops, 2, 0.05);
    }
    if (card.fp8_tflops > 0) {
      EXPECT_NEAR(card.fp8_tflops / card.bf16_tflops, 2, 0.05);
    }
  }
}

// Dense rate = multiprocessors × boost clock × operations a clock, worked out from the architecture white
// papers.
TEST(Cards, RatesFollowFromTheHardware) {
  struct Hardware {
    const char* device;
    double units, ghz, ops_per_clock;
  };
  for (const Hardware& hardware :
       {Hardware{"NVIDIA H200", 132, 1.83, 4096}, Hardware{"NVIDIA A100-SXM4-80GB", 108, 1.41, 2048},
        Hardware{"Tesla V100-SXM2-32GB", 80, 1.53, 1024}, Hardware{"Tesla T4", 40, 1.59, 1024},
        Hardware{"NVIDIA GeForce RTX 4090", 128, 2.52, 512}, Hardware{"AMD Instinct MI300X", 304, 2.1, 2048},
        Hardware{"AMD Instinct MI210", 104, 1.7, 1024}, Hardware{"AMD Instinct MI355X", 256, 2.4, 4096}}) {
    const Card* card = find_card(hardware.device);
    ASSERT_NE(card, nullptr) << hardware.device;
    const double tflops = hardware.units * hardware.ghz * hardware.ops_per_clock / 1e3;
    EXPECT_NEAR(card->bf16_tflops / tflops, 1, 0.02) << hardware.device << " " << tflops;
  }
}

}  // namespace
}  // namespace ingot
