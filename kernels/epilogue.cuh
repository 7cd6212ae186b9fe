// SPDX-License-Identifier: Apache-2.0
//
// What happens to a linear's sums before they are stored: a chain of small steps, each a struct with one
// function.
//
//   using Fc1 = Chain<AddBias<bf16>, RoundLinear<bf16>, Activate<activation::gelu_tanh, bf16>,
//   RoundActivated<bf16>,
//                     Multiply, Store<bf16, true>>;
//
// A kernel calls Chain::apply once for every run of N neighbouring outputs of one row it holds; or it cuts
// the chain in two and gives each part to other warps. A new step is one struct here and one line where the
// host names the chain.
#pragma once

#include "activations.cuh"
#include "linear_args.cuh"
#include "numbers.cuh"

namespace ingot {
namespace device {

/// N neighbouring outputs of one row, in f32. Not gated: `up` alone counts. The last step reads `up`.
template <int N, bool Gated>
struct Outputs {
  static constexpr int size = N;
  static constexpr bool gated = Gated;
  float up[N];
  float gate[Gated ? N : 1];
};

/// Where they go. `count` of the N columns exist: fewer than N only at the end of a row.
struct Place {
  i64 row;     // token
  int column;  // of the first
  int count;
};

template <class... Steps>
struct Chain {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs& args, const Place& at, Values& values) {
    (Steps::apply(args, at, values), ...);
  }
};

template <class T>
struct AddBias {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs& args, const Place& at, Values& values) {
    add(static_cast<const typename T::Bits*>(args.up_bias), at, values.up);
    if constexpr (Values::gated) add(static_cast<const typename T::Bits*>(args.gate_bias), at, values.gate);
  }

 private:
  template <int N>
  static INGOT_DEVICE void add(const typename T::Bits* bias_column, const Place& at, float (&values)[N]) {
    INGOT_UNROLL
    for (int i = 0; i < N; ++i) {
      if (i < at.count) values[i] += T::value(load_constant(bias_column + at.column + i));
    }
  }
};

/// Rounds where the unfused framework stores a linear's result.
template <class T>
struct RoundLinear {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs&, const Place&, Values& values) {
    round_all<T>(values.up);
    if constexpr (Values::gated) round_all<T>(values.gate);
  }
};

/// On the gate where there is one.
template <class Activation, class T>
struct Activate {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs&, const Place&, Values& values) {
    INGOT_UNROLL
    for (int i = 0; i < Values::size; ++i) {
      float& x = target(values, i);
      if constexpr (T::approximate_activation) {
        x = Activation::approx(x);
      } else {
        x = Activation::exact(x);
      }
    }
  }

 private:
  template <class Values>
  static INGOT_DEVICE float& target(Values& values, int i) {
    if constexpr (Values::gated) {
      return values.gate[i];
    } else {
      return values.up[i];
    }
  }
};

/// Rounds where the unfused framework stores the activation's result.
template <class T>
struct RoundActivated {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs&, const Place&, Values& values) {
    if constexpr (Values::gated) {
      round_all<T>(values.gate);
    } else {
      round_all<T>(values.up);
    }
  }
};

/// up = gate · up.
struct Multiply {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs&, const Place&, Values& values) {
    static_assert(Values::gated, "a product needs a gate");
    INGOT_UNROLL
    for (int i = 0; i < Values::size; ++i) values.up[i] *= values.gate[i];
  }
};

/// Rounds and writes `up`. `Aligned`: y and its rows are 16-byte aligned, so that whole runs go as 16-byte
/// stores.
template <class T, bool Aligned>
struct Store {
  template <class Values>
  static INGOT_DEVICE void apply(const EpilogueArgs& args, const Place& at, Values& values) {
    auto* y = static_cast<typename T::Bits*>(args.y) + at.row * args.y_stride + at.column;
    constexpr int bytes = Values::size * static_cast<int>(sizeof(typename T::Bits));
    if constexpr (Aligned && bytes % 16 == 0) {
      if (at.count == Values::size) {
        INGOT_UNROLL
        for (int part = 0; part < bytes / 16; ++part) {
          store_16_bytes(reinterpret_cast<unsigned char*>(y) + 16 * part, packed(values.up, part));
        }
        return;
      }
    }
    INGOT_UNROLL
    for (int i = 0; i < Values::size; ++i) {
      if (i < at.count) store(y + i, T::bits(values.up[i]));
    }
  }

 private:
  template <int N>
  static INGOT_DEVICE Bytes16 packed(const float (&values)[N], int part) {
    Bytes16 bytes;
    if constexpr (sizeof(typename T::Bits) == 2) {
      INGOT_UNROLL
      for (int i = 0; i < 4; ++i)
        bytes.word[i] = T::pair_bits(values[8 * part + 2 * i], values[8 * part + 2 * i + 1]);
    } else {
      INGOT_UNROLL
      for (int i = 0; i < 4; ++i) bytes.word[i] = float_bits(values[4 * part + i]);
    }
    return bytes;
  }
};

}  // namespace device
}  // namespace ingot
