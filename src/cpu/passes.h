// SPDX-License-Identifier: Apache-2.0
//
// The element-wise work between and after the GEMMs, one table of functions per instruction set. Everything
// takes [rows, columns] with row strides in elements. "Sums" are what a GEMM leaves, in f32.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "ingot/mlp.h"

namespace ingot::cpu {

struct Area {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// Gate sums (and up sums) of one tile to hidden values: h = act(gate + bias) · (up + bias), rounded as the
/// numerics say. Not gated: `up` is null.
struct HiddenTile {
  Area area;
  Rows<const float> gate, up;
  const float* gate_bias = nullptr;  ///< [columns]
  const float* up_bias = nullptr;    ///< [columns]
  Rows<void> out;                    ///< of the dtype, or f32 when `out_f32` (may be `gate`)
  bool out_f32 = false;
};

struct Passes {
  Isa isa = Isa::baseline;
  /// out = in, as f32.
  void (*widen)(DType dtype, Area area, Rows<const void> in, Rows<float> out) = nullptr;
  /// out = round(sums + bias).
  void (*store)(DType dtype, Area area, Rows<const float> sums, const float* bias, Rows<void> out) = nullptr;
  /// out = round(in + bias).
  void (*add)(DType dtype, Area area, Rows<const void> in, const float* bias, Rows<void> out) = nullptr;
  /// out = round(act(in)).
  void (*activate)(DType dtype, Activation activation, Area area, Rows<const void> in,
                   Rows<void> out) = nullptr;
  /// out = round(a · b).
  void (*multiply)(DType dtype, Area area, Rows<const void> a, Rows<const void> b, Rows<void> out) = nullptr;
  void (*hidden)(DType dtype, Numerics numerics, Activation activation, const HiddenTile& tile) = nullptr;
};

/// The table of one set, or null where it was not compiled in. Its functions may be called only on a
/// processor that has the set.
const Passes* passes(Isa isa);

}  // namespace ingot::cpu
