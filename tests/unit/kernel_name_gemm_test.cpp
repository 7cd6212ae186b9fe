// SPDX-License-Identifier: Apache-2.0
// Names of GEMM and convolution libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ingot/kernel_name.h"
#include "unit/kernel_name_describe.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using enum KernelKind;

TEST(KernelName, NvjetTokensAreASet) {
  expect_decodes(
      "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
      "nvjet gemm | nvjet 256x128x64 bf16 | sm90 bf16>bf16 tn 256x128x64 s4 c1x2 bias | | raster_h bz coopA");
  expect_decodes(
      "nvjet_sm90_bias_tst_256x128_64x4_h_1x2_bz_TNT_coopA",
      "nvjet gemm | nvjet 256x128x64 bf16 | sm90 bf16>bf16 tn 256x128x64 s4 c1x2 bias | | raster_h bz coopA");
  expect_decodes(
      "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
      "nvjet gemm | nvjet 64x64x64 bf16 | bf16>bf16 tn 64x64x64 s16 c2x1 bias | | 2cta raster_v bz");
  expect_decodes(
      "nvjet_sm90_hss_64x8_64x16_1x1_h_bz_splitK_NNT",
      "nvjet gemm | nvjet 64x8x64 f16 splitK | sm90 f16>f32 nn 64x8x64 s16 c1x1 splitK | | raster_h bz");
  // fp8 operands, bf16 out; scale vectors are flags.
  expect_decodes("nvjet_qqtst_128x256_128x6_2x2_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_TNT",
                 "nvjet gemm | nvjet 128x256x128 fp8 | fp8>bf16 tn 128x256x128 s6 c2x2 | | 2cta raster_h bz "
                 "Avec32UE8M0 Bvec32UE8M0");
  // sm120 writes tile, stages and warp tile as three numbers each.
  expect_decodes("nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN",
                 "nvjet gemm | nvjet 64x64x128 bf16 | sm120 bf16>bf16 tn 64x64x128 s3 | | mma warp32x32x128 "
                 "tmaAB alignCD4 bz");
  EXPECT_EQ(decode("nvjet_sss_64x32_64x4_1x1_h_bz_TNT").dtype, "f32");
  EXPECT_EQ(decode("nvjet_sm100_ootst_128x256_256x4_2x1_2cta_v_bz_TNT").dtype, "fp4");
}

TEST(KernelName, Cutlass2) {
  expect_decodes("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_tn_align8",
                 "cutlass gemm | cutlass 32x32x32 bf16 | sm80 bf16>bf16 tn 32x32x32 s1 a8 | | wmma");
  // Through PyTorch the name is the template argument of a wrapper. "relu" proves no fused ReLU.
  expect_decodes(
      "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>"
      "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8::Params)",
      "cutlass gemm | cutlass 64x64x64 bf16 | sm80 bf16>bf16 tn 64x64x64 s6 a8 | | relu");
  expect_decodes("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>(P)",
                 "cutlass gemm | cutlass 128x128 bf16 | sm75 bf16>bf16 nn 128x128x0 a1 | |");
  expect_decodes(
      "void "
      "cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>("
      "P)",
      "cutlass convolution | cutlass 256x64x32 bf16 conv | bf16>bf16 256x64x32 s4 a8 | | optimized nhwc");
}

// CUTLASS writes <output>_<core>_<input> and leaves out what equals the accumulator.

TEST(KernelName, CutlassTypesAroundTheCore) {
  const auto types = [](const char* name) {
    const KernelName got = decode(name);
    return got.dtype + ">" + got.out_dtype;
  };
  EXPECT_EQ(types("cutlass_80_tensorop_s16816gemm_f16_128x128_32x4_tn_align8"), "f16>f32");
  EXPECT_EQ(types("cutlass_80_tensorop_f16_s16816gemm_f16_128x128_32x4_tn_align8"), "f16>f16");
  EXPECT_EQ(types("cutlass_80_tensorop_h16816gemm_256x128_32x3_tn_align8"), "f16>f16");
  EXPECT_EQ(types("cutlass_80_tensorop_s1688tf32gemm_128x128_16x4_tn_align4"), "tf32>f32");
  EXPECT_EQ(types("cutlass_80_tensorop_d884gemm_64x32_16x4_nt_align1"), "f64>f64");
  EXPECT_EQ(types("cutlass_80_simt_sgemm_128x32_8x5_nn_align1"), "f32>f32");
  EXPECT_EQ(types("cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16"), "i8>i32");
  EXPECT_EQ(types("turing_s1688gemm_fp16_128x128_ldg8_f2f_tn"), "f16>f32");
  EXPECT_EQ(types("volta_h884gemm_256x64_ldg8_nn"), "f16>f16");
}

