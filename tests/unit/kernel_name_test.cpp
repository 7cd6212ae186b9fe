// SPDX-License-Identifier: Apache-2.0
// Names of attention, collectives, serving libraries and nobody; demangling; activations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ingot/kernel_name.h"
#include "unit/kernel_name_describe.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using enum KernelKind;

TEST(KernelName, Attention) {
  expect_decodes(
      "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 32, 4, false, "
      "false, "
      "cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 32, 4, cutlass::bfloat16_t> >, "
      "false>(P)",
      "flash-attention attention | flash attention fwd | bf16> 128x32x64 | |");
  EXPECT_EQ(
      decode("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T, false>(P)").short_name,
      "flash attention bwd");
  EXPECT_EQ(decode("void flash::flash_fwd_splitkv_combine_kernel<T, 4, 7, true>(P)").short_name,
            "flash attention fwd combine");
  EXPECT_EQ(
      decode("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<X> > >(P)")
          .kind,
      attention);
  // cuDNN's "f16" runs bf16 as well: no type is claimed.
  expect_decodes(
      "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x2x1_kernel0_0",
      "cudnn attention | flash attention fwd | sm90 64x128x64 c1x2 | |");
  EXPECT_EQ(
      decode("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_31_64x64x64_1x1x1_kernel0_0")
          .short_name,
      "flash attention bwd");
  expect_decodes(
      "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>"
      "::Params)",
      "mem-efficient attention | mem-efficient attention fwd | sm80 bf16> 64x128x0 | | aligned");
  expect_decodes("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
                 "tensorrt-llm attention | flash attention fwd | sm100a fp8>bf16 128x128x64 | | PagedKv "
                 "Causal Persistent Context");
  EXPECT_EQ(decode("void vllm::paged_attention_v1_kernel<__half, __half, 128, 16>(P)").family, "vllm");
  EXPECT_EQ(decode("void flashinfer::BatchPrefillWithPagedKVCacheKernel<X>(P)").kind, attention);
  EXPECT_EQ(decode("_ZN7ck_tile6kentryILi1ENS_13FmhaFwdKernelINS_1AEEEEEvv").kind, attention);
}

TEST(KernelName, CudnnConvolutionAndNorm) {
  expect_decodes(
      "cudnn_infer_volta_scudnn_128x64_relu_xregs_large_nn_v1",
      "cudnn convolution | cudnn 128x64 f32 conv | volta f32>f32 nn 128x64x0 | | relu xregs large");
  EXPECT_TRUE(decode("cudnn_train_volta_scudnn_128x128_stridedB_splitK_interior_nn_v1").split_k);
  EXPECT_EQ(decode("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)").kind,
            convolution);
  EXPECT_EQ(decode("void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)").kind, convolution);
  EXPECT_EQ(decode("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)").kind,
            convolution);
  EXPECT_EQ(decode("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(int)").kind,
            norm);
  EXPECT_EQ(
      decode(
          "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>(P)")
          .kind,
      copy);
  EXPECT_EQ(
      decode("void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, true>(int)")
          .kind,
      convolution);
}

