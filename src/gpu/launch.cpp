// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "arch/sm90.h"

namespace ingot::gpu {

static_assert(sizeof(CuTensorMap) == 128 && sizeof(CuLaunchAttribute) == 72 && sizeof(CuLaunchConfig) == 56);
static_assert(offsetof(CuLaunchConfig, stream) == 32 && offsetof(CuLaunchConfig, attributes) == 40);
static_assert(sizeof(EpilogueArgs) == 32 && offsetof(EpilogueArgs, y_stride) == 24);
static_assert(sizeof(GemmArguments) == 576 && offsetof(GemmArguments, epilogue) == 512 &&
              offsetof(GemmArguments, tokens) == 544 && offsetof(GemmArguments, early_weights) == 552);
static_assert(sizeof(FewArguments) == 320 && offsetof(FewArguments, epilogue) == 256 &&
              offsetof(FewArguments, tokens) == 288);
static_assert(sizeof(LinearArgs) == 88 && offsetof(LinearArgs, tokens) == 48 &&
              offsetof(LinearArgs, epilogue) == 56);

namespace {

// CUlaunchAttributeID.
constexpr int cluster_dimension = 4, programmatic_serialization = 6;
// CUtensorMapDataType, CUtensorMapL2promotion.
constexpr int f16_elements = 6, bf16_elements = 9, promote_256_bytes = 3;
/// CUtensorMapSwizzle of 0, 32, 64 and 128 bytes.
enum Swizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };

/// Stages that ask for their weights before the kernel before has ended. With few tokens all of the ring:
/// more than any has. Else x would queue behind them in the copy engine: 2 are 1 to 5 % faster than all.
constexpr int all_stages = 64, early_stages = 2;

constexpr std::int64_t box_k = sm90::block_k;
constexpr std::int64_t most_map_stride = std::int64_t{1} << 40;  // bytes, exclusive; of the tensor map format

/// A tensor for the copy engine, innermost dimension first. Sizes in elements, strides in bytes of every
/// dimension but the first.
template <std::size_t Rank>
CuResult encode(const Driver& driver, CuTensorMap& map, DType dtype, const void* address,
                const std::array<std::uint64_t, Rank>& sizes,
                const std::array<std::uint64_t, Rank - 1>& strides,
                const std::array<std::uint32_t, Rank>& box, int swizzle) {
  std::array<std::uint32_t, Rank> steps;
  steps.fill(1);
  return driver.cuTensorMapEncodeTiled(&map, dtype == DType::bf16 ? bf16_elements : f16_elements, Rank,
                                       const_cast<void*>(address), sizes.data(), strides.data(), box.data(),
                                       steps.data(), 0, swizzle, promote_256_bytes, 0);
}

/// A matrix [rows, columns] in boxes of `box_rows` rows and `box_columns` columns.
CuResult encode_matrix(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                       std::int64_t rows, std::int64_t columns, std::int64_t box_rows,
                       std::int64_t box_columns, int swizzle) {
  return encode<2>(driver, map, dtype, matrix.data,
                   {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)},
                   {static_cast<std::uint64_t>(matrix.stride) * size_of(dtype)},
                   {static_cast<std::uint32_t>(box_columns), static_cast<std::uint32_t>(box_rows)}, swizzle);
}

/// A matrix [rows, K] in boxes of `box_rows` rows and `depth` blocks of K; beyond one, K is two dimensions.
CuResult encode_operand(const Driver& driver, CuTensorMap& map, DType dtype, const Matrix& matrix,
                        std::int64_t rows, std::int64_t k, std::int64_t box_rows, int depth) {
  if (depth == 1) return encode_matrix(driver, map, dtype, matrix, rows, k, box_rows, box_k, bytes_128);
  return encode<3>(
      driver, map, dtype, matrix.data,
      {static_cast<std::uint64_t>(box_k), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(k / box_k)},
      {static_cast<std::uint64_t>(matrix.stride) * size_of(dtype), box_k * size_of(dtype)},
      {static_cast<std::uint32_t>(box_k), static_cast<std::uint32_t>(box_rows), static_cast<std::uint32_t>(depth)},
      bytes_128);
}

/// Weights in boxes of `box_rows` rows and `depth` blocks of K. Gated: rows of gate and up in turns of eight,
/// the one that lies first in memory first.
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

arch::sm90::LinearShape shape_of(const LinearSpec& linear) {
  return {.out = linear.out, .in = linear.in, .gated = linear.gated};
}

}  // namespace

