// SPDX-License-Identifier: Apache-2.0
#include "emulated/linear_case.h"

namespace ingot::test {
namespace {

constexpr sm80::Tile narrow{32, 32, 32, 3, 2, 1};  // warps of 16 x 32
constexpr sm80::Tile square{64, 64, 64, 2, 2, 2};  // warps of 32 x 32

// Elements copied one by one: any width, any alignment.
TEST(EmulatedBf16, AnyWidthPlain) {
  using K = Kind<types::bf16, activation::identity, false, true, true, false>;
  check_widths<K, narrow>(Widths<1, 3, 17, 64, 77, 200>{}, Widths<1, 3, 17, 64, 77, 200>{}, {1, 5, 64, 100});
}

TEST(EmulatedBf16, AnyWidthGated) {
  using K = Kind<types::bf16, activation::relu, true, true, true, false>;
  check_widths<K, narrow>(Widths<1, 17, 77, 200>{}, Widths<1, 17, 77, 200>{}, {1, 64, 100});
}

// Copies of 16 bytes: widths of the input are multiples of 8, those of the output need not be.
TEST(EmulatedBf16, AlignedGatedFast) {
  using K = Kind<types::bf16, activation::relu, true, true, false, true>;
  check_widths<K, square>(Widths<3, 17, 64, 200>{}, Widths<8, 64, 200>{}, {5, 100});
}

}  // namespace
}  // namespace ingot::test
