// SPDX-License-Identifier: Apache-2.0
//
// The pointwise kernels on the host against what they are for.
#include "pointwise.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "emulated/linear_case.h"
#include "jit/kernel.h"

namespace ingot::test {
namespace {

using types::AddBias;
using types::Chain;
using types::Multiply;

/// x, second and y with rows of kN columns; small whole numbers, exact in every type.
template <class T, class Steps, int kN, bool kPaired, bool kAligned>
void check(std::int64_t rows, const std::function<double(double x, double second, double bias)>& expected) {
  using Bits = typename T::Bits;
  using Kernel = types::Pointwise<types::PointwiseShape<T, Steps, kN, kPaired, kAligned>>;
  const std::int64_t stride = kAligned ? (kN + 15) / 8 * 8 : kN + 3, offset = kAligned ? 0 : 1;
  Matrix<Bits> x(rows, kN, stride, offset), second(rows, kN, stride + 8, offset), y(rows, kN, stride, offset),
      bias(1, kN, kN, 1);
  Whole random(7);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kN; ++c) {
      x.at(r, c) = T::bits(static_cast<float>(random.next(8)));
      second.at(r, c) = T::bits(static_cast<float>(random.next(8)));
    }
  }
  for (std::int64_t c = 0; c < kN; ++c) bias.at(0, c) = T::bits(static_cast<float>(random.next(8)));
  const LinearArgs args{.x = x.data(),
                        .x_stride = x.stride(),
                        .up = nullptr,
                        .up_stride = 0,
                        .gate = second.data(),
                        .gate_stride = second.stride(),
                        .tokens = rows,
                        .epilogue = {bias.data(), nullptr, y.data(), y.stride()}};
  const std::int64_t blocks = (rows * Kernel::runs + Kernel::threads - 1) / Kernel::threads;
  emulated::run_grid(blocks, Kernel::threads, 0, [&] { Kernel::run(args); });
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kN; ++c) {
      ASSERT_EQ(T::value(y.at(r, c)),
                expected(T::value(x.at(r, c)), T::value(second.at(r, c)), T::value(bias.at(0, c))))
          << r << ", " << c;
    }
  }
  EXPECT_TRUE(y.gaps_are_untouched());
}

template <class T>
void check_steps() {
  const auto sum = [](double x, double, double bias) { return x + bias; };
  const auto product = [](double x, double second, double) { return x * second; };
  const auto relu = [](double x, double, double) { return std::max(x, 0.0); };
  using Relu = Chain<types::Activate<activation::relu, T>>;
  check<T, Chain<AddBias<T>>, 64, false, true>(5, sum);
  check<T, Chain<AddBias<T>>, 77, false, true>(40, sum);  // the last run of a row is cut
  check<T, Chain<AddBias<T>>, 77, false, false>(40, sum);
  check<T, Chain<Multiply>, 77, true, true>(40, product);
  check<T, Chain<Multiply>, 3, true, false>(1000, product);
  check<T, Relu, 200, false, true>(33, relu);
  check<T, Relu, 1, false, false>(1, relu);
}

TEST(Pointwise, Bf16) {
  check_steps<types::bf16>();
}
TEST(Pointwise, F16) {
  check_steps<types::f16>();
}
TEST(Pointwise, F32) {
  check_steps<types::f32>();
}

TEST(Pointwise, BlocksCoverEveryRow) {
  jit::PointwiseSpec spec{.dtype = DType::bf16, .columns = 77};
  EXPECT_EQ(jit::pointwise_blocks(spec, 1), 1);     // 10 runs of 8 columns
  EXPECT_EQ(jit::pointwise_blocks(spec, 256), 10);  // 2560 threads
  EXPECT_EQ(jit::pointwise_blocks(spec, 257), 11);
  spec.dtype = DType::f32;
  EXPECT_EQ(jit::pointwise_blocks(spec, 256), 20);  // 20 runs of 4
  spec.columns = std::int64_t{1} << 31;
  EXPECT_EQ(jit::pointwise_blocks(spec, 1 << 20), (std::int64_t{1} << 49) / 256);
}

}  // namespace
}  // namespace ingot::test
