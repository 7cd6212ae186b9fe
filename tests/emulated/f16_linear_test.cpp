// SPDX-License-Identifier: Apache-2.0
#include "emulated/linear_case.h"

namespace ingot::test {
namespace {

constexpr sm80::Tile square{64, 64, 64, 2, 2, 2};  // warps of 32 x 32
constexpr sm80::Tile wide{32, 64, 32, 4, 1, 4};    // warps of 32 x 16

TEST(EmulatedF16, AlignedPlain) {
  using K = Kind<types::f16, activation::relu, false, false, true, true>;
  check_widths<K, square>(Widths<1, 17, 77, 200>{}, Widths<8, 64, 200>{}, {1, 100});
}

TEST(EmulatedF16, AnyWidthGatedFast) {
  using K = Kind<types::f16, activation::identity, true, false, false, false>;
  check_widths<K, wide>(Widths<3, 77>{}, Widths<1, 17, 200>{}, {5, 64});
}

// Every activation, both contracts: the definition's within one unit in the last place.
template <class T, class A>
void check_activation() {
  check<Kind<T, A, false, true, true, true>, 24, 40, wide>(33);
  check<Kind<T, A, false, true, false, true>, 24, 40, wide>(33);
  check<Kind<T, A, true, true, true, true>, 24, 40, wide>(33);
  check<Kind<T, A, true, true, false, true>, 24, 40, wide>(33);
}
#define INGOT_TEST(name, formula)                      \
  TEST(EmulatedActivation, name) {                     \
    check_activation<types::f16, activation::name>();  \
    check_activation<types::bf16, activation::name>(); \
  }
INGOT_ACTIVATIONS(INGOT_TEST)
#undef INGOT_TEST

}  // namespace
}  // namespace ingot::test
