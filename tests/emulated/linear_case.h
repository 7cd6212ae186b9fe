// SPDX-License-Identifier: Apache-2.0
//
// One portable kernel on the host against the definition. Inputs are small multiples of powers of two, so
// that every sum is exact in f32 in any order: without a transcendental activation the result must have
// exactly the expected bits, and one wrong index shows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulated/grid.h"
#include "f32/linear.cuh"
#include "ingot/mlp.h"
#include "sm80/linear.cuh"

namespace ingot::test {

namespace types = ingot::device;

/// Everything of a linear but its widths.
template <class T_, class A_, bool kGated_, bool kBias_, bool kMatch_, bool kAligned_>
struct Kind {
  using T = T_;
  using A = A_;
  static constexpr bool gated = kGated_, bias = kBias_, match = kMatch_, aligned = kAligned_;
  static constexpr bool is_f32 = std::is_same_v<T, types::f32>, rounds = match && !is_f32;
  static constexpr bool is_identity = std::is_same_v<A, activation::identity>;
  static constexpr bool is_exact = is_identity || std::is_same_v<A, activation::relu>;
  using Step = types::Activate<A, T>;
  using Chain = std::conditional_t<
      gated,
      std::conditional_t<rounds, types::Chain<Step, types::RoundActivated<T>, types::Multiply>,
                         types::Chain<Step, types::Multiply>>,
      std::conditional_t<is_identity, types::Chain<>, types::Chain<Step>>>;
};

template <class K, int kOut, int kIn, sm80::Tile t>
using ShapeOf = sm80::Shape<typename K::T, typename K::Chain, kOut, kIn, K::gated, K::bias,
                            K::rounds && (K::gated || !K::is_identity), t.rows, t.cols, t.block_k, t.stages,
                            t.warp_rows, t.warp_cols, K::aligned>;

/// A matrix of exactly its size, its first element `offset` elements behind a 16-byte boundary, its gaps
/// filled with not-a-number.
template <class Bits>
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, std::int64_t offset)
      : columns_(columns),
        stride_(stride),
        offset_(offset),
        count_(static_cast<std::size_t>(offset + (rows - 1) * stride + columns)),
        data_(static_cast<Bits*>(::operator new (count_ * sizeof(Bits), std::align_val_t{16}))) {
    std::memset(data_.get(), 0xff, count_ * sizeof(Bits));
  }
  Bits* data() { return data_.get() + offset_; }
  Bits& at(std::int64_t row, std::int64_t column) { return data()[row * stride_ + column]; }
  std::int64_t stride() const { return stride_; }

  bool gaps_are_untouched() {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t from_first = static_cast<std::int64_t>(i) - offset_;
      if (from_first >= 0 && from_first % stride_ < columns_) continue;
      const Bits value = data_.get()[i];
      unsigned char bytes[sizeof(Bits)];
      std::memcpy(bytes, &value, sizeof(Bits));
      if (!std::all_of(bytes, bytes + sizeof(Bits), [](unsigned char b) { return b == 0xff; })) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(Bits* p) const { ::operator delete (p, std::align_val_t{16}); }
  };
  std::int64_t columns_, stride_, offset_;
  std::size_t count_;
  std::unique_ptr<Bits, Free> data_;
};

/// Whole numbers of [-range, range], in turn of a linear congruence (Knuth's MMIX constants).
class Whole {
 public:
  explicit Whole(std::uint64_t seed) : state_(seed) {}
  double next(int range) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(static_cast<int>((state_ >> 33U) % static_cast<unsigned>(2 * range + 1)) -
                               range);
  }

 private:
  std::uint64_t state_;
};

template <class A>
constexpr Activation id_of() {
#define INGOT_ID(name, formula) \
  if (std::is_same_v<A, activation::name>) return Activation::name;
  INGOT_ACTIVATIONS(INGOT_ID)
#undef INGOT_ID
  return Activation::identity;
}