TEST(KernelName, Communication) {
  expect_decodes("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                 "nccl communication | nccl AllReduce | bf16> | | Sum RING LL");
  expect_decodes("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
                 "nccl communication | nccl AllGather | i8> | | RING LL Sum");
  expect_decodes("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
                 "symmetric-memory communication | all-reduce | bf16> | |");
}

TEST(KernelName, ServingLibraries) {
  expect_decodes(
      "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_"
      "biasM_clmp_"
      "swiGlu_dynBatch_sm100f",
      "tensorrt-llm gemm | tensorrt-llm 128x16x256 fp4*fp8 | sm100f fp4*fp8>fp8 tn 128x16x256 s3 c1x1 bias | "
      "swiglu | transOut dynBatch");
  expect_decodes(
      "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 "
      "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 "
      "const&)), true>(c10::BFloat16*)",
      "vllm pointwise | silu·mul bf16 | bf16> | silu mul |");
  EXPECT_THAT(
      decode("void vllm::act_and_mul_kernel<c10::Half, &(vllm::gelu_tanh_kernel<c10::Half>), true>(P)").fused,
      ElementsAre("gelu_tanh", "mul"));
  EXPECT_THAT(
      decode("void vllm::act_and_mul_kernel<c10::Half, &(vllm::gelu_kernel<c10::Half>), true>(P)").fused,
      ElementsAre("gelu_erf", "mul"));
  expect_decodes(
      "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
      "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
      "vllm norm | add rms_norm | bf16> | add rms_norm |");
  EXPECT_EQ(decode("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(P)").family, "vllm");
  EXPECT_EQ(decode("void flashinfer::norm::FusedAddRMSNormKernel<8, __half>(P)").short_name, "add rms_norm");
  expect_decodes("void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(P)",
                 "vllm other | fp8 quantise | bf16>fp8 | quantize |");
  EXPECT_EQ(decode("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
                   "(vllm::Fp8KVCacheDataType)1>(P)")
                .kind,
            copy);
  EXPECT_EQ(decode("void moe::dev::routing::routingIndicesHistogramKernel<P>(P)").family, "tensorrt-llm");
  EXPECT_EQ(decode("void deep_gemm::sm90_fp8_gemm_1d2d_impl<4096u, 7168u>(P)").dtype, "fp8");
}

TEST(KernelName, UnknownNamesComeBackAsThemselves) {
  expect_decodes("my_kernel", "- unknown | my_kernel | | |");
  expect_decodes("void acme::frobnicate<float>(float*)", "- unknown | frobnicate | | |");
  expect_decodes("", "- unknown | | | |");
  const KernelName lengthy = decode(std::string(300, 'x'));
  EXPECT_EQ(lengthy.short_name, std::string(59, 'x') + "~");
  // Its name says what it does, not whose it is.
  EXPECT_EQ(decode("void acme::my_layer_norm_fast<float>(float*)").kind, norm);
  EXPECT_EQ(decode("void acme::my_layer_norm_fast<float>(float*)").family, "");
}

TEST(KernelName, Demangles) {
  EXPECT_EQ(demangle("_ZN2at6native4copyIfEEvPT_"), "void at::native::copy<float>(float*)");
  EXPECT_EQ(demangle("_ZN7ck_tile6kentryIDF16bfEEvv"), "void ck_tile::kentry<__bf16, float>()");
  EXPECT_EQ(demangle("_ZN7ck_tile6kentryIDF16_fEEvv"), "void ck_tile::kentry<half, float>()");
  EXPECT_EQ(demangle("_ZN2at6native4copyIfEEvPT_.kd"), "void at::native::copy<float>(float*)");
  EXPECT_EQ(demangle("plain_name"), "plain_name");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
}

// f(A<B, B>, A<A<B, B>, A<B, B>>, …): nine characters double the text.
std::string mangled_doubling(int levels) {
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1AI1BS0_E";
  for (int level = 1; level <= levels; ++level) {
    const std::string part = std::string("S") + digits[static_cast<std::size_t>(level)] + "_";
    name += "S_I" + part + part + "E";
  }
  return name;
}

TEST(KernelName, DemanglesNoBombs) {
  EXPECT_EQ(demangle(mangled_doubling(1)), "f(A<B, B>, A<A<B, B>, A<B, B> >)");
  EXPECT_GT(demangle(mangled_doubling(6)).size(), 500U);
  EXPECT_EQ(demangle(mangled_doubling(34)), mangled_doubling(34));  // 100 GB of text
}

TEST(KernelName, ActivationOf) {
  const auto of = [](const std::string& name) { return activation_of(decode(name), name); };
  EXPECT_EQ(of(vectorized(gelu("{lambda()#1}"))), "gelu_tanh");
  EXPECT_EQ(of(vectorized(gelu("{lambda()#2}"))), "gelu_erf");
  EXPECT_EQ(of("triton_poi_fused__unsafe_view_gelu_mul_0"), "gelu");
  EXPECT_EQ(of("triton_poi_fused_mul_silu_1"), "silu");
  EXPECT_EQ(of("triton_poi_fused_relu_0"), "relu");
  EXPECT_EQ(of("triton_poi_fused_mul_sigmoid_0"), "sigmoid");
  EXPECT_EQ(of("triton_poi_fused_tanh_0"), "tanh");
  EXPECT_EQ(of(vectorized("at::native::(anonymous "
                          "namespace)::launch_clamp_scalar(at::TensorIteratorBase&)::{lambda(float)#1}")),
            "relu");
  // Gradients are no activations, and neither is a GELU somebody wrote out by hand a tanh.
  EXPECT_EQ(of("triton_poi_fused_gelu_backward_0"), "");
  EXPECT_EQ(of("triton_poi_fused_add_mul_pow_tanh_0"), "");
  EXPECT_EQ(of("triton_poi_fused_add_mul_0"), "");
  EXPECT_EQ(
      of(vectorized(
          "at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::"
          "threshold_kernel_impl<float>(at::TensorIteratorBase&, float, float)::{lambda(float, float)#1}>")),
      "");
  EXPECT_EQ(of("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"), "");
  EXPECT_EQ(of("aten::gelu"), "gelu");
  EXPECT_EQ(of("aten::relu_"), "relu");
  EXPECT_EQ(of("aten::silu"), "silu");
  EXPECT_EQ(of("aten::gelu_backward"), "");
  EXPECT_EQ(of("aten::mul"), "");
  EXPECT_EQ(of(""), "");
}

}  // namespace
}  // namespace ingot::trace
