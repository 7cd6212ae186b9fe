// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt without it: products are recorded, and take the time that the test gives their algorithm. One fake
// at a time, the last one made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fake/gpu_driver.h"
#include "gpu/blas.h"

namespace ingot::test {

/// One recorded product, as the library was told.
struct Product {
  std::uint64_t rows = 0, columns = 0, depth = 0;         ///< of the column-major result; summed over
  std::int64_t stride_a = 0, stride_b = 0, stride_d = 0;  ///< elements
  int type = 0, compute = 0, transpose_a = 0, epilogue = 0;
  const void *a = nullptr, *b = nullptr, *d = nullptr, *bias = nullptr, *workspace = nullptr;
  std::uint64_t algorithm = 0;
  gpu::CuStream stream = nullptr;
  int launches_before = 0;  ///< of kernels, by the fake GPU
};

class FakeBlas {
 public:
  explicit FakeBlas(FakeGpu& gpu);
  FakeBlas(const FakeBlas&) = delete;
  FakeBlas& operator=(const FakeBlas&) = delete;
  ~FakeBlas();

  gpu::BlasFunctions functions() const;

  std::vector<Product> products;
  std::size_t version = 130100;
  std::vector<std::uint64_t> algorithms{1, 2, 3};  ///< proposed, in this order
  std::map<std::uint64_t, double> seconds;         ///< of a product; 1e-5 where none is given
  std::set<std::uint64_t> refused;                 ///< algorithms that fail when they run
  std::vector<std::uint32_t> alignments;           ///< given with the last question for algorithms
  std::uint32_t reduction = 0;
  int fail_at = 0;  ///< the n-th call from now on fails, with `fail_with`; 0: none
  int fail_with = 14;
  int alive = 0;  ///< handles, descriptions, layouts and preferences not yet given back

 private:
  friend struct BlasCalls;
  FakeGpu& gpu_;
};

}  // namespace ingot::test
