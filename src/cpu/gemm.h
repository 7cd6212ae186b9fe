// SPDX-License-Identifier: Apache-2.0
//
// The one place that multiplies matrices, by oneDNN.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::cpu {

/// While it lives, oneDNN's calls from this thread use this thread alone (its runtime is OpenMP, whose
/// setting is the thread's own). The previous setting comes back with the end of the scope.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int previous_;
};

/// c[m,n] = a[m,k] · b[n,k]ᵀ, added to c when `accumulate`. All row-major, leading dimensions in elements.
/// False: the library ran out of memory.
bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc);

/// Whether gemm_bf16() may be called: the library has it, and the processor has instructions for it.
bool has_gemm_bf16();

/// The same product of bf16 matrices; sums in f32.
bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* a, std::int64_t lda,
               const std::uint16_t* b, std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc);

/// "oneDNN 2.6.3"
std::string gemm_library();

}  // namespace ingot::cpu
