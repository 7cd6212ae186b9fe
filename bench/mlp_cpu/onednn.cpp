// SPDX-License-Identifier: Apache-2.0
#include "onednn.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

namespace ingot::bench_mlp {

bool onednn_matmul(std::int64_t m, std::int64_t n, std::int64_t k, const float* x, const float* w, float* y,
                   int threads) {
  omp_set_num_threads(threads);
  return dnnl_sgemm('N', 'T', m, n, k, 1.0F, x, k, w, k, 0.0F, y, n) == dnnl_success;
}

}  // namespace ingot::bench_mlp
