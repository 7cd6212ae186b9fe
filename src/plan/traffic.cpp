// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

namespace ingot {

namespace {

/// Adds up launches in elements.
struct Count {
  int launches = 0;
  double elements = 0;
  void launch(double read, double written) {
    ++launches;
    elements += read + written;
  }
};

}  // namespace

Traffic traffic(const Mlp& mlp, std::int64_t tokens, Rung rung, bool packed) {
  const auto rows = static_cast<double>(tokens);
  const auto dim = static_cast<double>(mlp.dim);
  const auto hidden = static_cast<double>(mlp.hidden);
  const double first = mlp.gated ? 2 : 1;        // linears into the hidden width
  const bool one_linear = packed || !mlp.gated;  // they run as one
  const int linears = one_linear ? 1 : 2;
  const double width = hidden * first / linears;  // columns of each
  const double bias = mlp.bias ? 1 : 0;
  const double x = rows * dim, h = rows * hidden, y = rows * dim;
  const double weight = dim * hidden;

  Count count;
  switch (rung) {
    case Rung::matmul_add:
    case Rung::unfused: {
      const bool folded = rung == Rung::unfused;
      for (int i = 0; i < linears; ++i) {
        count.launch(x + dim * width + (folded ? bias * width : 0), rows * width);
        if (!folded && mlp.bias) count.launch(rows * width + width, rows * width);
      }
      if (mlp.activation != Activation::identity) count.launch(h, h);
      if (mlp.gated) count.launch(2 * h, h);
      count.launch(h + weight + (folded ? bias * dim : 0), y);
      if (!folded && mlp.bias) count.launch(y + dim, y);
      break;
    }
    case Rung::epilogue:
    case Rung::two_kernel:
      count.launch(x + first * (weight + bias * hidden), h);
      count.launch(h + weight + bias * dim, y);
      break;
    case Rung::one_pass:
    case Rung::one_kernel:
      count.launch(x + (first + 1) * weight + bias * (first * hidden + dim), y);
      break;
  }
  return {count.launches, count.elements * static_cast<double>(size_of(mlp.dtype))};
}

}  // namespace ingot
