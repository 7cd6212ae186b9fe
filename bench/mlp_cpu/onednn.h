// SPDX-License-Identifier: Apache-2.0
//
// oneDNN by itself: the matrix products of an MLP as single calls on all its threads, nothing around them.
#pragma once

#include <cstdint>

namespace ingot::bench_mlp {

/// y[m,n] = x[m,k] · w[n,k]ᵀ in f32 on `threads` of oneDNN's own threads. False: the library failed.
bool onednn_matmul(std::int64_t m, std::int64_t n, std::int64_t k, const float* x, const float* w, float* y,
                   int threads);

/// The same of bf16 matrices into f32; only where cpu::has_gemm_bf16().
bool onednn_matmul(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* x,
                   const std::uint16_t* w, float* y, int threads);

}  // namespace ingot::bench_mlp
