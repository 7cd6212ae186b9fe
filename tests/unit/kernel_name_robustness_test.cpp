// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ingot/kernel_name.h"

namespace ingot::trace {
namespace {

// Whatever the bytes, decode() returns, and what it returns can be printed.
void expect_sane(const std::string& name) {
  const KernelName got = decode(name);
  EXPECT_LE(got.short_name.size(), 2U * 60U);
  activation_of(got, name);
  std::vector<std::string> texts = got.fused;
  texts.insert(texts.end(), got.flags.begin(), got.flags.end());
  texts.insert(texts.end(), {got.family, got.arch, got.dtype, got.out_dtype, got.layout});
  for (const std::string& text : texts) {
    EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
        << name.substr(0, 100);
  }
}

const char* const kSeeds[] = {
    "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(P)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_"
    "kernel__5x_cublas",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_ISA942_GSU4",
    "triton_red_fused_add_mul_native_layer_norm_split_view_1",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<long, long, bool, X<long> "
    ">, std::array<char*, 2> >(int)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 32, 4, false, "
    "cutlass::half_t> >(P)",
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_"
    "1PIDF16bDF16bfEEEEEEEvDpT1_",
    "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_rM_TN_biasM_sm100f",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<MainloopSm90TmaGmmaWarpSpecialized<5, "
    "cute::tuple<cute::C<2> > > > >(P)",
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<__nv_bfloat16 const> > >(P)",
};

TEST(KernelNameRobustness, EveryPrefixOfEveryFamily) {
  for (const std::string seed : kSeeds) {
    for (std::size_t size = 0; size <= seed.size(); ++size) expect_sane(seed.substr(0, size));
    for (std::size_t from = 0; from <= seed.size(); ++from) expect_sane(seed.substr(from));
  }
}

TEST(KernelNameRobustness, RandomBytesAndMutations) {
  std::mt19937 random(20240607);
  const std::string alphabet = "<>(){}[],:_-# x0123456789TNtnabfs\"\\'";
  for (int round = 0; round < 3000; ++round) {
    std::string name;
    if (round % 3 == 0) {
      name.resize(random() % 200);
      for (char& c : name) c = static_cast<char>(random());
    } else {
      name = kSeeds[random() % std::size(kSeeds)];
      for (auto edits = 1 + random() % 6; edits > 0 && !name.empty(); --edits) {
        const std::size_t at = random() % name.size();
        switch (random() % 3) {
          case 0:
            name[at] = alphabet[random() % alphabet.size()];
            break;
          case 1:
            name.insert(at, 1, alphabet[random() % alphabet.size()]);
            break;
          default:
            name.erase(at, random() % 8);
            break;
        }
      }
    }
    expect_sane(name);
  }
}

TEST(KernelNameRobustness, HugeAndUnbalanced) {
  constexpr std::size_t kMega = 1 << 20;
  for (const char* filler :
       {"<", ">", "(", ")", "<(", "_", "a_", "1x2_", "gelu_", "at::native::", "cublasGemvTensor<", "{lambda(",
        "cute::tuple<", "\xff", " ", "_Z", "decimal64"}) {
    std::string name;
    while (name.size() < kMega) name += filler;
    expect_sane(name);
    for (const char* prefix :
         {"triton_poi_fused_", "nvjet_", "void at::native::vectorized_elementwise_kernel<", "_ZN", "Cijk_",
          "cutlass_80_", "void dot_kernel<"}) {
      expect_sane(prefix + name.substr(0, kMega));
    }
  }
}

TEST(KernelNameRobustness, NumbersBeyondInt) {
  const KernelName got = decode("nvjet_tst_99999999999999999999x128_64x4_TNT");
  EXPECT_EQ(got.dtype, "bf16");
  ASSERT_TRUE(got.tile.has_value());
  EXPECT_EQ(got.tile->m, 64);  // the oversized token is no pair of numbers
  expect_sane("cutlass_99999999999_tensorop");
  expect_sane("Cijk_Alik_Bljk_S_MT-1x-2x-3");
  EXPECT_FALSE(decode("Cijk_Alik_Bljk_SB_MT-1x-2x-3").tile.has_value());
}

}  // namespace
}  // namespace ingot::trace
