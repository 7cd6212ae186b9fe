// SPDX-License-Identifier: Apache-2.0
//
// Launches kernels/sm90/narrow.cuh.
#include <algorithm>
#include <cstddef>

#include "arch/integers.h"
#include "gpu/mlp_launch.h"

namespace ingot::gpu {

static_assert(sizeof(MlpEpilogueArgs) == 40 && sizeof(NarrowArguments) == 704 &&
              offsetof(NarrowArguments, epilogue) == 640 && offsetof(NarrowArguments, tokens) == 680 &&
              offsetof(NarrowArguments, early_weights) == 684);

namespace {

constexpr std::uint32_t block_k = 64;  // of a box: 128 bytes, one row of the swizzle

/// dim as the kernel's maps see it: blocks of 64 columns, or one block whose tail is filled with zeros.
struct Blocks {
  std::uint64_t columns, count;
  bool whole;
};
Blocks blocks_of(std::int64_t dim) {
  const bool whole = dim % block_k == 0;
  return {whole ? block_k : static_cast<std::uint64_t>(dim),
          whole ? static_cast<std::uint64_t>(dim) / block_k : 1, whole};
}

class PreparedNarrow final : public PreparedMlpKernel {
 public:
  PreparedNarrow(MlpKernelParts parts, const sm90::NarrowTile& tile)
      : parts_(std::move(parts)), tile_(tile) {}

  /// The maps of the weights.
  CuResult encode_weights() {
    const MlpSpec& m = parts_.mlp;
    const sm90::NarrowLayout shared =
        layout(tile_, static_cast<int>(m.dim), static_cast<int>(m.hidden), m.gated, m.up_bias);
    const Linear& first = m.gated && m.gate_first ? parts_.first.gate : parts_.first.up;
    const Linear& second = m.gate_first ? parts_.first.up : parts_.first.gate;
    const std::uint64_t row = bytes(first.row_stride);
    const std::uint64_t distance = m.gated ? reinterpret_cast<std::uintptr_t>(second.weight) -
                                                 reinterpret_cast<std::uintptr_t>(first.weight)
                                           : row;
    const Blocks blocks = blocks_of(m.dim);
    const std::uint32_t matrices = m.gated ? 2 : 1, chunk = static_cast<std::uint32_t>(tile_.chunk);
    const auto hidden = static_cast<std::uint64_t>(m.hidden);
    const auto encode_up = [&](CuTensorMap& map, int k_blocks) {
      return encode<4>(
          parts_.driver(), map, m.dtype, first.weight, {blocks.columns, hidden, matrices, blocks.count},
          {row, distance, std::uint64_t{block_k} * 2},
          {block_k, chunk, matrices, blocks.whole ? static_cast<std::uint32_t>(k_blocks) : 1}, bytes_128);
    };
    if (const CuResult r = encode_up(weights_.up_first, shared.first_k_blocks); r != 0) return r;
    weights_.up_rest = weights_.up_first;
    if (shared.first_k_blocks < shared.k_blocks) {
      if (const CuResult r = encode_up(weights_.up_rest, shared.k_blocks - shared.first_k_blocks); r != 0)
        return r;
    }
    // Rows in an order that leaves every thread eight neighbouring columns of y out of 32: 2q and 2q + 1 of
    // every eight become 8q to 8q + 7.
    const std::uint64_t down_row = bytes(parts_.down.row_stride);
    const auto groups = static_cast<std::uint32_t>(m.dim / 32), tail = static_cast<std::uint32_t>(m.dim % 32);
    if (const CuResult r = encode<5>(
            parts_.driver(), weights_.down, m.dtype, parts_.down.weight, {hidden, 2, 4, 4, groups},
            {down_row, 8 * down_row, 2 * down_row, 32 * down_row}, {block_k, 2, 4, 4, groups}, bytes_128);
        r != 0) {
      return r;
    }
    weights_.down_tail = weights_.down;
    if (tail == 0) return 0;
    return encode_matrix(parts_.driver(), weights_.down_tail, m.dtype,
                         {parts_.down.weight, parts_.down.row_stride}, m.dim, m.hidden, tail, block_k,
                         bytes_128);
  }
  Error failed_map(CuResult result) const {
    return failed(parts_.driver(), *parts_.module, result, "cuTensorMapEncodeTiled");
  }

  Result<void> launch(const Matrix& x, const Matrix& y, void*, std::int64_t tokens, CuStream stream,
                      Start start) const override {
    NarrowArguments arguments = weights_;
    const Blocks blocks = blocks_of(parts_.mlp.dim);
    const CuResult result = encode<3>(parts_.driver(), arguments.x, parts_.mlp.dtype, x.data,
                                      {blocks.columns, static_cast<std::uint64_t>(tokens), blocks.count},
                                      {bytes(x.stride), std::uint64_t{block_k} * 2},
                                      {block_k, 64, static_cast<std::uint32_t>(blocks.count)}, bytes_128);
    if (result != 0) return failed_map(result);
    arguments.epilogue = parts_.epilogue(y);
    arguments.tokens = static_cast<std::int32_t>(tokens);
    arguments.early_weights = 0;
    const std::int64_t grid = std::min<std::int64_t>(arch::ceil_div(tokens, tokens_of_block(tile_)),
                                                     parts_.module->resident_clusters());
    return submit(parts_.driver(), *parts_.module, &arguments, grid, stream, start != Start::ordinary);
  }

 private:
  std::uint64_t bytes(std::int64_t elements) const {
    return static_cast<std::uint64_t>(elements) * size_of(parts_.mlp.dtype);
  }

  MlpKernelParts parts_;
  sm90::NarrowTile tile_;
  NarrowArguments weights_{};  ///< all but x and what a launch brings
};

}  // namespace

PreparedKernel prepare_kernel(MlpKernelParts parts, const sm90::NarrowTile& tile) {
  auto made = std::make_unique<PreparedNarrow>(std::move(parts), tile);
  if (const CuResult r = made->encode_weights(); r != 0) return made->failed_map(r);
  return std::unique_ptr<const PreparedMlpKernel>(std::move(made));
}

}  // namespace ingot::gpu
