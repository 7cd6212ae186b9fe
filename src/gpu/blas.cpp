// SPDX-License-Identifier: Apache-2.0
#include "gpu/blas.h"

#include <fmt/format.h>

#include <type_traits>

#include "gpu/library.h"
#include "gpu/search.h"

namespace ingot::gpu {

static_assert(sizeof(BlasAlgorithm) == 64 && sizeof(BlasHeuristic) == 96);

namespace {

constexpr std::array file_names{"libcublasLt.so.13", "libcublasLt.so.12"};
/// Of the library's number, 10000 * major + 100 * minor + patch in both generations.
constexpr std::size_t least_version = 120000;

// cublasStatus_t.
constexpr int success = 0, allocation_failed = 3, not_supported = 15;
// cudaDataType_t, cublasComputeType_t.
constexpr int type_f32 = 0, type_f16 = 2, type_bf16 = 14, compute_f32 = 68;
// cublasLtMatmulDescAttributes_t, cublasOperation_t.
constexpr int attribute_transpose_a = 3, attribute_epilogue = 7, attribute_bias = 8, transposed = 1;
// cublasLtEpilogue_t; the library's GELU is the tanh form.
constexpr std::uint32_t epilogue_none = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu = 32;
// cublasLtMatmulPreferenceAttributes_t, cublasLtReductionScheme_t.
constexpr int preference_workspace = 1, preference_reduction = 3, first_alignment = 5, last_alignment = 8;
constexpr std::uint32_t reduce_in_f32 = 2;

const char* status_text(int status) {
  switch (status) {
    case 1:
      return "not initialised";
    case allocation_failed:
      return "out of memory";
    case 7:
      return "invalid value";
    case 8:
      return "not for this GPU";
    case 13:
      return "execution failed";
    case not_supported:
      return "not supported";
    default:
      return "error";
  }
}

Error blas_error(int status, const char* call) {
  const ErrorCode code = status == allocation_failed ? ErrorCode::out_of_memory : ErrorCode::device;
  return {code, fmt::format("{}: {} ({})", call, status_text(status), status)};
}

bool fill(const Library& library, BlasFunctions& functions) {
  Symbols symbols(library);
#define INGOT_TAKE(name) symbols.take(functions.name, #name)
  INGOT_TAKE(cublasLtGetVersion);
  INGOT_TAKE(cublasLtCreate);
  INGOT_TAKE(cublasLtDestroy);
  INGOT_TAKE(cublasLtMatmulDescCreate);
  INGOT_TAKE(cublasLtMatmulDescDestroy);
  INGOT_TAKE(cublasLtMatmulDescSetAttribute);
  INGOT_TAKE(cublasLtMatrixLayoutCreate);
  INGOT_TAKE(cublasLtMatrixLayoutDestroy);
  INGOT_TAKE(cublasLtMatmulPreferenceCreate);
  INGOT_TAKE(cublasLtMatmulPreferenceDestroy);
  INGOT_TAKE(cublasLtMatmulPreferenceSetAttribute);
  INGOT_TAKE(cublasLtMatmulAlgoGetHeuristic);
  INGOT_TAKE(cublasLtMatmul);
#undef INGOT_TAKE
  return symbols.missing() == nullptr;
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return type_bf16;
    case DType::f16:
      return type_f16;
    case DType::f32:
      break;
  }
  return type_f32;
}

std::uint32_t epilogue_of(const GemmShape& shape) {
  const std::uint32_t bias = shape.bias ? epilogue_bias : 0;
  switch (shape.step) {
    case GemmStep::relu:
      return epilogue_relu | bias;
    case GemmStep::gelu_tanh:
      return epilogue_gelu | bias;
    case GemmStep::none:
      break;
  }
  return shape.bias ? epilogue_bias : epilogue_none;
}

}  // namespace

std::vector<std::string> blas_candidates(const base::Environment& environment, const std::string& root) {
  if (!environment.ingot_cublaslt.empty()) return named_candidates(file_names, environment.ingot_cublaslt);
  return library_candidates(file_names, environment, root);
}

Result<std::shared_ptr<const Blas>> Blas::open(const base::Environment& environment) {
  std::string found;  // the first thing wrong with a file that is there
  for (const std::string& candidate : blas_candidates(environment)) {
    const Library library(candidate);
    BlasFunctions functions;
    if (library && fill(library, functions)) {
      if (functions.cublasLtGetVersion() >= least_version) return make(functions, candidate);
      if (found.empty()) found = candidate + " is older than version 12";
    } else if (found.empty() && candidate.find('/') != std::string::npos) {
      found = library ? candidate + " lacks functions of cuBLASLt" : library.error();
    }
  }
  if (found.empty()) found = "not found";
  return Error{ErrorCode::unsupported,
               fmt::format("the vendor's library, cuBLASLt: {}; get it with pip install nvidia-cublas, or "
                           "point INGOT_CUBLASLT to the library or its folder",
                           found)};
}