TEST(KernelName, Cutlass3) {
  expect_decodes(
      "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_"
      "warpspecialized_pingpong_"
      "epi_tma",
      "cutlass gemm | cutlass 128x128x64 bf16 | sm90 bf16>bf16 tn 128x128x64 a8 c2x1 | | warpspecialized "
      "pingpong epi tma");
  // bias and relu are options of the compiled epilogue.
  expect_decodes(
      "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_f32_relu",
      "cutlass gemm | cutlass 64x32x16 f32 | sm100 f32>f32 tn 64x32x16 s3 a1 c1x1 | | simt bias relu");
  const KernelName scaled = decode(
      "cutlass3x_sm100_bstensorop_s256x192x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_void_f16_256x192x256_0_"
      "tnn_align32");
  EXPECT_EQ(scaled.dtype, "fp4");
  EXPECT_EQ(scaled.out_dtype, "f16");
  EXPECT_EQ(
      decode("cutlass3x_sm90_tensorop_s64x128x32gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128_1x2x1_0_tnn_align16")
          .dtype,
      "fp8");
}

TEST(KernelName, CutlassTemplatesSpelledOut) {
  const std::string cutlass3 =
      "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
      "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<5, "
      "cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, "
      "cutlass::gemm::KernelTmaWarpSpecializedCooperative>, "
      "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64> >, cutlass::half_t, cute::tuple<long, cute::C<1>, "
      "long>, "
      "cutlass::half_t, cute::tuple<long, cute::C<1>, long> > > >(Params)";
  expect_decodes(cutlass3, "cutlass gemm | cutlass 128x256x64 f16 | sm90 f16> 128x256x64 s5 c2x1 | |");
  // A functor in the template runs always: it is fused.
  const KernelName cutlass2 = decode(
      "void "
      "cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaMultistage<cutlass::gemm::"
      "GemmShape<128, "
      "64, 32>, cutlass::half_t>, "
      "cutlass::epilogue::thread::LinearCombinationGeneric<cutlass::epilogue::thread::GELU_taylor, "
      "cutlass::half_t, 8> > >(Params)");
  EXPECT_EQ(cutlass2.short_name, "cutlass 128x64x32 f16");
  EXPECT_THAT(cutlass2.fused, ElementsAre("gelu_tanh"));
}

TEST(KernelName, Cublas) {
  expect_decodes("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
                 "cublas gemm | cublas 128x128x32 bf16 | ampere bf16>bf16 tn 128x128x32 s5 | | ldg8");
  expect_decodes("ampere_sgemm_128x64_nn",
                 "cublas gemm | cublas 128x64 f32 | ampere f32>f32 nn 128x64x0 | |");
  expect_decodes("volta_sgemm_64x32_sliced1x4_tn",
                 "cublas gemm | cublas 64x32 f32 | volta f32>f32 tn 64x32x0 | | sliced1x4");
  expect_decodes("turing_fp16_s1688gemm_fp16_128x128_ldg8_relu_f2f_tn",
                 "cublas gemm | cublas 128x128 f16 | turing f16>f16 tn 128x128x0 | | ldg8 relu");
  EXPECT_EQ(decode("maxwell_sgemm_128x64_nt").family, "cublas");
  EXPECT_EQ(decode("maxwell_scudnn_128x32_relu_small_nn_v1").kind, convolution);
  // Starts like one and is none.
  EXPECT_EQ(decode("volta_custom_kernel").family, "");
  EXPECT_EQ(decode("ampere_helper").kind, unknown);
}

TEST(KernelName, CublasSmallAndHelpers) {
  expect_decodes(
      "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, "
      "__nv_bfloat16, "
      "float, false, true, true, false, 7, false, cublasGemvParamsEx<int, "
      "cublasGemvTensorStridedBatched<__nv_bfloat16 const>, "
      "cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16>, "
      "float> >(P)",
      "cublas gemm | gemv | bf16> | |");
  expect_decodes(
      "void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false, true, P>(P)",
      "cublas gemm | gemv | f16> | |");
  expect_decodes(
      "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const> "
      ">(P)",
      "cublas gemm | gemm small n | f32> tn | |");
  expect_decodes("void gemmk1_kernel<int, float, 256, 5, false, false, false, false, P>(P)",
                 "cublas gemm | gemm k=1 | f32> | |");
  // The accumulator comes first; the stored type is the tensor's.
  expect_decodes(
      "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<__nv_bfloat16 const>, "
      "cublasGemvTensor<__nv_bfloat16> > >(P)",
      "cublas gemm | dot | bf16> | |");
  expect_decodes("void reduce_1Block_kernel<float, 128, 7, cublasGemvTensor<__nv_bfloat16> >(P)",
                 "cublas gemm_helper | dot reduce | | |");
  for (const char* name :
       {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, "
        "false>(P)",
        "void splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(P)"}) {
    expect_decodes(name, "cublas gemm_helper | splitK reduce | | |");
  }
}

