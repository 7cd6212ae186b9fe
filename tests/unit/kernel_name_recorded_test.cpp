// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of examples/traces, with what it is.
#include <gtest/gtest.h>

#include "ingot/kernel_name.h"

namespace ingot::trace {
namespace {

struct Recorded {
  const char* name;
  const char* family;
  const char* kind;
};

const Recorded kRecorded[] = {
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0",
     "cudnn", "attention"},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
     "cudnn", "attention"},
    {"nvjet_sm90_tst_112x128_64x7_2x1_v_bz_bias_TNN", "nvjet", "gemm"},
    {"nvjet_sm90_tst_128x64_64x8_1x2_h_bz_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_144x128_64x6_1x2_h_bz_coopA_bias_TNN", "nvjet", "gemm"},
    {"nvjet_sm90_tst_168x128_64x5_1x2_h_bz_coopA_bias_TNN", "nvjet", "gemm"},
    {"nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_24x64_64x16_4x1_v_bz_bias_TNN", "nvjet", "gemm"},
    {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x16_64x16_4x1_v_bz_splitK_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x32_64x16_4x2_h_bz_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x32_64x16_4x2_h_bz_splitK_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x48_64x15_2x4_h_bz_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x8_64x16_1x2_h_bz_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x8_64x16_1x4_h_badd_NNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x8_64x16_2x4_h_bz_bias_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT", "nvjet", "gemm"},
    {"nvjet_sm90_tst_72x64_64x12_1x2_h_bz_bias_TNN", "nvjet", "gemm"},
    {"triton_poi_fused__unsafe_view_gelu_mul_0", "triton-inductor", "pointwise"},
    {"triton_poi_fused_add_mul_split_view_5", "triton-inductor", "pointwise"},
    {"triton_poi_fused_gelu_view_2", "triton-inductor", "pointwise"},
    {"triton_poi_fused_relu_0", "triton-inductor", "pointwise"},
    {"triton_red_fused_add_mul_native_layer_norm_split_0", "triton-inductor", "norm"},
    {"triton_red_fused_add_mul_native_layer_norm_split_view_1", "triton-inductor", "norm"},
    {"triton_red_fused_add_mul_native_layer_norm_split_view_3", "triton-inductor", "norm"},
    {"triton_red_fused_add_mul_native_layer_norm_split_view_4", "triton-inductor", "norm"},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
     "namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<c10::BFloat16, 2, "
     "1, 1>, at::native::Copy<c10::BFloat16, c10::BFloat16> >(at::native::(anonymous "
     "namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<c10::BFloat16, 2, "
     "1, 1>, at::native::Copy<c10::BFloat16, c10::BFloat16>)",
     "aten", "copy"},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, "
     "float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, "
     "c10::BFloat16*)",
     "aten", "norm"},
    {"void at::native::elementwise_kernel<128, 4, "
     "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
     "c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
     "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
     "at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1}>(int, "
     "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
     "c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
     "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
     "at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1})",
     "aten", "pointwise"},
    {"void at::native::elementwise_kernel<128, 4, "
     "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> "
     ">(at::TensorIteratorBase&, at::native::CUDAFunctor_add<c10::BFloat16> const&)::{lambda(int)#1}>(int, "
     "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> "
     ">(at::TensorIteratorBase&, at::native::CUDAFunctor_add<c10::BFloat16> const&)::{lambda(int)#1})",
     "aten", "pointwise"},
    {"void at::native::elementwise_kernel<128, 4, "
     "at::native::gpu_kernel_impl_nocast<at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, "
     "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1} const&)::{lambda(int)#1}>(int, "
     "at::native::gpu_kernel_impl_nocast<at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, "
     "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1} const&)::{lambda(int)#1})",
     "aten", "pointwise"},
    {"void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous "
     "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
     "at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#9}::operator()() "
     "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::(anonymous "
     "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
     "at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#9}::operator()() "
     "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
     "aten", "pointwise"},
    {"void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, "
     "c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> "
     ">(int, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
     "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)",
     "aten", "pointwise"},
    {"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, "
     "std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, "
     "2ul>)",
     "aten", "pointwise"},
    {"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
     "aten", "pointwise"},
    {"void at::native::vectorized_elementwise_kernel<8, "
     "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, "
     "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
     "aten", "pointwise"},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, false, "
     "float, __nv_bfloat16, __nv_bfloat16, true, false, false, false>(cublasLt::cublasSplitKParams<float>, "
     "float const*, __nv_bfloat16 const*, float*, __nv_bfloat16*, float const*, float const*, __nv_bfloat16 "
     "const*, float const*, __nv_bfloat16*, void*, long, float*, int*, float*, float*, float const*, float "
     "const*, float const*, float const*, float const*)",
     "cublas", "gemm_helper"},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, false, "
     "float, __nv_bfloat16, __nv_bfloat16, true, true, false, false>(cublasLt::cublasSplitKParams<float>, "
     "float const*, __nv_bfloat16 const*, float*, __nv_bfloat16*, float const*, float const*, __nv_bfloat16 "
     "const*, float const*, __nv_bfloat16*, void*, long, float*, int*, float*, float*, float const*, float "
     "const*, float const*, float const*, float const*)",
     "cublas", "gemm_helper"},
};

TEST(RecordedKernels, AllHaveAFamilyAndAKind) {
  EXPECT_EQ(std::size(kRecorded), 41U);
  for (const Recorded& recorded : kRecorded) {
    SCOPED_TRACE(recorded.name);
    const KernelName got = decode(recorded.name);
    EXPECT_EQ(got.family, recorded.family);
    EXPECT_EQ(to_string(got.kind), recorded.kind);
    EXPECT_NE(got.short_name, "");
    // These models are bf16 throughout. Triton's, cuDNN's attention's and the split-K reduction's names carry
    // no type.
    const bool typed = got.family == "nvjet" || got.family == "aten";
    EXPECT_EQ(got.dtype, typed ? "bf16" : "");
  }
}

}  // namespace
}  // namespace ingot::trace
