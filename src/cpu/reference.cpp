// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "cpu/numbers.h"
#include "plan/arguments.h"

namespace ingot::cpu {

namespace {

// A run may have this much more error than the framework's roundings alone: the numerics contract.
constexpr double allowance = 1.1;
// The errors of n values are a sample: their norm strays by 1 / sqrt(n) of the expected one, here times five.
constexpr double sampling = 5;
// No single value is off by more than this many standard deviations. Roundings add up to a normal
// distribution, which passes 8 once in 10^15 values; a value computed from the wrong inputs passes it at
// once.
constexpr double most_deviations = 12;
// Activations in f32 are right to a few roundings (kernels/activations.cuh).
constexpr double activation_roundings = 3;

/// Half a unit in the last place, relative: the largest rounding error.
double unit_roundoff(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : (dtype == DType::bf16 ? 0x1p-9 : 0x1p-12);
}

double square(double x) {
  return x * x;
}

double load(DType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::bf16:
      return Element<DType::bf16>::load(static_cast<const std::uint16_t*>(data)[i]);
    case DType::f16:
      return Element<DType::f16>::load(static_cast<const std::uint16_t*>(data)[i]);
  }
  return 0;
}

/// Rounded once, from double: through f32 first it could round twice.
double round_to(DType dtype, double x) {
  if (dtype == DType::f32) return static_cast<float>(x);
  if (!std::isfinite(x) || x == 0) return x;
  const int digits = dtype == DType::bf16 ? 8 : 11;  // of the significand, the hidden one included
  const int least = dtype == DType::bf16 ? -126 : -14;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  const double unit = std::ldexp(1.0, std::max(exponent - 1, least) - (digits - 1));
  const double rounded = std::nearbyint(x / unit) * unit;
  const double infinite_from = dtype == DType::bf16 ? std::ldexp(1.0, 128) : std::ldexp(1.0, 16);
  return std::abs(rounded) >= infinite_from ? std::copysign(HUGE_VAL, x) : rounded;
}

/// One linear read row by row.
struct Operand {
  DType dtype;
  Linear linear;
  std::int64_t in;

  void weight_row(std::int64_t out, double* row) const {
    for (std::int64_t k = 0; k < in; ++k) row[k] = load(dtype, linear.weight, out * linear.row_stride + k);
  }
  double bias(std::int64_t out) const { return linear.bias == nullptr ? 0 : load(dtype, linear.bias, out); }
};

double exact_sum(const double* a, const double* w, std::int64_t n) {
  double sums[8] = {};  // lanes, so that compilers vectorise it
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += a[k + lane] * w[k + lane];
  }
  for (; k < n; ++k) sums[0] += a[k] * w[k];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// The framework's sum before its rounding to the dtype: running in f32, or exact for 16-bit types.
double framework_sum(DType dtype, const double* a, const double* w, std::int64_t n) {
  if (dtype != DType::f32) return exact_sum(a, w, n);
  float sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += static_cast<float>(a[k]) * static_cast<float>(w[k]);
  return sum;
}

/// Variance of a rounding of x: uniform within half a unit in the last place, which is u|x| to 2u|x| wide.
double rounding_variance(DType dtype, double x) {
  const double least = dtype == DType::f16 ? 0x1p-14 : 0x1p-126;  // below, the spacing no longer shrinks
  return square(unit_roundoff(dtype) * std::max(std::abs(x), least)) / 3;
}

/// Variance of a running f32 sum of the products a·w: each of its n additions rounds a partial sum.
double sum_variance(DType dtype, const double* a, const double* w, std::int64_t n, double sum) {
  if (dtype != DType::f32) return 0;
  double squares = 0;
  for (std::int64_t k = 0; k < n; ++k) squares += square(a[k] * w[k]);
  return square(unit_roundoff(dtype)) / 3 * static_cast<double>(n) * (squares + square(sum));
}

enum Kind { exact, framework, matmul_add, kinds };

/// A value and the variance to expect of its distance from the exact one.
struct Estimate {
  double value = 0, variance = 0;
};

/// One output of a linear, as each kind has it; variances from the linear's own roundings alone.
void linear_value(const Operand& op, const double* const in[kinds], const double* weights, std::int64_t out,
                  Estimate value[kinds]) {
  const DType dtype = op.dtype;
  const double bias = op.bias(out);
  const double sum = exact_sum(in[exact], weights, op.in);
  const double sums = sum_variance(dtype, in[exact], weights, op.in, sum);
  const double last = rounding_variance(dtype, sum + bias);
  value[exact] = {sum + bias, 0};
  const double linear = framework_sum(dtype, in[framework], weights, op.in);
  value[framework] = {round_to(dtype, linear + bias), sums + last};
  const double matmul =
      in[matmul_add] == in[framework] ? linear : framework_sum(dtype, in[matmul_add], weights, op.in);
  value[matmul_add] = {round_to(dtype, round_to(dtype, matmul) + bias),
                       sums + rounding_variance(dtype, sum) + last};
}

class Computation {
 public:
  Computation(const Mlp& mlp, const ResolvedWeights& weights, std::vector<double> x, std::int64_t rows,
              ThreadPool& pool)
      : mlp_(mlp), weights_(weights), x_(std::move(x)), rows_(rows), pool_(pool) {
    for (auto& h : hidden_) h.resize(static_cast<std::size_t>(rows * mlp.hidden));
    for (auto& variances : variance_) variances.resize(hidden_[exact].size());
    // Tasks run on threads that have nowhere to throw to: they allocate nothing.
    longest_ = std::max(mlp.dim, mlp.hidden);
    weight_rows_.resize(static_cast<std::size_t>(std::int64_t{2} * pool.threads() * longest_));
  }