TEST(KernelName, Xmma) {
  expect_decodes(
      "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_"
      "kernel__5x_cublas",
      "xmma gemm | xmma 128x128x64 bf16 | sm90 bf16>bf16 tn 128x128x64 | | segment_k_off");
  expect_decodes(
      "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32_stage3_warpsize2x2x1_tensor16x8x8_execute_"
      "kernel__5x_cublas",
      "xmma gemm | xmma 64x128x32 tf32 | sm80 tf32>f32 nn 64x128x32 s3 | |");
  const KernelName fp8 = decode(
      "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x32_bias_"
      "f16_execute_kernel__"
      "5x_cublas");
  EXPECT_EQ(fp8.dtype, "fp8");
  EXPECT_EQ(fp8.out_dtype, "bf16");
  EXPECT_EQ(fp8.bias, std::nullopt);
  const KernelName conv = decode(
      "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_"
      "g1_tensor16x8x16_"
      "execute_kernel__5x_cudnn");
  EXPECT_EQ(conv.kind, convolution);
  EXPECT_EQ(conv.dtype, "f16");
  EXPECT_EQ(conv.stages, 4);
  const KernelName reduce = decode(
      "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_stage4_warpsize2x2x1_tensor16x8x16_execute_"
      "split_k_kernel__5x_"
      "cublas");
  EXPECT_EQ(reduce.kind, gemm_helper);
}

TEST(KernelName, Tensile) {
  const std::string tail = "_SN_LDSB1_AFC1_CLR1_ISA942_IU1_K1_PGR2_PLR1_SK0_WS64_WG32_8_1";
  // "Bias" is a capability of the kernel; linear layers without one run it too.
  expect_decodes("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1" + tail,
                 "tensile gemm | tensile 32x32x256 bf16 | gfx942 bf16>bf16 tn 32x32x256 | | Bias MI16x16x1");
  const auto of = [&](const std::string& head) { return decode(head + "_MT64x16x32_MI16x16x1_ISA90a"); };
  EXPECT_EQ(of("Cijk_Ailk_Bljk_HHS_BH").layout, "nn");
  EXPECT_EQ(of("Cijk_Ailk_Bjlk_HHS_BH").layout, "nt");
  EXPECT_EQ(of("Cijk_Alik_Bjlk_HHS_BH").layout, "tt");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_HHS_BH").dtype, "f16");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_HSS_BH").out_dtype, "f32");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_SB_Bias_AS").dtype, "f32");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_DB").dtype, "f64");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_I8II_BH").dtype, "i8");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_F8BS_BH").dtype, "fp8");
  EXPECT_EQ(of("Cijk_Ailk_Bljk_SB_Bias_AS").arch, "gfx90a");
  EXPECT_TRUE(decode("Cijk_Ailk_Bljk_SB_MT64x16x32_GSU4").split_k);
  EXPECT_FALSE(decode("Cijk_Ailk_Bljk_SB_MT64x16x32_GSU1").split_k);
  EXPECT_EQ(decode("Cijk_S_Bias_HAS_PostGSU4_VW4").kind, gemm_helper);
}

TEST(KernelName, MiopenAndComposableKernel) {
  expect_decodes(
      "igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x2x1_"
      "1x4x1x64_gkgs",
      "miopen convolution | miopen 128x64x32 bf16 conv splitK | bf16> 128x64x32 splitK | | fwd nhwc");
  // "half" is the size of the elements: bf16 models run these too.
  expect_decodes("batched_transpose_32x64_pack_2x4_ediv_1x2_half",
                 "miopen copy | batched transpose | | transpose |");
  expect_decodes("SubTensorOpWithCastTensor1d", "miopen copy | cast tensor | | cast |");
  const std::string rms =
      "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_"
      "27Rmsnorm2dFwdPipelineProblemIDF16bDF16bfD"
      "F16bDF16bDF16bffNS_19Generic2dBlockShapeINS_8sequenceIJLi1ELi3072EEEENS5_IJLi1ELi128EEEENS5_"
      "IJLi1ELi8EEEEEENS_18Rmsnorm"
      "2dFwdTraitsILb1ELb0ELb0ELb0ELNS_21Rmsnorm2dFusedAddEnumE0ELNS_23Rmsnorm2dFusedQuantEnumE0ELNS_"
      "22Rmsnorm2dSensitiveEnumE"
      "0EEEEENS_33Rmsnorm2dFwdPipelineDefaultPolicyEEENS_17Default2DEpilogueINS_"
      "24Default2DEpilogueProblemIfDF16bLb0ELb1ELb0EEE"
      "vEEEEJNSM_5KargsEEEEvDpT1_";
  expect_decodes(rms, "ck norm | rms_norm | bf16> | rms_norm |");
  std::string adds = rms;
  adds.replace(adds.find("FusedAddEnumE0"), 14, "FusedAddEnumE1");
  EXPECT_THAT(decode(adds).fused, ElementsAre("add", "rms_norm"));
}

}  // namespace
}  // namespace ingot::trace
