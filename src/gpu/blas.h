// SPDX-License-Identifier: Apache-2.0
//
// The vendor's GEMM library, cuBLASLt, opened at run time: the rungs that Ingot is measured against are made
// of it. Names, numbers and layouts are those of its binary interface (versions 12 and 13).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "gpu/driver.h"
#include "ingot/mlp.h"
#include "ingot/status.h"

namespace ingot::gpu {

using BlasHandle = struct BlasHandleRecord*;
using BlasDescription = struct BlasDescriptionRecord*;  // of a matmul
using BlasLayout = struct BlasLayoutRecord*;
using BlasPreference = struct BlasPreferenceRecord*;

struct BlasAlgorithm {
  std::array<std::uint64_t, 8> words{};
  bool operator==(const BlasAlgorithm&) const = default;
};
struct BlasHeuristic {
  BlasAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

/// The library's functions that Ingot calls; a test fills in its own. 0 is success.
struct BlasFunctions {
  std::size_t (*cublasLtGetVersion)() = nullptr;
  int (*cublasLtCreate)(BlasHandle*) = nullptr;
  int (*cublasLtDestroy)(BlasHandle) = nullptr;
  int (*cublasLtMatmulDescCreate)(BlasDescription*, int compute_type, int scale_type) = nullptr;
  int (*cublasLtMatmulDescDestroy)(BlasDescription) = nullptr;
  int (*cublasLtMatmulDescSetAttribute)(BlasDescription, int attribute, const void* value,
                                        std::size_t bytes) = nullptr;
  int (*cublasLtMatrixLayoutCreate)(BlasLayout*, int type, std::uint64_t rows, std::uint64_t columns,
                                    std::int64_t stride) = nullptr;
  int (*cublasLtMatrixLayoutDestroy)(BlasLayout) = nullptr;
  int (*cublasLtMatmulPreferenceCreate)(BlasPreference*) = nullptr;
  int (*cublasLtMatmulPreferenceDestroy)(BlasPreference) = nullptr;
  int (*cublasLtMatmulPreferenceSetAttribute)(BlasPreference, int attribute, const void* value,
                                              std::size_t bytes) = nullptr;
  int (*cublasLtMatmulAlgoGetHeuristic)(BlasHandle, BlasDescription, BlasLayout a, BlasLayout b, BlasLayout c,
                                        BlasLayout d, BlasPreference, int wanted, BlasHeuristic*,
                                        int* found) = nullptr;
  int (*cublasLtMatmul)(BlasHandle, BlasDescription, const void* alpha, const void* a, BlasLayout,
                        const void* b, BlasLayout, const void* beta, const void* c, BlasLayout, void* d,
                        BlasLayout, const BlasAlgorithm*, void* workspace, std::size_t workspace_bytes,
                        CuStream) = nullptr;
};

/// The library, with a handle of the context that was current when it was opened. Thread-safe.
class Blas {
 public:
  /// Errors unsupported: where it was looked for, what to do; device.
  static Result<std::shared_ptr<const Blas>> open(const base::Environment& environment);
  /// `file`: for messages.
  static Result<std::shared_ptr<const Blas>> make(const BlasFunctions& functions, std::string file);
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  ~Blas();

  const BlasFunctions& functions() const { return functions_; }
  BlasHandle handle() const { return handle_; }
  /// "cuBLASLt 13.1.0"
  const std::string& name() const { return name_; }

 private:
  Blas(const BlasFunctions& functions, std::string name) : functions_(functions), name_(std::move(name)) {}

  BlasFunctions functions_;
  std::string name_;
  BlasHandle handle_ = nullptr;
};

/// Where the library is looked for: $INGOT_CUBLASLT (a file or a folder) and nothing else where it is set,
/// else as for NVRTC. `root`: of the file system, for tests.
std::vector<std::string> blas_candidates(const base::Environment& environment, const std::string& root = "");

/// What the library does to the sums beside adding a bias.
enum class GemmStep : std::uint8_t { none, relu, gelu_tanh };

/// y[tokens, out] = step(x[tokens, in] W^T + bias): sums in f32, rounded once. Strides in elements.
struct GemmShape {
  DType dtype = DType::bf16;
  std::int64_t tokens = 0, out = 0, in = 0;
  std::int64_t x_stride = 0, weight_stride = 0, y_stride = 0;
  bool bias = false;
  GemmStep step = GemmStep::none;
  int alignment = 16;  ///< bytes that every address is a multiple of

  auto operator<=>(const GemmShape&) const = default;
};

struct GemmOperands {
  const void* x = nullptr;
  const void* weight = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
};

/// Given to the library for its own use with every product, at a multiple of 256 bytes.
inline constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20U;

/// One product as the library describes it.
class Gemm {
 public:
  static Result<Gemm> make(std::shared_ptr<const Blas> blas, const GemmShape& shape, const void* bias);

  const GemmShape& shape() const { return shape_; }
  /// The library's proposals, its favourite first; at least one. Error unsupported: it has none.
  Result<std::vector<BlasAlgorithm>> algorithms(int most) const;
  /// Puts the product into the stream.
  Result<void> run(const BlasAlgorithm& algorithm, const GemmOperands& operands, CuStream stream) const;

 private:
  template <class T>
  using Owned = std::shared_ptr<std::remove_pointer_t<T>>;
  Gemm(std::shared_ptr<const Blas> blas, const GemmShape& shape) : blas_(std::move(blas)), shape_(shape) {}
  Result<void> set_up(const void* bias);

  std::shared_ptr<const Blas> blas_;
  GemmShape shape_;
  Owned<BlasDescription> description_;
  Owned<BlasLayout> weight_, x_, y_;
};

}  // namespace ingot::gpu
