// SPDX-License-Identifier: Apache-2.0
//
// Tensors of PyTorch as the engine wants them: element type, place, shape, strides. PyTorch's stable ABI
// alone.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/mlp.h"
#include "ingot/status.h"

namespace ingot::torch_op {

using torch::stable::Tensor;

/// Where a tensor lives. `kind` is PyTorch's number of the device type.
struct Place {
  std::int32_t kind = 0;
  std::int32_t index = 0;  ///< as PyTorch counts them; the CPU has -1

  bool operator==(const Place&) const = default;
  bool is_cuda() const;
};
/// "cpu", "cuda:0"
std::string to_string(Place place);

/// What is read of a tensor, once. Sizes and strides are borrowed from it and count elements.
struct View {
  std::string_view name;  ///< the argument's, for messages
  const void* data = nullptr;
  std::int32_t dtype = 0;  ///< PyTorch's number
  Place place;
  std::int64_t dims = 0;
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;

  /// -1 is the last one.
  std::int64_t size(std::int64_t dim) const { return sizes[dim < 0 ? dims + dim : dim]; }
  std::int64_t stride(std::int64_t dim) const { return strides[dim < 0 ? dims + dim : dim]; }
};
View view(std::string_view name, const Tensor& tensor);

/// "[2, 77, 768]"
std::string shape_text(const View& view);

/// Error unsupported: names the argument and the accepted types.
Result<DType> dtype_of(const View& view);
/// "torch.float32"
std::string dtype_text(std::int32_t dtype);

/// Elements from one row to the next when all dimensions but the last are taken for one, as a view of the
/// same memory; unset where no such view exists. A single row has the stride of its width.
std::optional<std::int64_t> row_stride(const View& view);

/// A new contiguous tensor, not initialised, from PyTorch's allocator of that place.
Tensor make_tensor(const std::int64_t* sizes, std::int64_t dims, std::int32_t dtype, Place place);
/// The same of so many bytes, at least at 64-byte addresses.
Tensor make_bytes(std::size_t bytes, Place place);

/// The CUDA stream PyTorch runs on now. Error device: PyTorch has no CUDA.
Result<void*> current_stream(std::int32_t ordinal);

/// Threads PyTorch uses for one operator on the CPU.
int cpu_threads();

}  // namespace ingot::torch_op
