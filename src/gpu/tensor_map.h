// SPDX-License-Identifier: Apache-2.0
//
// Matrices of a launch, and the maps of them that Hopper's copy engine reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/driver.h"
#include "ingot/engine.h"
#include "ingot/mlp.h"
#include "plan/linear.h"

namespace ingot::gpu {

/// A row-major matrix in the device's memory, rows `stride` elements apart.
struct Matrix {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// Weights of a linear, strides filled in; gate: gated only. Biases are null where the linear has none.
struct LinearWeights {
  Linear up, gate;
};

/// Whether the sm90 kernels can load these weights: addresses and strides of 16 bytes, and gate and up as far
/// apart as one tensor map spans.
bool fit_tensor_maps(const LinearWeights& weights, DType dtype, bool gated);
/// Bytes between two rows, exclusive, and between two steps of any dimension: of the tensor maps' format.
inline constexpr std::int64_t most_map_stride = std::int64_t{1} << 40;
/// Numbers of tokens up to here fit the sm90 kernels' 32-bit coordinates.
inline constexpr std::int64_t most_mapped_tokens = (std::int64_t{1} << 31) - 4096;

/// CUtensorMapSwizzle: where in shared memory the 16-byte pieces of rows of 32, 64 or 128 bytes go.
enum Swizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };

/// A tensor for the copy engine, innermost dimension first. Sizes in elements, strides in bytes of every
/// dimension but the first. Reads beyond a size give zeros, writes there nothing. 16-bit types.
template <std::size_t Rank>
CuResult encode(const Driver& driver, CuTensorMap& map, DType dtype, const void* address,
                const std::array<std::uint64_t, Rank>& sizes,
                const std::array<std::uint64_t, Rank - 1>& strides,
                const std::array<std::uint32_t, Rank>& box, Swizzle swizzle);

/// A matrix [rows, columns] in boxes of `box_rows` rows and `box_columns` columns.
CuResult encode_matrix(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                       std::int64_t rows, std::int64_t columns, std::int64_t box_rows,
                       std::int64_t box_columns, Swizzle swizzle);

/// A matrix [rows, K] in boxes of `box_rows` rows and `depth` blocks of K, 128-byte swizzle; beyond one block
/// K is two dimensions, and a multiple of the block.
CuResult encode_operand(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                        std::int64_t rows, std::int64_t k, std::int64_t box_rows, int depth);

/// Weights [out, in] of a linear in such boxes. Gated: rows of gate and up in turns of eight, the one that
/// lies first in memory first, `box_rows` of both together.
CuResult encode_weights(const Driver& driver, CuTensorMap& map, const LinearSpec& linear,
                        const LinearWeights& weights, std::int64_t box_rows, int depth);

}  // namespace ingot::gpu
