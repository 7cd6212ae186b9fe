// SPDX-License-Identifier: Apache-2.0
#include "onednn.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "cpu/gemm.h"

namespace ingot::bench_mlp {

bool onednn_matmul(std::int64_t m, std::int64_t n, std::int64_t k, const float* x, const float* w, float* y,
                   int threads) {
  omp_set_num_threads(threads);
  return dnnl_sgemm('N', 'T', m, n, k, 1.0F, x, k, w, k, 0.0F, y, n) == dnnl_success;
}

bool onednn_matmul(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* x,
                   const std::uint16_t* w, float* y, int threads) {
  omp_set_num_threads(threads);
  return cpu::gemm_bf16(m, n, k, x, k, w, k, false, y, n);
}

}  // namespace ingot::bench_mlp
