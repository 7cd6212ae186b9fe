// SPDX-License-Identifier: Apache-2.0
//
// The element-wise loops of every instruction set this processor has, against the definition one value at a
// time.
#include "cpu/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/numbers.h"

namespace ingot::cpu {
namespace {

constexpr std::int64_t rows = 3;
constexpr std::int64_t widest = 75;  // several vectors and a remainder
constexpr std::int64_t stride = widest + 5;

float round_as(DType dtype, float x) {
  switch (dtype) {
    case DType::f32:
      return x;
    case DType::bf16:
      return Element<DType::bf16>::round(x);
    case DType::f16:
      return Element<DType::f16>::round(x);
  }
  return x;
}

/// [rows, stride] numbers of a dtype.
class Grid {
 public:
  explicit Grid(DType dtype)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(rows * stride) * size_of(dtype), '\x5a') {}

  void fill(float phase) {
    for (std::int64_t i = 0; i < rows * stride; ++i)
      set(i, 4 * std::sin(0.37F * static_cast<float>(i) + phase));
  }
  float get(std::int64_t i) const {
    if (dtype_ == DType::f32) return reinterpret_cast<const float*>(bytes_.data())[i];
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(bytes_.data())[i];
    return dtype_ == DType::bf16 ? Element<DType::bf16>::load(bits) : Element<DType::f16>::load(bits);
  }
  void set(std::int64_t i, float value) {
    if (dtype_ == DType::f32) {
      reinterpret_cast<float*>(bytes_.data())[i] = value;
    } else {
      const float rounded = round_as(dtype_, value);
      reinterpret_cast<std::uint16_t*>(bytes_.data())[i] =
          dtype_ == DType::bf16 ? Element<DType::bf16>::pack(rounded) : Element<DType::f16>::pack(rounded);
    }
  }
  Rows<void> out() { return {bytes_.data(), stride}; }
  Rows<const void> in() const { return {bytes_.data(), stride}; }

 private:
  DType dtype_;
  std::vector<char> bytes_;
};

struct Param {
  Isa isa;
  DType dtype;
};

class PassesTest : public testing::TestWithParam<Param> {
 protected:
  PassesTest() : loops(*passes(GetParam().isa)), dtype(GetParam().dtype) {
    for (std::int64_t c = 0; c < widest; ++c) bias.push_back(0.25F * static_cast<float>(c % 7) - 0.7F);
  }

  /// Every value of the area equals expected(index, column), and what lies outside keeps the pattern.
  template <class Expected>
  void expect(const Grid& out, const Area& area, const Expected& expected, double tolerance = 0) {
    const Grid untouched(dtype);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < stride; ++c) {
        const std::int64_t i = r * stride + c;
        if (r < area.rows && c < area.columns) {
          const float want = expected(i, c);
          ASSERT_NEAR(out.get(i), want, tolerance * std::abs(want)) << "row " << r << " column " << c;
        } else {
          ASSERT_EQ(out.get(i), untouched.get(i)) << "written outside, row " << r << " column " << c;
        }
      }
    }
  }

  const Passes& loops;
  DType dtype;
  std::vector<float> bias;
};

const std::vector<Area> areas{{1, 1}, {3, 7}, {2, 8}, {3, 33}, {3, 75}, {0, 5}, {2, 0}};

TEST_P(PassesTest, TableIsTheOneAskedFor) {
  EXPECT_EQ(loops.isa, GetParam().isa);
}

TEST_P(PassesTest, WidenAndStore) {
  Grid in(dtype);
  in.fill(0.1F);
  for (const Area area : areas) {
    Grid wide(DType::f32);
    loops.widen(dtype, area, in.in(), {static_cast<float*>(wide.out().data), stride});
    for (std::int64_t r = 0; r < area.rows; ++r) {
      for (std::int64_t c = 0; c < area.columns; ++c)
        ASSERT_EQ(wide.get(r * stride + c), in.get(r * stride + c));
    }
    Grid sums(DType::f32), out(dtype);
    sums.fill(2.3F);
    loops.store(dtype, area, {static_cast<const float*>(sums.in().data), stride}, bias.data(), out.out());
    expect(out, area, [&](std::int64_t i, std::int64_t c) {
      return round_as(dtype, sums.get(i) + bias[static_cast<std::size_t>(c)]);
    });
  }
}

