// SPDX-License-Identifier: Apache-2.0
#include "emulated/linear_case.h"

namespace ingot::test {
namespace {

constexpr sm80::Tile narrow{32, 32, 16, 3, 1, 2};  // 64-byte rows, warps of 32 x 16
constexpr sm80::Tile square{32, 64, 32, 2, 2, 2};  // 128-byte rows, warps of 16 x 32

TEST(EmulatedF32, AnyWidthPlain) {
  using K = Kind<types::f32, activation::identity, false, true, true, false>;
  check_widths<K, narrow>(Widths<1, 3, 17, 64, 77, 200>{}, Widths<1, 3, 17, 64, 77, 200>{}, {1, 5, 64, 100});
}

TEST(EmulatedF32, AnyWidthGated) {
  using K = Kind<types::f32, activation::relu, true, true, true, false>;
  check_widths<K, square>(Widths<1, 17, 200>{}, Widths<3, 64, 77>{}, {1, 64, 100});
}

TEST(EmulatedF32, Aligned) {
  check_widths<Kind<types::f32, activation::relu, false, false, true, true>, square>(
      Widths<3, 17, 200>{}, Widths<4, 64, 200>{}, {5, 100});
  check_widths<Kind<types::f32, activation::gelu_erf, true, true, true, true>, narrow>(
      Widths<3, 77, 200>{}, Widths<4, 60, 200>{}, {5, 100});
}

}  // namespace
}  // namespace ingot::test
