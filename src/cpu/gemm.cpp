// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm.h"

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

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

std::string gemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace ingot::cpu