TEST_P(PassesTest, AddActivateMultiply) {
  Grid a(dtype), b(dtype);
  a.fill(0.5F);
  b.fill(1.9F);
  for (const Area area : areas) {
    Grid sum(dtype), product(dtype);
    loops.add(dtype, area, a.in(), bias.data(), sum.out());
    expect(sum, area, [&](std::int64_t i, std::int64_t c) {
      return round_as(dtype, a.get(i) + bias[static_cast<std::size_t>(c)]);
    });
    loops.multiply(dtype, area, a.in(), b.in(), product.out());
    expect(product, area, [&](std::int64_t i, std::int64_t) { return round_as(dtype, a.get(i) * b.get(i)); });
    for (const ActivationInfo& info : activations()) {
      Grid act(dtype);
      loops.activate(dtype, info.id, area, a.in(), act.out());
      // The fast form is off by a few roundings of x, and may fall to the other side of a rounding to the
      // dtype.
      const double own = dtype == DType::f32 ? 0 : (dtype == DType::bf16 ? 0x1p-8 : 0x1p-11);
      for (std::int64_t r = 0; r < area.rows; ++r) {
        for (std::int64_t c = 0; c < area.columns; ++c) {
          const double x = a.get(r * stride + c), exact = ingot::activate(info.id, x);
          const double got = act.get(r * stride + c);
          ASSERT_LE(std::abs(got - exact), own * std::abs(exact) + 4 * 0x1p-24 * std::abs(x))
              << info.name << " of " << x;
        }
      }
    }
  }
}

TEST_P(PassesTest, HiddenRoundsWhereTheContractSays) {
  Grid gate(DType::f32), up(DType::f32);
  gate.fill(0.9F);
  up.fill(2.2F);
  const auto at = [&](const Grid& grid) {
    return Rows<const float>{static_cast<const float*>(grid.in().data), stride};
  };
  for (const Area area : areas) {
    for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
      for (const bool gated : {false, true}) {
        // The identity makes every rounding exact to predict.
        const auto expected = [&](std::int64_t i, std::int64_t c) {
          const float offset = bias[static_cast<std::size_t>(c)];
          const auto step = [&](float x) { return numerics == Numerics::match ? round_as(dtype, x) : x; };
          const float h = step(gate.get(i) + offset);
          return round_as(dtype, gated ? h * step(up.get(i) + offset) : h);
        };
        HiddenTile tile{.area = area,
                        .gate = at(gate),
                        .up = gated ? at(up) : Rows<const float>{},
                        .gate_bias = bias.data(),
                        .up_bias = bias.data(),
                        .out = {},
                        .out_f32 = false};
        // `fast` in f32 may fuse the last addition and the product.
        const double tolerance = dtype == DType::f32 ? 1e-6 : (numerics == Numerics::fast ? 0x1p-8 : 0);
        Grid packed(dtype);
        tile.out = packed.out();
        loops.hidden(dtype, numerics, Activation::identity, tile);
        expect(packed, area, expected, tolerance);

        // In place over the gate, in f32.
        Grid in_place = gate;
        tile.gate = at(in_place);
        tile.out = in_place.out();
        tile.out_f32 = true;
        loops.hidden(dtype, numerics, Activation::identity, tile);
        for (std::int64_t r = 0; r < area.rows; ++r) {
          for (std::int64_t c = 0; c < area.columns; ++c) {
            ASSERT_EQ(in_place.get(r * stride + c), packed.get(r * stride + c)) << r << " " << c;
          }
        }
      }
    }
  }
}

std::vector<Param> params() {
  std::vector<Param> all;
  for (const Isa isa : all_isas) {
    if (isa > widest_isa() || passes(isa) == nullptr) continue;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) all.push_back({isa, dtype});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, PassesTest, testing::ValuesIn(params()), [](const auto& instance) {
  return std::string(to_string(instance.param.isa)) + "_" + std::string(to_string(instance.param.dtype));
});

}  // namespace
}  // namespace ingot::cpu
