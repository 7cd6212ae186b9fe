// SPDX-License-Identifier: Apache-2.0
#include "gpu/tensor_map.h"

#include "kernels/sm90/layout.cuh"

namespace ingot::gpu {

static_assert(sizeof(CuTensorMap) == 128);

namespace {

// CUtensorMapDataType, CUtensorMapL2promotion.
constexpr int f16_elements = 6, bf16_elements = 9, promote_256_bytes = 3;
constexpr std::int64_t box_k = sm90::block_k;

}  // namespace

template <std::size_t Rank>
CuResult encode(const Driver& driver, CuTensorMap& map, DType dtype, const void* address,
                const std::array<std::uint64_t, Rank>& sizes,
                const std::array<std::uint64_t, Rank - 1>& strides,
                const std::array<std::uint32_t, Rank>& box, Swizzle swizzle) {
  std::array<std::uint32_t, Rank> steps;
  steps.fill(1);
  return driver.cuTensorMapEncodeTiled(&map, dtype == DType::bf16 ? bf16_elements : f16_elements, Rank,
                                       const_cast<void*>(address), sizes.data(), strides.data(), box.data(),
                                       steps.data(), 0, swizzle, promote_256_bytes, 0);
}
template CuResult encode<2>(const Driver&, CuTensorMap&, DType, const void*,
                            const std::array<std::uint64_t, 2>&, const std::array<std::uint64_t, 1>&,
                            const std::array<std::uint32_t, 2>&, Swizzle);
template CuResult encode<3>(const Driver&, CuTensorMap&, DType, const void*,
                            const std::array<std::uint64_t, 3>&, const std::array<std::uint64_t, 2>&,
                            const std::array<std::uint32_t, 3>&, Swizzle);
template CuResult encode<4>(const Driver&, CuTensorMap&, DType, const void*,
                            const std::array<std::uint64_t, 4>&, const std::array<std::uint64_t, 3>&,
                            const std::array<std::uint32_t, 4>&, Swizzle);
template CuResult encode<5>(const Driver&, CuTensorMap&, DType, const void*,
                            const std::array<std::uint64_t, 5>&, const std::array<std::uint64_t, 4>&,
                            const std::array<std::uint32_t, 5>&, Swizzle);

CuResult encode_matrix(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                       std::int64_t rows, std::int64_t columns, std::int64_t box_rows,
                       std::int64_t box_columns, Swizzle swizzle) {
  return encode<2>(driver, map, dtype, matrix.data,
                   {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)},
                   {static_cast<std::uint64_t>(matrix.stride) * size_of(dtype)},
                   {static_cast<std::uint32_t>(box_columns), static_cast<std::uint32_t>(box_rows)}, swizzle);
}

CuResult encode_operand(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                        std::int64_t rows, std::int64_t k, std::int64_t box_rows, int depth) {
  if (depth == 1) return encode_matrix(driver, map, dtype, matrix, rows, k, box_rows, box_k, bytes_128);
  return encode<3>(driver, map, dtype, matrix.data,
                   {static_cast<std::uint64_t>(box_k), static_cast<std::uint64_t>(rows),
                    static_cast<std::uint64_t>(k / box_k)},
                   {static_cast<std::uint64_t>(matrix.stride) * size_of(dtype), box_k * size_of(dtype)},
                   {static_cast<std::uint32_t>(box_k), static_cast<std::uint32_t>(box_rows),
                    static_cast<std::uint32_t>(depth)},
                   bytes_128);
}

CuResult encode_weights(const Driver& driver, CuTensorMap& map, const LinearSpec& linear,
                        const LinearWeights& weights, std::int64_t box_rows, int depth) {
  if (!linear.gated) {
    return encode_operand(driver, map, linear.dtype, {weights.up.weight, weights.up.row_stride}, linear.out,
                          linear.in, box_rows, depth);
  }
  const void* const first = linear.gate_first ? weights.gate.weight : weights.up.weight;
  const void* const second = linear.gate_first ? weights.up.weight : weights.gate.weight;
  const auto distance = reinterpret_cast<std::uintptr_t>(second) - reinterpret_cast<std::uintptr_t>(first);
  const std::uint64_t row = static_cast<std::uint64_t>(weights.up.row_stride) * size_of(linear.dtype);
  if (depth > 1) {
    return encode<5>(driver, map, linear.dtype, first,
                     {static_cast<std::uint64_t>(box_k), 8, 2, static_cast<std::uint64_t>(linear.out) / 8,
                      static_cast<std::uint64_t>(linear.in / box_k)},
                     {row, distance, row * 8, box_k * size_of(linear.dtype)},
                     {static_cast<std::uint32_t>(box_k), 8, 2, static_cast<std::uint32_t>(box_rows) / 16,
                      static_cast<std::uint32_t>(depth)},
                     bytes_128);
  }
  return encode<4>(driver, map, linear.dtype, first,
                   {static_cast<std::uint64_t>(linear.in), 8, 2, static_cast<std::uint64_t>(linear.out) / 8},
                   {row, distance, row * 8},
                   {static_cast<std::uint32_t>(box_k), 8, 2, static_cast<std::uint32_t>(box_rows) / 16},
                   bytes_128);
}

bool fit_tensor_maps(const LinearWeights& weights, DType dtype, bool gated) {
  const auto fits = [&](const Linear& linear) {
    const std::int64_t row = linear.row_stride * static_cast<std::int64_t>(size_of(dtype));
    // Gated, eight rows are one step of a map.
    return reinterpret_cast<std::uintptr_t>(linear.weight) % 16 == 0 && row % 16 == 0 &&
           row < most_map_stride / 8;
  };
  if (!fits(weights.up)) return false;
  if (!gated) return true;
  if (!fits(weights.gate) || weights.gate.row_stride != weights.up.row_stride) return false;
  const auto gate = reinterpret_cast<std::uintptr_t>(weights.gate.weight);
  const auto up = reinterpret_cast<std::uintptr_t>(weights.up.weight);
  const std::uintptr_t distance = gate < up ? up - gate : gate - up;
  return distance > 0 && distance < static_cast<std::uintptr_t>(most_map_stride);
}

}  // namespace ingot::gpu
