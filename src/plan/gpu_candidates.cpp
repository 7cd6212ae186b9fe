// SPDX-License-Identifier: Apache-2.0
//
// What each rung takes on a GPU: the vendor's library by a roofline, Ingot's kernels by the forecasts of
// their tiles. The factors and how well they fit are in docs/cost-model.md.
#include <cmath>

#include "plan/choose.h"
#include "plan/mlp_kernel.h"

namespace ingot {

namespace {

// Of a large product's rate: by the library's GEMM, and with an activation in its epilogue.
constexpr double gemm_share = 0.88, epilogue_share = 0.86;
constexpr double pass_share = 0.9;     // of a copy's rate, by kernels that read and write whole tensors
constexpr double gemm_fixed_s = 3e-6;  // start and end of a GEMM that nothing hides

class LibraryModel {
 public:
  LibraryModel(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu)
      : mlp_(mlp), tokens_(static_cast<double>(tokens)), gpu_(gpu) {}

  double seconds(Rung rung, bool packed) const;

 private:
  double linear(double in, double out, double share) const;
  /// Elements read and written by one pointwise kernel.
  double pass(double elements) const {
    return gpu_.launch_s + elements * element() / (pass_share * gpu_.memory_bytes_per_s);
  }
  double element() const { return static_cast<double>(size_of(mlp_.dtype)); }

  const Mlp& mlp_;
  double tokens_;
  const GpuDescription& gpu_;
};

double LibraryModel::linear(double in, double out, double share) const {
  const double rate = mlp_.dtype == DType::f32 ? gpu_.f32_flops_per_s : gpu_.tensor_flops_per_s;
  const double compute = 2 * tokens_ * in * out / (share * rate);
  const double memory = element() * (tokens_ * in + in * out + tokens_ * out) / gpu_.memory_bytes_per_s;
  return gpu_.launch_s + gemm_fixed_s + std::sqrt(compute * compute + memory * memory);
}

double LibraryModel::seconds(Rung rung, bool packed) const {
  const auto dim = static_cast<double>(mlp_.dim), hidden = static_cast<double>(mlp_.hidden);
  const double h = tokens_ * hidden, y = tokens_ * dim;
  if (rung == Rung::epilogue) return linear(dim, hidden, epilogue_share) + linear(hidden, dim, gemm_share);
  const int linears = mlp_.gated && !packed ? 2 : 1;
  const double width = mlp_.gated && packed ? 2 * hidden : hidden;
  double time = linears * linear(dim, width, gemm_share) + linear(hidden, dim, gemm_share);
  if (rung == Rung::matmul_add && mlp_.bias) {
    time += linears * pass(2 * tokens_ * width) + pass(2 * y);
  }
  if (mlp_.activation != Activation::identity) time += pass(2 * h);
  if (mlp_.gated) time += pass(3 * h);
  return time;
}

bool library_epilogue(const Mlp& mlp) {
  return !mlp.gated && (mlp.activation == Activation::relu || mlp.activation == Activation::gelu_tanh);
}

}  // namespace

void gpu_candidates(const Mlp& mlp, std::int64_t tokens, const GpuDescription& gpu,
                    const PlanOptions& options, const TuningTable* tuned,
                    std::array<Candidate, rung_count>& candidates) {
  const LibraryModel library(mlp, tokens, gpu);
  for (const Rung rung : {Rung::matmul_add, Rung::unfused, Rung::epilogue}) {
    Candidate& candidate = candidates[static_cast<std::size_t>(rung)];
    if (rung == Rung::epilogue && !library_epilogue(mlp)) {
      candidate.rejected = Rejection::no_library_epilogue;
      continue;
    }
    candidate.rejected = gpu.library ? Rejection::none : Rejection::no_library;
    candidate.forecast_us = 1e6 * library.seconds(rung, options.packed);
  }
  const KernelRoute route =
      choose_route(mlp, tokens, gpu, {options.numerics, options.aligned, tuned}, options.rung);
  Candidate& two = candidates[static_cast<std::size_t>(Rung::two_kernel)];
  Candidate& one = candidates[static_cast<std::size_t>(Rung::one_kernel)];
  one.rejected = Rejection::no_mlp_kernel;
  if (route.pair.found) {
    two.rejected = Rejection::none;
    two.forecast_us = route.pair_us;
  }
  if (route.one.found) {
    one.rejected = Rejection::none;
    one.forecast_us = route.one.us;
  }
  if (!route.pair.found || !route.one.found || options.rung) return;
  // Decided for the whole class of tokens, so that all its numbers run the same kernels.
  Candidate &taken = route.takes_one ? one : two, &other = route.takes_one ? two : one;
  const bool faster = other.forecast_us < taken.forecast_us;
  other.rejected = faster ? Rejection::within_model_error : Rejection::slower;
  if (route.measured) other.rejected = Rejection::measured_slower;
}

}  // namespace ingot
