// SPDX-License-Identifier: Apache-2.0
//
// Which of the library's proposals multiplies fastest. Its favourite often is not; what Ingot is compared
// with should be the library at its best.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "gpu/blas.h"
#include "gpu/device.h"

namespace ingot::gpu {

/// The library with the algorithms measured so far, shared by everything prepared on one engine. Thread-safe.
class GemmChoices {
 public:
  GemmChoices(std::shared_ptr<const Device> device, std::shared_ptr<const Blas> blas)
      : device_(std::move(device)), blas_(std::move(blas)) {}

  const std::shared_ptr<const Blas>& blas() const { return blas_; }

  /// Measured the first time a shape is asked for: the first eight proposals in turn, each with the cache
  /// emptied before, the least of five. Then y holds some product, and the stream was waited for, which must
  /// not be captured. The context must be current.
  Result<BlasAlgorithm> choose(const Gemm& gemm, const GemmOperands& operands, CuStream stream);

 private:
  Result<BlasAlgorithm> measure(const Gemm& gemm, const GemmOperands& operands, CuStream stream) const;

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const Blas> blas_;
  std::mutex mutex_;  // held while measuring: two at once would disturb each other
  std::map<GemmShape, BlasAlgorithm> chosen_;
};

/// Opens the library when a rung first needs it: most processes never do.
class LibrarySource {
 public:
  explicit LibrarySource(base::Environment environment) : environment_(std::move(environment)) {}
  /// For tests: opened already.
  explicit LibrarySource(std::shared_ptr<GemmChoices> opened) : opened_(std::move(opened)) {}

  /// The context must be current. Errors: as Blas::open.
  Result<std::shared_ptr<GemmChoices>> get(const std::shared_ptr<const Device>& device);

 private:
  base::Environment environment_;
  std::mutex mutex_;
  std::shared_ptr<GemmChoices> opened_;
};

}  // namespace ingot::gpu