LaunchShape::LaunchShape(const KernelShape& kernel, std::uint32_t blocks, CuStream stream, bool dependent) {
  std::uint32_t count = 0;
  if (kernel.cluster > 1) {
    attributes_[count].id = cluster_dimension;
    attributes_[count].cluster = {static_cast<std::uint32_t>(kernel.cluster), 1, 1};
    ++count;
  }
  if (dependent) {
    attributes_[count].id = programmatic_serialization;
    attributes_[count].words[0] = 1;
    ++count;
  }
  config_.grid_x = blocks;
  config_.block_x = static_cast<std::uint32_t>(kernel.threads);
  config_.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
  config_.stream = stream;
  config_.attributes = attributes_.data();
  config_.attribute_count = count;
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

Result<PreparedLinear> PreparedLinear::make(std::shared_ptr<const Device> device,
                                            std::shared_ptr<const Module> module, const LinearSpec& linear,
                                            const KernelTile& tile, const LinearWeights& weights) {
  PreparedLinear made;
  made.device_ = std::move(device);
  made.module_ = std::move(module);
  made.linear_ = linear;
  made.tile_ = tile;
  made.weights_ = weights;
  std::int64_t box_rows = 0;
  if (const auto* gemm = std::get_if<sm90::GemmTile>(&tile)) box_rows = gemm->cols / gemm->cluster_rows;
  int blocks = 1;
  if (const auto* few = std::get_if<sm90::FewTile>(&tile)) {
    box_rows = rows(*few);
    blocks = depth(*few, linear.in);
  }
  if (box_rows == 0) return made;
  if (const CuResult r =
          encode_weights(made.device_->driver(), made.weights_map_, linear, weights, box_rows, blocks);
      r != 0) {
    return made.failed(r, "cuTensorMapEncodeTiled");
  }
  return made;
}

Result<void> PreparedLinear::launch(const Matrix& x, const Matrix& y, std::int64_t tokens, CuStream stream,
                                    Start start) const {
  return std::visit([&](const auto& tile) { return launch_tile(tile, x, y, tokens, stream, start); }, tile_);
}

Result<void> PreparedLinear::launch_tile(const sm90::GemmTile& tile, const Matrix& x, const Matrix& y,
                                         std::int64_t tokens, CuStream stream, Start start) const {
  const Driver& driver = device_->driver();
  GemmArguments arguments;
  arguments.w = weights_map_;
  CuResult result = encode_matrix(driver, arguments.x, linear_.dtype, x, tokens, linear_.in,
                                  rows(tile) / tile.cluster_cols, box_k, bytes_128);
  // A warp stores units of 16 rows and 64 columns; the last unit of a row of the tile may be narrower.
  if (result == 0)
    result = encode_matrix(driver, arguments.y, linear_.dtype, y, tokens, linear_.out, 16, 64, bytes_128);
  const int tail = arch::sm90::out_columns(tile, linear_.gated) % 64;
  if (tail == 0) {
    arguments.y_tail = arguments.y;
  } else if (result == 0) {
    result = encode_matrix(driver, arguments.y_tail, linear_.dtype, y, tokens, linear_.out, 16, tail,
                           tail == 16 ? bytes_32 : (tail == 32 ? bytes_64 : none));
  }
  if (result != 0) return failed(result, "cuTensorMapEncodeTiled");
  arguments.epilogue = epilogue(y);
  arguments.tokens = static_cast<std::int32_t>(tokens);
  arguments.group_rows = arch::sm90::group_rows(tile, module_->resident_clusters(), tokens);
  arguments.early_weights = start == Start::on_weights ? early_stages : 0;
  const std::int64_t work = arch::sm90::work(tile, shape_of(linear_), tokens);
  const std::int64_t clusters =
      tile.splits > 1 ? work : std::min<std::int64_t>(work, module_->resident_clusters());
  return submit(&arguments, clusters * blocks_in_cluster(tile), stream, start != Start::ordinary);
}

Result<void> PreparedLinear::launch_tile(const sm90::FewTile& tile, const Matrix& x, const Matrix& y,
                                         std::int64_t tokens, CuStream stream, Start start) const {
  FewArguments arguments;
  arguments.w = weights_map_;
  if (const CuResult r = encode_operand(device_->driver(), arguments.x, linear_.dtype, x, tokens, linear_.in,
                                        tile.tokens / tile.share, depth(tile, linear_.in));
      r != 0) {
    return failed(r, "cuTensorMapEncodeTiled");
  }
  arguments.epilogue = epilogue(y);
  arguments.tokens = static_cast<std::int32_t>(tokens);
  arguments.early_weights = start == Start::on_weights ? all_stages : 0;
  const std::int64_t clusters = arch::sm90::work(tile, shape_of(linear_), tokens);
  return submit(&arguments, clusters * blocks_in_cluster(tile), stream, start != Start::ordinary);
}

Result<void> PreparedLinear::launch_tile(const sm80::Tile& tile, const Matrix& x, const Matrix& y,
                                         std::int64_t tokens, CuStream stream, Start start) const {
  LinearArgs arguments{.x = x.data,
                       .x_stride = x.stride,
                       .up = weights_.up.weight,
                       .up_stride = weights_.up.row_stride,
                       .gate = weights_.gate.weight,
                       .gate_stride = weights_.gate.row_stride,
                       .tokens = tokens,
                       .epilogue = epilogue(y)};
  // These kernels ask for weights at once and let the next one start at once, which only the second of two may.
  return submit(&arguments, sm80::blocks(tile, linear_.out, linear_.gated, tokens), stream,
                start == Start::on_weights);
}

Result<void> PreparedLinear::submit(void* arguments, std::int64_t blocks, CuStream stream,
                                    bool dependent) const {
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("kernel {}: {} blocks, a launch has at most 2^31 - 1; give fewer tokens at a time",
                    module_->shape().name, blocks)};
  }
  LaunchShape shape(module_->shape(), static_cast<std::uint32_t>(blocks), stream, dependent);
  void* parameters[] = {arguments};
  const CuResult r =
      device_->driver().cuLaunchKernelEx(shape.config(), module_->function(), parameters, nullptr);
  if (r != 0) return failed(r, "cuLaunchKernelEx");
  return {};
}

Error PreparedLinear::failed(CuResult result, const char* call) const {
  Error error = driver_error(device_->driver(), result, call);
  error.message = fmt::format("kernel {}: {}", module_->shape().name, error.message);
  return error;
}

EpilogueArgs PreparedLinear::epilogue(const Matrix& y) const {
  return {.up_bias = weights_.up.bias,
          .gate_bias = weights_.gate.bias,
          .y = const_cast<void*>(y.data),
          .y_stride = y.stride};
}

}  // namespace ingot::gpu