Result<std::shared_ptr<const Blas>> Blas::make(const BlasFunctions& functions, std::string file) {
  const std::size_t version = functions.cublasLtGetVersion();
  const std::shared_ptr<Blas> blas(new Blas(
      functions, fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100)));
  if (const int status = functions.cublasLtCreate(&blas->handle_); status != success) {
    blas->handle_ = nullptr;
    // It is there, but does not work with this driver or device: as good as absent.
    const Error error = blas_error(status, "cublasLtCreate");
    return Error{status == allocation_failed ? error.code : ErrorCode::unsupported,
                 fmt::format("{}: {}", file, error.message)};
  }
  return std::shared_ptr<const Blas>(blas);
}

Blas::~Blas() {
  if (handle_ != nullptr) functions_.cublasLtDestroy(handle_);
}

Result<Gemm> Gemm::make(std::shared_ptr<const Blas> blas, const GemmShape& shape, const void* bias) {
  Gemm gemm(std::move(blas), shape);
  if (auto ok = gemm.set_up(bias); !ok) return ok.error();
  return gemm;
}

// The library's matrices are column-major, where a row-major matrix is its own transpose: it computes
// y^T[out, tokens] = W[out, in] x^T[in, tokens] from W stored as [in, out] columns.
Result<void> Gemm::set_up(const void* bias) {
  const BlasFunctions& lib = blas_->functions();
  const auto keep = [](auto* made, auto destroy) {
    return std::shared_ptr<std::remove_pointer_t<decltype(made)>>(made, destroy);
  };
  BlasDescription description = nullptr;
  if (const int s = lib.cublasLtMatmulDescCreate(&description, compute_f32, type_f32); s != success)
    return blas_error(s, "cublasLtMatmulDescCreate");
  description_ = keep(description, lib.cublasLtMatmulDescDestroy);
  const std::uint32_t epilogue = epilogue_of(shape_);
  const auto set = [&](int attribute, const auto& value) {
    return lib.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value);
  };
  int status = set(attribute_transpose_a, transposed);
  if (status == success) status = set(attribute_epilogue, epilogue);
  if (status == success && shape_.bias) status = set(attribute_bias, bias);
  if (status != success) return blas_error(status, "cublasLtMatmulDescSetAttribute");

  const auto lay_out = [&](auto& kept, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    BlasLayout layout = nullptr;
    const int made =
        lib.cublasLtMatrixLayoutCreate(&layout, type_of(shape_.dtype), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), stride);
    if (made == success) kept = keep(layout, lib.cublasLtMatrixLayoutDestroy);
    return made;
  };
  status = lay_out(weight_, shape_.in, shape_.out, shape_.weight_stride);
  if (status == success) status = lay_out(x_, shape_.in, shape_.tokens, shape_.x_stride);
  if (status == success) status = lay_out(y_, shape_.out, shape_.tokens, shape_.y_stride);
  if (status != success) return blas_error(status, "cublasLtMatrixLayoutCreate");
  return {};
}

Result<std::vector<BlasAlgorithm>> Gemm::algorithms(int most) const {
  const BlasFunctions& lib = blas_->functions();
  BlasPreference made = nullptr;
  if (const int s = lib.cublasLtMatmulPreferenceCreate(&made); s != success)
    return blas_error(s, "cublasLtMatmulPreferenceCreate");
  const std::shared_ptr<std::remove_pointer_t<BlasPreference>> preference(
      made, lib.cublasLtMatmulPreferenceDestroy);
  const auto set = [&](int attribute, auto value) {
    return lib.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value);
  };
  int status = set(preference_workspace, std::uint64_t{blas_workspace_bytes});
  // Parts of a sum that are added in 16 bits would be less exact than what the rungs stand for.
  if (status == success) status = set(preference_reduction, reduce_in_f32);
  for (int which = first_alignment; status == success && which <= last_alignment; ++which)
    status = set(which, static_cast<std::uint32_t>(shape_.alignment));
  if (status != success) return blas_error(status, "cublasLtMatmulPreferenceSetAttribute");

  std::vector<BlasHeuristic> proposed(static_cast<std::size_t>(most));
  int found = 0;
  status = lib.cublasLtMatmulAlgoGetHeuristic(blas_->handle(), description_.get(), weight_.get(), x_.get(),
                                              y_.get(), y_.get(), made, most, proposed.data(), &found);
  if (status != success && status != not_supported)
    return blas_error(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<BlasAlgorithm> algorithms;
  for (int i = 0; i < found; ++i) {
    const BlasHeuristic& one = proposed[static_cast<std::size_t>(i)];
    if (one.state == success && one.workspace_bytes <= blas_workspace_bytes)
      algorithms.push_back(one.algorithm);
  }
  if (algorithms.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} has no way to multiply {} x {} by {} x {} in {}", blas_->name(),
                             shape_.tokens, shape_.in, shape_.in, shape_.out, to_string(shape_.dtype))};
  }
  return algorithms;
}

Result<void> Gemm::run(const BlasAlgorithm& algorithm, const GemmOperands& operands, CuStream stream) const {
  const float one = 1, zero = 0;
  const int status = blas_->functions().cublasLtMatmul(
      blas_->handle(), description_.get(), &one, operands.weight, weight_.get(), operands.x, x_.get(), &zero,
      operands.y, y_.get(), operands.y, y_.get(), &algorithm, operands.workspace, blas_workspace_bytes,
      stream);
  if (status != success) return blas_error(status, "cublasLtMatmul");
  return {};
}

}  // namespace ingot::gpu