template <class K, int kOut, int kIn, sm80::Tile t>
void check(std::int64_t tokens) {
  using T = typename K::T;
  using Bits = typename T::Bits;
  using S = ShapeOf<K, kOut, kIn, t>;
  using Kernel = std::conditional_t<K::is_f32, f32::Linear<std::conditional_t<K::is_f32, S, void>>,
                                    sm80::Linear<std::conditional_t<K::is_f32, void, S>>>;
  const std::string name = std::to_string(kIn) + " to " + std::to_string(kOut) + ", " +
                           std::to_string(tokens) + " tokens, tile " + std::to_string(t.rows) + "x" +
                           std::to_string(t.cols) + "x" + std::to_string(t.block_k);
  // Rows of 16-byte multiples and a gap; unaligned: odd everything.
  constexpr std::int64_t step = 16 / sizeof(Bits), offset = K::aligned ? 0 : 1;
  const auto stride = [&](std::int64_t width, std::int64_t gap) {
    return K::aligned ? (width + step - 1) / step * step + gap * step : width + gap;
  };
  Matrix<Bits> x(tokens, kIn, stride(kIn, 1), offset), up(kOut, kIn, stride(kIn, 2), offset),
      gate(kOut, kIn, stride(kIn, 3), offset), up_bias(1, kOut, kOut, 1), gate_bias(1, kOut, kOut, 1),
      y(tokens, kOut, stride(kOut, 1), offset);
  Whole whole(static_cast<std::uint64_t>(kOut * 1000 + kIn) * 1000 + static_cast<std::uint64_t>(tokens));
  const auto fill = [&](Matrix<Bits>& m, std::int64_t rows, std::int64_t columns, int range, double unit) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c)
        m.at(r, c) = T::bits(static_cast<float>(whole.next(range) * unit));
    }
  };
  fill(x, tokens, kIn, 4, 1);
  fill(up, kOut, kIn, 4, 0.125);
  fill(gate, kOut, kIn, 4, 0.125);
  fill(up_bias, 1, kOut, 16, 0.0625);
  fill(gate_bias, 1, kOut, 16, 0.0625);

  const LinearArgs args{x.data(),
                        x.stride(),
                        up.data(),
                        up.stride(),
                        K::gated ? gate.data() : nullptr,
                        gate.stride(),
                        tokens,
                        {K::bias ? up_bias.data() : nullptr, K::bias && K::gated ? gate_bias.data() : nullptr,
                         y.data(), y.stride()}};
  emulated::run_grid(sm80::blocks(t, kOut, K::gated, tokens), Kernel::threads, S::shared_bytes,
                     [&] { Kernel::run(args); });

  const auto stored = [](double v) { return double{T::value(T::bits(static_cast<float>(v)))}; };
  const auto linear = [&](Matrix<Bits>& w, Matrix<Bits>& bias, std::int64_t m, std::int64_t n) {
    double sum = K::bias ? double{T::value(bias.at(0, n))} : 0.0;
    for (std::int64_t k = 0; k < kIn; ++k) sum += double{T::value(x.at(m, k))} * double{T::value(w.at(n, k))};
    return K::rounds ? stored(sum) : sum;
  };
  // A transcendental activation may be off by one unit in the last place, and so the product.
  const double unit = K::is_f32 ? 0x1p-20 : std::is_same_v<T, types::bf16> ? 0x1p-7 : 0x1p-10;
  std::int64_t wrong = 0;
  for (std::int64_t m = 0; m < tokens; ++m) {
    for (std::int64_t n = 0; n < kOut; ++n) {
      const double before = linear(K::gated ? gate : up, K::gated ? gate_bias : up_bias, m, n);
      const double factor = K::gated ? linear(up, up_bias, m, n) : 1.0;
      const double activated = activate(id_of<typename K::A>(), before);
      const double expected = stored((K::gated && K::rounds ? stored(activated) : activated) * factor);
      const double got = T::value(y.at(m, n));
      // Beside that, 1 + erf and 1 + tanh near -1 leave what f32 holds near 1.
      const double cancelled = 0x1p-22 * std::abs(before * factor);
      const double accepted = K::is_exact ? 0.0 : 2.5 * unit * std::abs(expected) + cancelled;
      const bool good = std::abs(got - expected) <= accepted;  // not-a-number is not
      if (!good && ++wrong <= 3) {
        ADD_FAILURE() << name << ": y[" << m << ", " << n << "] = " << got << ", expected " << expected;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << name;
  EXPECT_TRUE(y.gaps_are_untouched()) << name;
}

/// Every pair of widths, every number of tokens.
template <class K, sm80::Tile t, int... kOuts, int... kIns>
void check_widths(std::integer_sequence<int, kOuts...>, std::integer_sequence<int, kIns...> ins,
                  std::initializer_list<std::int64_t> tokens) {
  const auto row = [&]<int kOut, int... kIn>(std::integral_constant<int, kOut>,
                                             std::integer_sequence<int, kIn...>) {
    for (const std::int64_t count : tokens) (check<K, kOut, kIn, t>(count), ...);
  };
  (row(std::integral_constant<int, kOuts>{}, ins), ...);
}
template <int... kWidths>
using Widths = std::integer_sequence<int, kWidths...>;

}  // namespace ingot::test
