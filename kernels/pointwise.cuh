// SPDX-License-Identifier: Apache-2.0
//
// One step over a whole matrix, as frameworks launch between the library's products: y[rows, kN] = step(x),
// or step(x, second) for the product of two matrices. Each thread takes 16 bytes of a row.
#pragma once

#include "epilogue.cuh"

namespace ingot {
namespace device {

/// `Aligned`: every address and row stride is a multiple of 16 bytes. `Paired`: the step has two inputs.
template <class T, class Steps_, int N, bool Paired, bool Aligned>
struct PointwiseShape {
  using Element = T;
  using Steps = Steps_;
  static constexpr int kN = N;  // columns
  static constexpr bool kPaired = Paired, kAligned = Aligned;
};

/// Arguments: x and y as a linear's; `gate` is the second input, `tokens` the rows.
template <class S>
struct Pointwise {
  using Args = LinearArgs;
  static constexpr int threads = 256, blocks_per_sm = 6;
  static constexpr int run_columns = 16 / static_cast<int>(sizeof(typename S::Element::Bits));
  static constexpr int runs = (S::kN + run_columns - 1) / run_columns;  // of a row

  static INGOT_DEVICE void run(const LinearArgs& args) {
    const i64 item = static_cast<i64>(block_index()) * threads + thread_index();
    const i64 row = item / runs;
    if (row >= args.tokens) return;
    const int column = static_cast<int>(item % runs) * run_columns;
    const Place at{row, column, S::kN - column < run_columns ? S::kN - column : run_columns};
    Outputs<run_columns, S::kPaired> values;
    load_run(args.x, args.x_stride, at, values.up);
    if constexpr (S::kPaired) load_run(args.gate, args.gate_stride, at, values.gate);
    S::Steps::apply(args.epilogue, at, values);
    Store<typename S::Element, S::kAligned>::apply(args.epilogue, at, values);
  }

 private:
  using Bits = typename S::Element::Bits;

  static INGOT_DEVICE void load_run(const void* from, i64 stride, const Place& at,
                                    float (&values)[run_columns]) {
    const Bits* first = static_cast<const Bits*>(from) + at.row * stride + at.column;
    if constexpr (S::kAligned) {
      if (at.count == run_columns) {
        unpack(first, values);
        return;
      }
    }
    INGOT_UNROLL
    for (int i = 0; i < run_columns; ++i) {
      values[i] = i < at.count ? S::Element::value(load(first + i)) : 0.0f;
    }
  }

  static INGOT_DEVICE void unpack(const Bits* first, float (&values)[run_columns]) {
    if constexpr (sizeof(Bits) == 4) {
      const Floats4 all = load_4_floats(first);
      INGOT_UNROLL
      for (int i = 0; i < 4; ++i) values[i] = all.value[i];
    } else {
      const Bytes16 all = load_16_bytes(first);
      INGOT_UNROLL
      for (int i = 0; i < 4; ++i) {
        values[2 * i] = S::Element::value(static_cast<u16>(all.word[i]));
        values[2 * i + 1] = S::Element::value(static_cast<u16>(all.word[i] >> 16));
      }
    }
  }
};

}  // namespace device
}  // namespace ingot
