// SPDX-License-Identifier: Apache-2.0
//
// The loops behind cpu/passes.h. Included once per instruction set, inside a namespace of its own, by a file
// compiled for that set; everything it calls is inlined, so that no code of a wider set leaks into a narrower
// one.
//
// No include guard: the including file defines INGOT_PASSES_NAMESPACE and INGOT_PASSES_ISA.

// Input and output may be the same memory, element for element: no iteration depends on another. Compilers
// that do not take the hint check at run time.
#if defined(__clang__)
#define INGOT_INDEPENDENT
#else
#define INGOT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace ingot::cpu::INGOT_PASSES_NAMESPACE {

namespace {

template <DType D>
using Stored = typename Element<D>::type;

template <DType D>
const Stored<D>* row(Rows<const void> rows, std::int64_t r) {
  return static_cast<const Stored<D>*>(rows.data) + r * rows.stride;
}
template <DType D>
Stored<D>* row(Rows<void> rows, std::int64_t r) {
  return static_cast<Stored<D>*>(rows.data) + r * rows.stride;
}

template <DType D>
void widen_rows(Area area, Rows<const void> in, Rows<float> out) {
  for (std::int64_t r = 0; r < area.rows; ++r) {
    const Stored<D>* __restrict from = row<D>(in, r);
    float* __restrict to = out.data + r * out.stride;
    for (std::int64_t c = 0; c < area.columns; ++c) to[c] = Element<D>::load(from[c]);
  }
}

template <DType D>
void store_rows(Area area, Rows<const float> sums, const float* __restrict bias, Rows<void> out) {
  for (std::int64_t r = 0; r < area.rows; ++r) {
    const float* from = sums.data + r * sums.stride;  // may be the same memory as `to` (f32)
    Stored<D>* to = row<D>(out, r);
    INGOT_INDEPENDENT
    for (std::int64_t c = 0; c < area.columns; ++c)
      to[c] = Element<D>::pack(Element<D>::round(from[c] + bias[c]));
  }
}

template <DType D>
void add_rows(Area area, Rows<const void> in, const float* __restrict bias, Rows<void> out) {
  for (std::int64_t r = 0; r < area.rows; ++r) {
    const Stored<D>* __restrict from = row<D>(in, r);
    Stored<D>* __restrict to = row<D>(out, r);
    for (std::int64_t c = 0; c < area.columns; ++c) {
      to[c] = Element<D>::pack(Element<D>::round(Element<D>::load(from[c]) + bias[c]));
    }
  }
}

template <DType D, class Act>
void activate_rows(Area area, Rows<const void> in, Rows<void> out) {
  for (std::int64_t r = 0; r < area.rows; ++r) {
    const Stored<D>* __restrict from = row<D>(in, r);
    Stored<D>* __restrict to = row<D>(out, r);
    for (std::int64_t c = 0; c < area.columns; ++c) {
      to[c] = Element<D>::pack(Element<D>::round(Act::approx(Element<D>::load(from[c]))));
    }
  }
}

template <DType D>
void multiply_rows(Area area, Rows<const void> a, Rows<const void> b, Rows<void> out) {
  for (std::int64_t r = 0; r < area.rows; ++r) {
    const Stored<D>* __restrict left = row<D>(a, r);
    const Stored<D>* __restrict right = row<D>(b, r);
    Stored<D>* __restrict to = row<D>(out, r);
    for (std::int64_t c = 0; c < area.columns; ++c) {
      to[c] = Element<D>::pack(Element<D>::round(Element<D>::load(left[c]) * Element<D>::load(right[c])));
    }
  }
}

template <DType D, Numerics N, class Act, bool gated, bool out_f32>
void hidden_rows(const HiddenTile& tile) {
  const float* __restrict gate_bias = tile.gate_bias;
  const float* __restrict up_bias = tile.up_bias;
  for (std::int64_t r = 0; r < tile.area.rows; ++r) {
    const float* gate_row = tile.gate.data + r * tile.gate.stride;  // may be the same memory as the output
    const float* __restrict up_row = gated ? tile.up.data + r * tile.up.stride : nullptr;
    float* out_row = out_f32 ? static_cast<float*>(tile.out.data) + r * tile.out.stride : nullptr;
    Stored<D>* packed_row = out_f32 ? nullptr : row<D>(tile.out, r);
    INGOT_INDEPENDENT
    for (std::int64_t c = 0; c < tile.area.columns; ++c) {
      float h = gate_row[c] + gate_bias[c];
      if constexpr (N == Numerics::match) h = Element<D>::round(h);
      h = Act::approx(h);
      if constexpr (gated) {
        float up = up_row[c] + up_bias[c];
        if constexpr (N == Numerics::match) {
          h = Element<D>::round(h);
          up = Element<D>::round(up);
        }
        h = h * up;
      }
      h = Element<D>::round(h);
      if constexpr (out_f32) {
        out_row[c] = h;
      } else {
        packed_row[c] = Element<D>::pack(h);
      }
    }
  }
}

// From run-time values to the instantiation.

template <class F>
void with_dtype(DType dtype, const F& call) {
  switch (dtype) {
    case DType::f32:
      return call.template operator()<DType::f32>();
    case DType::bf16:
      return call.template operator()<DType::bf16>();
    case DType::f16:
      return call.template operator()<DType::f16>();
  }
}

template <class F>
void with_activation(Activation activation, const F& call) {
  switch (activation) {
#define INGOT_CASE(name, formula) \
  case Activation::name:          \
    return call.template operator()<activation::name>();
    INGOT_ACTIVATIONS(INGOT_CASE)
#undef INGOT_CASE
  }
}

void widen(DType dtype, Area area, Rows<const void> in, Rows<float> out) {
  with_dtype(dtype, [&]<DType D>() { widen_rows<D>(area, in, out); });
}
void store(DType dtype, Area area, Rows<const float> sums, const float* bias, Rows<void> out) {
  with_dtype(dtype, [&]<DType D>() { store_rows<D>(area, sums, bias, out); });
}
void add(DType dtype, Area area, Rows<const void> in, const float* bias, Rows<void> out) {
  with_dtype(dtype, [&]<DType D>() { add_rows<D>(area, in, bias, out); });
}
void activate(DType dtype, Activation act, Area area, Rows<const void> in, Rows<void> out) {
  with_dtype(dtype, [&]<DType D>() {
    with_activation(act, [&]<class Act>() { activate_rows<D, Act>(area, in, out); });
  });
}
void multiply(DType dtype, Area area, Rows<const void> a, Rows<const void> b, Rows<void> out) {
  with_dtype(dtype, [&]<DType D>() { multiply_rows<D>(area, a, b, out); });
}

template <DType D, Numerics N, class Act>
void hidden_of(const HiddenTile& tile) {
  if (tile.up.data != nullptr) {
    tile.out_f32 ? hidden_rows<D, N, Act, true, true>(tile) : hidden_rows<D, N, Act, true, false>(tile);
  } else {
    tile.out_f32 ? hidden_rows<D, N, Act, false, true>(tile) : hidden_rows<D, N, Act, false, false>(tile);
  }
}

void hidden(DType dtype, Numerics numerics, Activation act, const HiddenTile& tile) {
  with_dtype(dtype, [&]<DType D>() {
    with_activation(act, [&]<class Act>() {
      numerics == Numerics::match ? hidden_of<D, Numerics::match, Act>(tile)
                                  : hidden_of<D, Numerics::fast, Act>(tile);
    });
  });
}

}  // namespace

extern const Passes table;
const Passes table{INGOT_PASSES_ISA, widen, store, add, activate, multiply, hidden};

}  // namespace ingot::cpu::INGOT_PASSES_NAMESPACE