  void fill(Reference& out) {
    const std::int64_t blocks = (mlp_.hidden + columns - 1) / columns;
    pool_.run(blocks, [&](std::int64_t block, int slot) { hidden_columns(block * columns, slot); });
    std::vector<double>* const values[kinds] = {&out.exact, &out.framework, &out.matmul_add};
    std::vector<double>* const deviations[kinds] = {nullptr, &out.deviation, &out.matmul_add_deviation};
    const std::size_t size = static_cast<std::size_t>(rows_ * mlp_.dim);
    Outputs outputs;
    for (int kind = 0; kind < kinds; ++kind) {
      values[kind]->resize(size);
      outputs.value[kind] = values[kind]->data();
      if (kind == exact) continue;
      deviations[kind]->resize(size);
      outputs.deviation[kind] = deviations[kind]->data();
    }
    const std::int64_t out_blocks = (mlp_.dim + columns - 1) / columns;
    pool_.run(out_blocks,
              [&](std::int64_t block, int slot) { output_columns(block * columns, slot, outputs); });
  }

 private:
  static constexpr std::int64_t columns = 16;  // per task
  struct Outputs {
    double* value[kinds] = {};
    double* deviation[kinds] = {};
  };

  /// Room for two rows of weights.
  double* weight_row(int slot, int which) { return weight_rows_.data() + (2 * slot + which) * longest_; }

  void hidden_columns(std::int64_t first, int slot) {
    double* const gate_row = weight_row(slot, 0);
    double* const up_row = weight_row(slot, 1);
    const Operand gate{mlp_.dtype, weights_.gate, mlp_.dim}, up{mlp_.dtype, weights_.up, mlp_.dim};
    for (std::int64_t j = first; j < std::min(mlp_.hidden, first + columns); ++j) {
      gate.weight_row(j, gate_row);
      if (mlp_.gated) up.weight_row(j, up_row);
      for (std::int64_t r = 0; r < rows_; ++r) {
        const double* const x = x_.data() + r * mlp_.dim;
        const double* const in[kinds] = {x, x, x};
        Estimate g[kinds], u[kinds] = {{1, 0}, {1, 0}, {1, 0}};
        linear_value(gate, in, gate_row, j, g);
        if (mlp_.gated) linear_value(up, in, up_row, j, u);
        const auto i = static_cast<std::size_t>(r * mlp_.hidden + j);
        hidden_[exact][i] = activate(mlp_.activation, g[exact].value) * u[exact].value;
        for (const Kind kind : {framework, matmul_add}) {
          const double act = round_to(mlp_.dtype, activate(mlp_.activation, g[kind].value));
          hidden_[kind][i] = mlp_.gated ? round_to(mlp_.dtype, act * u[kind].value) : act;
          variance_[kind][i] =
              hidden_variance(g[exact].value, g[kind].variance, u[exact].value, u[kind].variance);
        }
      }
    }
  }

  /// Variance of a hidden value from the roundings on the way: those of the linears go through the
  /// activation's slope and the product, then the activation's own and the product's.
  double hidden_variance(double gate, double of_gate, double up, double of_up) const {
    const DType dtype = mlp_.dtype;
    const double spread = std::sqrt(of_gate), act = activate(mlp_.activation, gate);
    const double slope =
        (activate(mlp_.activation, gate + spread) - activate(mlp_.activation, gate - spread)) / 2;
    const double own = dtype == DType::f32 ? square(activation_roundings * unit_roundoff(dtype) * gate) : 0;
    const double variance = square(slope) + rounding_variance(dtype, act) + own;
    if (!mlp_.gated) return variance;
    return variance * square(up) + of_up * square(act) + rounding_variance(dtype, act * up);
  }

