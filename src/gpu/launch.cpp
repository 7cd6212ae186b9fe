// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "arch/sm90.h"
#include "gpu/tensor_map.h"

namespace ingot::gpu {

static_assert(sizeof(CuLaunchAttribute) == 72 && sizeof(CuLaunchConfig) == 56);
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
/// Stages that ask for their weights before the kernel before has ended. With few tokens all of the ring:
/// more than any has. Else x would queue behind them in the copy engine: 2 are 1 to 5 % faster than all.
constexpr int all_stages = 64, early_stages = 2;

constexpr std::int64_t box_k = sm90::block_k;

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

Error failed(const Driver& driver, const Module& module, CuResult result, const char* call) {
  Error error = driver_error(driver, result, call);
  error.message = fmt::format("kernel {}: {}", module.shape().name, error.message);
  return error;
}

Result<void> submit(const Driver& driver, const Module& module, void* arguments, std::int64_t blocks,
                    CuStream stream, bool dependent) {
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("kernel {}: {} blocks, a launch has at most 2^31 - 1; give fewer tokens at a time",
                    module.shape().name, blocks)};
  }
  LaunchShape shape(module.shape(), static_cast<std::uint32_t>(blocks), stream, dependent);
  void* parameters[] = {arguments};
  const CuResult r = driver.cuLaunchKernelEx(shape.config(), module.function(), parameters, nullptr);
  if (r != 0) return failed(driver, module, r, "cuLaunchKernelEx");
  return {};
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
    return failed(made.device_->driver(), *made.module_, r, "cuTensorMapEncodeTiled");
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
  if (result != 0) return failed(driver, *module_, result, "cuTensorMapEncodeTiled");
  arguments.epilogue = epilogue(y);
  arguments.tokens = static_cast<std::int32_t>(tokens);
  arguments.group_rows = arch::sm90::group_rows(tile, module_->resident_clusters(), tokens);
  arguments.early_weights = start == Start::on_weights ? early_stages : 0;
  const std::int64_t work = arch::sm90::work(tile, shape_of(linear_), tokens);
  const std::int64_t clusters =
      tile.splits > 1 ? work : std::min<std::int64_t>(work, module_->resident_clusters());
  return submit(device_->driver(), *module_, &arguments, clusters * blocks_in_cluster(tile), stream,
                start != Start::ordinary);
}

Result<void> PreparedLinear::launch_tile(const sm90::FewTile& tile, const Matrix& x, const Matrix& y,
                                         std::int64_t tokens, CuStream stream, Start start) const {
  FewArguments arguments;
  arguments.w = weights_map_;
  if (const CuResult r = encode_operand(device_->driver(), arguments.x, linear_.dtype, x, tokens, linear_.in,
                                        tile.tokens / tile.share, depth(tile, linear_.in));
      r != 0) {
    return failed(device_->driver(), *module_, r, "cuTensorMapEncodeTiled");
  }
  arguments.epilogue = epilogue(y);
  arguments.tokens = static_cast<std::int32_t>(tokens);
  arguments.early_weights = start == Start::on_weights ? all_stages : 0;
  const std::int64_t clusters = arch::sm90::work(tile, shape_of(linear_), tokens);
  return submit(device_->driver(), *module_, &arguments, clusters * blocks_in_cluster(tile), stream,
                start != Start::ordinary);
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
  // These kernels ask for weights at once and let the next one start at once, which only the second of two
  // may.
  return submit(device_->driver(), *module_, &arguments,
                sm80::blocks(tile, linear_.out, linear_.gated, tokens), stream, start == Start::on_weights);
}

EpilogueArgs PreparedLinear::epilogue(const Matrix& y) const {
  return {.up_bias = weights_.up.bias,
          .gate_bias = weights_.gate.bias,
          .y = const_cast<void*>(y.data),
          .y_stride = y.stride};
}

}  // namespace ingot::gpu
