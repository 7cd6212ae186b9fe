// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm.h"

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "cpu/isa.h"

// Exported by oneDNN beside dnnl_sgemm but declared in no header of it; weak, so that a library without it
// still links.
extern "C" __attribute__((weak)) dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m,
                                                                     dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                                                     const std::uint16_t* a, dnnl_dim_t lda,
                                                                     const std::uint16_t* b, dnnl_dim_t ldb,
                                                                     float beta, float* c, dnnl_dim_t ldc);

namespace ingot::cpu {

SingleThreaded::SingleThreaded() : previous_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
SingleThreaded::~SingleThreaded() {
  omp_set_num_threads(previous_);
}

bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc) {
  return dnnl_sgemm('N', 'T', m, n, k, 1.0F, a, lda, b, ldb, accumulate ? 1.0F : 0.0F, c, ldc) ==
         dnnl_success;
}

bool has_gemm_bf16() {
  return dnnl_gemm_bf16bf16f32 != nullptr && has_bf16_instructions();
}

bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* a, std::int64_t lda,
               const std::uint16_t* b, std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc) {
  return dnnl_gemm_bf16bf16f32('N', 'T', m, n, k, 1.0F, a, lda, b, ldb, accumulate ? 1.0F : 0.0F, c, ldc) ==
         dnnl_success;
}

std::string gemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace ingot::cpu