  void output_columns(std::int64_t first, int slot, const Outputs& outputs) {
    double* const down_row = weight_row(slot, 0);
    const Operand down{mlp_.dtype, weights_.down, mlp_.hidden};
    for (std::int64_t i = first; i < std::min(mlp_.dim, first + columns); ++i) {
      down.weight_row(i, down_row);
      for (std::int64_t r = 0; r < rows_; ++r) {
        const double* in[kinds];
        for (int kind = 0; kind < kinds; ++kind) in[kind] = hidden_[kind].data() + r * mlp_.hidden;
        Estimate y[kinds];
        linear_value(down, in, down_row, i, y);
        const std::int64_t at = r * mlp_.dim + i;
        outputs.value[exact][at] = y[exact].value;
        for (const Kind kind : {framework, matmul_add}) {
          const double* const of_hidden = variance_[kind].data() + r * mlp_.hidden;
          double variance = y[kind].variance;
          for (std::int64_t j = 0; j < mlp_.hidden; ++j) {
            variance += square(down_row[j]) * of_hidden[j];
          }
          outputs.value[kind][at] = y[kind].value;
          outputs.deviation[kind][at] = std::sqrt(variance);
        }
      }
    }
  }

  const Mlp& mlp_;
  const ResolvedWeights& weights_;
  std::vector<double> x_;
  std::int64_t rows_;
  ThreadPool& pool_;
  std::vector<double> hidden_[kinds];
  std::int64_t longest_ = 0;
  std::vector<double> weight_rows_;      // two per thread
  std::vector<double> variance_[kinds];  // of hidden_ - hidden_[exact]; none for exact
};

double relative(double squares, double of) {
  if (squares == 0) return 0;
  return of == 0 ? HUGE_VAL : std::sqrt(squares / of);
}

}  // namespace

Result<Reference> reference(const Mlp& mlp, const Weights& weights, const void* x, std::int64_t x_row_stride,
                            const std::vector<std::int64_t>& rows, ThreadPool& pool) {
  const auto resolved = resolve_weights(mlp, weights);
  if (!resolved) return resolved.error();
  try {
    const auto count = static_cast<std::int64_t>(rows.size());
    std::vector<double> inputs(static_cast<std::size_t>(count * mlp.dim));
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t start = rows[static_cast<std::size_t>(r)] * x_row_stride;
      for (std::int64_t k = 0; k < mlp.dim; ++k) {
        inputs[static_cast<std::size_t>(r * mlp.dim + k)] = load(mlp.dtype, x, start + k);
      }
    }
    Reference result;
    result.rows = rows;
    Computation(mlp, *resolved, std::move(inputs), count, pool).fill(result);
    return result;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory for the float64 reference"};
  }
}

std::vector<std::int64_t> spread_rows(std::int64_t tokens, std::int64_t count) {
  std::vector<std::int64_t> rows;
  count = std::min(tokens, count);
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back(
        count == 1 ? 0 : static_cast<std::int64_t>(static_cast<__int128>(tokens - 1) * i / (count - 1)));
  }
  return rows;
}

Verdict judge(const Mlp& mlp, const Reference& reference, Rung rung, const void* y,
              std::int64_t y_row_stride) {
  const bool adds = rung == Rung::matmul_add;
  const std::vector<double>& yardstick = adds ? reference.matmul_add : reference.framework;
  const std::vector<double>& deviations = adds ? reference.matmul_add_deviation : reference.deviation;
  double norm = 0, squares = 0, framework_squares = 0, expected = 0;
  std::size_t n = 0, i = 0;
  bool finite = true;
  Verdict verdict;
  for (const std::int64_t row : reference.rows) {
    for (std::int64_t c = 0; c < mlp.dim; ++c, ++i) {
      const double exact_value = reference.exact[i];
      // Values the dtype cannot hold become infinite in the framework too; they have no error to compare.
      if (!std::isfinite(exact_value) || !std::isfinite(yardstick[i])) continue;
      const double value = load(mlp.dtype, y, row * y_row_stride + c);
      if (!std::isfinite(value)) finite = false;
      const double off = value - exact_value, deviation = deviations[i];
      ++n;
      norm += square(exact_value);
      squares += square(off);
      framework_squares += square(yardstick[i] - exact_value);
      expected += square(deviation);
      verdict.worst = std::max(verdict.worst, off == 0 ? 0 : std::abs(off) / deviation);
    }
  }
  verdict.error = relative(squares, norm);
  verdict.framework_error = relative(framework_squares, norm);
  // All outputs of a token hang on the same hidden values: no more errors are independent than there are of
  // those.
  const double per_row = static_cast<double>(std::min(mlp.dim, mlp.hidden)) / static_cast<double>(mlp.dim);
  const double independent = std::max(1.0, static_cast<double>(n) * per_row);
  const double stray = sampling * relative(expected / independent, norm);
  verdict.bound = allowance * verdict.framework_error + stray;
  if (!finite) {
    verdict.reason = "a value is not finite where the reference is";
  } else if (!(verdict.error <= verdict.bound)) {
    verdict.reason = fmt::format("error {:.3g} is above {:.3g}", verdict.error, verdict.bound);
  } else if (verdict.worst > most_deviations) {
    verdict.reason = fmt::format("one value is {:.3g} standard deviations off", verdict.worst);
  }
  verdict.ok = verdict.reason.empty();
  return verdict;
}

}  // namespace ingot::cpu
