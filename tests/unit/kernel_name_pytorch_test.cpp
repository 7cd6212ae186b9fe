// SPDX-License-Identifier: Apache-2.0
// Names of PyTorch's own kernels and of torch.compile's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ingot/kernel_name.h"
#include "unit/kernel_name_describe.h"

namespace ingot::trace {
namespace {

using testing::ElementsAre;
using enum KernelKind;

TEST(KernelName, TritonInductor) {
  expect_decodes("triton_poi_fused__unsafe_view_gelu_mul_0",
                 "triton-inductor pointwise | triton gelu·mul | | gelu mul |");
  expect_decodes("triton_poi_fused_gelu_view_2", "triton-inductor pointwise | triton gelu | | gelu |");
  expect_decodes("triton_poi_fused_relu_0", "triton-inductor pointwise | triton relu | | relu |");
  expect_decodes("triton_poi_fused__unsafe_view_mul_silu_2",
                 "triton-inductor pointwise | triton mul·silu | | mul silu |");
  expect_decodes("triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0",
                 "triton-inductor pointwise | triton add·bitwise_and·bitwise_not·bitwise_or·ge·lt·mul·sub | "
                 "| add bitwise_and bitwise_not bitwise_or ge lt mul sub |");
  expect_decodes("triton_poi_fused__to_copy_1", "triton-inductor copy | triton _to_copy | | _to_copy |");
  expect_decodes(
      "triton_poi_fused_constant_pad_nd_moe_forward_0",
      "triton-inductor copy | triton constant_pad_nd·moe_forward | | constant_pad_nd moe_forward |");
  expect_decodes("triton_poi_fused_clone_transpose_3", "triton-inductor copy | triton clone | | clone |");
  expect_decodes("triton_poi_fused_t_view_3", "triton-inductor copy | triton copy | | |");
  expect_decodes("triton_poi_fused_0", "triton-inductor pointwise | triton pointwise | | |");
  expect_decodes("triton_red_fused_add_mul_native_layer_norm_split_view_1",
                 "triton-inductor norm | triton add·mul·native_layer_norm | | add mul native_layer_norm |");
  expect_decodes("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
                 "triton-inductor norm | triton add·mean·mul·pow·rsqrt | | add mean mul pow rsqrt |");
  expect_decodes("triton_per_fused__softmax_4", "triton-inductor reduction | triton _softmax | | _softmax |");
  expect_decodes("triton_per_fused_sum_12", "triton-inductor reduction | triton sum | | sum |");
  expect_decodes("triton_tem_fused_addmm_relu_5",
                 "triton-inductor gemm | triton addmm·relu | | addmm relu |");
  expect_decodes("triton_tem_fused_convolution_7",
                 "triton-inductor convolution | triton convolution | | convolution |");
  // The longest operator wins: gelu_backward is no gelu.
  expect_decodes("triton_poi_fused_gelu_backward_mul_3",
                 "triton-inductor pointwise | triton gelu_backward·mul | | gelu_backward mul |");
  // Words nobody knows stay together; older names carry the specialised arguments.
  expect_decodes("triton_poi_fused_my_own_op_relu_1",
                 "triton-inductor pointwise | triton my_own_op·relu | | my_own_op relu |");
  expect_decodes("triton_poi_fused_add_relu_0_0d1d2de",
                 "triton-inductor pointwise | triton add·relu | | add relu |");
  EXPECT_EQ(decode("triton__0d1d2d").kind, unknown);
  EXPECT_EQ(decode("triton__0d1d2d").family, "triton-inductor");
  // Somebody's own kernel that begins alike.
  expect_decodes("triton_my_softmax_kernel", "triton reduction | softmax | | softmax |");
}

TEST(KernelName, TritonByHand) {
  expect_decodes("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
                 "triton gemm | triton 16x128x256 bf16*fp4 | bf16*fp4>bf16 16x128x256 | swiglu |");
  EXPECT_TRUE(decode("_matmul_ogs_NNT_bf16xbf16xbf16_16x128x256x4").split_k);
  EXPECT_EQ(decode("_matmul_ogs_NNT_bf16xbf16xbf16_16x128x256x4").dtype, "bf16");
  expect_decodes("attn_fwd", "triton attention | flash attention fwd | | |");
  expect_decodes("kernel_unified_attention_2d", "vllm attention | unified attention | | |");
  EXPECT_EQ(decode("fused_moe_kernel").kind, gemm);
  EXPECT_EQ(decode("_topk_forward").kind, other);
  EXPECT_EQ(decode("_finalize_matmul_scatter_bf16").kind, gemm_helper);
}

TEST(KernelName, AtenGeluForms) {
  expect_decodes(vectorized(gelu("{lambda()#1}")),
                 "aten pointwise | gelu_tanh bf16 | bf16>bf16 | gelu_tanh |");
  expect_decodes(strided(gelu("{lambda()#1}")), "aten pointwise | gelu_tanh bf16 | bf16>bf16 | gelu_tanh |");
  expect_decodes(strided(gelu("{lambda()#2}", "float")),
                 "aten pointwise | gelu_erf f32 | f32>f32 | gelu_erf |");
  EXPECT_THAT(decode(vectorized(gelu("'lambda'()"))).fused, ElementsAre("gelu_tanh"));
  EXPECT_THAT(decode(vectorized(gelu("'lambda0'()"))).fused, ElementsAre("gelu_erf"));
  EXPECT_THAT(decode(vectorized("at::native::xpu::GeluErfFunctor<float>")).fused, ElementsAre("gelu_erf"));
  // Without a form argument there was only the exact one.
  EXPECT_THAT(decode(vectorized(lambda_of("GeluCUDAKernelImpl", "float"))).fused, ElementsAre("gelu_erf"));
  EXPECT_THAT(
      decode(
          vectorized("at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::"
                     "{lambda()#1}::operator()() const::{lambda(float, float)#1}"))
          .fused,
      ElementsAre("gelu_backward"));
}

TEST(KernelName, AtenPointwise) {
  const std::string binary_mul =
      "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
      "at::native::binary_internal::MulFunctor<float> >";
  expect_decodes(vectorized(binary_mul), "aten pointwise | mul bf16 | bf16>bf16 | mul |");
  expect_decodes(strided(binary_mul), "aten pointwise | mul bf16 | bf16>bf16 | mul |");
  for (const char* unary : {"AUnaryFunctor", "BUnaryFunctor"}) {
    expect_decodes(
        vectorized("at::native::" + std::string(unary) +
                   "<c10::Half, c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> >"),
        "aten pointwise | mul scalar f16 | f16>f16 | mul | scalar");
  }
  expect_decodes(vectorized("at::native::CUDAFunctor_add<float>"),
                 "aten pointwise | add f32 | f32>f32 | add |");
  expect_decodes(vectorized("at::native::CUDAFunctorOnSelf_add<c10::BFloat16>"),
                 "aten pointwise | add scalar bf16 | bf16>bf16 | add | scalar");
  expect_decodes(
      vectorized(
          "at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, "
          "c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#9}::"
          "operator()() const::{lambda(c10::BFloat16)#1}"),
      "aten pointwise | relu bf16 | bf16> | relu | clamp");
  expect_decodes(vectorized("at::native::AUnaryFunctor<long, long, bool, at::native::(anonymous "
                            "namespace)::CompareEqFunctor<long> >"),
                 "aten pointwise | eq scalar i64 | i64>bool | eq | scalar");
  // The value, not the mask, is the type.
  expect_decodes(strided("at::native::(anonymous "
                         "namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() "
                         "const::{lambda(bool, c10::Half, c10::Half)#1}"),
                 "aten pointwise | where f16 | f16> | where |");
}

TEST(KernelName, AtenOperatorsByTheirFunctionsName) {
  const auto op = [](const std::string& function) {
    return decode(vectorized(lambda_of(function, "c10::BFloat16")));
  };
  EXPECT_THAT(op("(anonymous namespace)::silu_kernel").fused, ElementsAre("silu"));
  EXPECT_THAT(op("(anonymous namespace)::silu_backward_kernel").fused, ElementsAre("silu_backward"));
  EXPECT_THAT(op("sigmoid_kernel_cuda").fused, ElementsAre("sigmoid"));
  EXPECT_THAT(op("tanh_kernel_cuda").fused, ElementsAre("tanh"));
  EXPECT_THAT(op("atanh_kernel_cuda").fused, ElementsAre("atanh"));
  EXPECT_THAT(op("hardsigmoid_kernel").fused, ElementsAre("hardsigmoid"));
  EXPECT_THAT(op("neg_kernel_cuda").fused, ElementsAre("neg"));
  EXPECT_THAT(op("mse_backward_cuda_kernel").fused, ElementsAre("mse_backward"));
  EXPECT_THAT(op("pow_tensor_scalar_kernel_impl").fused, ElementsAre("pow"));
  EXPECT_EQ(op("neg_kernel_cuda").dtype, "bf16");
}

TEST(KernelName, AtenCopiesSayWhatTheyKnow) {
  const std::string functor = lambda_of("direct_copy_kernel_cuda", "c10::BFloat16");
  expect_decodes(strided(functor), "aten copy | copy bf16 | bf16>bf16 | copy |");
  // A converting copy computes in the type it writes; what it reads is not in the name.
  const std::string to_long = lambda_of("direct_copy_kernel_cuda", "long");
  expect_decodes("void at::native::unrolled_elementwise_kernel<" + to_long +
                     ", std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
                     "TrivialOffsetCalculator<1, unsigned "
                     "int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)",
                 "aten copy | copy to i64 | >i64 | copy | cast");
  expect_decodes("void at::native::elementwise_kernel_manual_unroll<128, 4, at::native::gpu_kernel_impl<" +
                     to_long + ">(at::TensorIteratorBase&, " + to_long +
                     " const&)::{lambda(int, bool)#1}>(int)",
                 "aten copy | copy to i64 | >i64 | copy | cast");
}

TEST(KernelName, AtenOthers) {
  expect_decodes(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, "
      "at::native::MeanOps<c10::BFloat16, "
      "float, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4, 4> >(R)",
      "aten reduction | mean bf16 | bf16>bf16 | mean |");
  expect_decodes(
      "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
      "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, "
      "float)#1}>, "
      "unsigned int, float, 4> >(R)",
      "aten reduction | sum f32 | f32>f32 | sum |");
  expect_decodes(
      "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, "
      "false>(int)",
      "aten norm | layer_norm | bf16> | layer_norm |");
  expect_decodes(
      "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 3, false, "
      "false>(int)",
      "aten reduction | softmax | bf16> | softmax |");
  EXPECT_EQ(
      decode("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(int)")
          .short_name,
      "log_softmax");
  // One kernel serves both norms; its last argument tells which.
  EXPECT_EQ(
      decode("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, true>(int)")
          .short_name,
      "rms_norm");
  expect_decodes(
      "_ZN2at6native53_GLOBAL__N__1aa0d23f_20_layer_norm_kernel_cu_9c5ada8a28vectorized_layer_norm_"
      "kernelIN3c104HalfEfEEviT0_"
      "PKT_S8_S8_PS5_S9_PS6_",
      "aten norm | layer_norm | f16> | layer_norm |");
  // Opaque bytes have no element type.
  expect_decodes(
      "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
      "namespace)::OpaqueType<2u>, "
      "unsigned int, 3, 64, 64>(int)",
      "aten copy | cat | | cat |");
  expect_decodes("void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
                 "aten copy | gather | | gather |");
  expect_decodes(
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
      "TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<c10::BFloat16, 2, 1, 1>, "
      "at::native::Copy<c10::BFloat16, c10::BFloat16> >(int)",
      "aten copy | copy bf16 | bf16> | copy |");
  // A kernel of PyTorch's nobody listed: PyTorch's, doing something else.
  expect_decodes("void at::native::brand_new_kernel<float>(float*)",
                 "aten other | brand_new_kernel | f32> | |");
}

}  // namespace
}  // namespace ingot::trace
