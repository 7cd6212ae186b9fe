// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <array>
#include <utility>

#include "text.h"

namespace ingot::torch_op {

namespace {

/// PyTorch's numbers of what the engine has.
struct Numbers {
  std::int32_t cuda = aoti_torch_device_type_cuda();
  std::array<std::pair<std::int32_t, DType>, 3> dtypes{{{aoti_torch_dtype_float32(), DType::f32},
                                                        {aoti_torch_dtype_bfloat16(), DType::bf16},
                                                        {aoti_torch_dtype_float16(), DType::f16}}};
};
const Numbers& numbers() {
  static const Numbers numbers;
  return numbers;
}

constexpr std::size_t most_inline_dims = 8;

}  // namespace

bool Place::is_cuda() const {
  return kind == numbers().cuda;
}

std::string to_string(Place place) {
  if (place.is_cuda()) return text("cuda:", place.index);
  return place.kind == aoti_torch_device_type_cpu() ? "cpu" : "another kind of device";
}

View view(std::string_view name, const Tensor& tensor) {
  View out;
  out.name = name;
  AtenTensorHandle handle = tensor.get();
  TORCH_ERROR_CODE_CHECK(torch_get_const_data_ptr(handle, &out.data));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(handle, &out.dtype));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(handle, &out.place.kind));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(handle, &out.place.index));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(handle, &out.dims));
  std::int64_t* numbers = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(handle, &numbers));
  out.sizes = numbers;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(handle, &numbers));
  out.strides = numbers;
  return out;
}

std::string shape_text(const View& view) {
  std::string joined = "[";
  for (std::int64_t dim = 0; dim < view.dims; ++dim) joined += text(dim > 0 ? ", " : "", view.size(dim));
  return joined + "]";
}

std::string dtype_text(std::int32_t dtype) {
  const std::array<std::pair<std::int32_t, const char*>, 9> names{{
      {aoti_torch_dtype_float32(), "torch.float32"},
      {aoti_torch_dtype_bfloat16(), "torch.bfloat16"},
      {aoti_torch_dtype_float16(), "torch.float16"},
      {aoti_torch_dtype_float64(), "torch.float64"},
      {aoti_torch_dtype_int8(), "torch.int8"},
      {aoti_torch_dtype_uint8(), "torch.uint8"},
      {aoti_torch_dtype_int64(), "torch.int64"},
      {aoti_torch_dtype_float8_e4m3fn(), "torch.float8_e4m3fn"},
      {aoti_torch_dtype_float8_e5m2(), "torch.float8_e5m2"},
  }};
  for (const auto& [number, name] : names) {
    if (number == dtype) return name;
  }
  return "this dtype";
}

Result<DType> dtype_of(const View& view) {
  for (const auto& [number, dtype] : numbers().dtypes) {
    if (number == view.dtype) return dtype;
  }
  return Error{ErrorCode::unsupported,
               text(view.name, ": ", dtype_text(view.dtype),
                    " is not supported, give torch.float32, torch.bfloat16 or torch.float16")};
}

std::optional<std::int64_t> row_stride(const View& view) {
  const std::int64_t width = view.size(-1);
  if (width > 1 && view.stride(-1) != 1) return std::nullopt;
  std::int64_t rows = 1, stride = width;
  for (std::int64_t dim = view.dims - 2; dim >= 0; --dim) {
    if (view.size(dim) == 1) continue;
    if (rows == 1) {
      stride = view.stride(dim);
    } else if (view.stride(dim) != stride * rows) {
      return std::nullopt;
    }
    rows *= view.size(dim);
  }
  // Rows that overlap, as those of an expanded tensor, are no matrix.
  if (rows > 1 && stride < width) return std::nullopt;
  return stride;
}

Tensor make_tensor(const std::int64_t* sizes, std::int64_t dims, std::int32_t dtype, Place place) {
  std::array<std::int64_t, most_inline_dims> few{};
  std::vector<std::int64_t> many;
  std::int64_t* strides = few.data();
  if (dims > static_cast<std::int64_t>(few.size())) {
    many.resize(static_cast<std::size_t>(dims));
    strides = many.data();
  }
  std::int64_t elements = 1;
  for (std::int64_t dim = dims - 1; dim >= 0; --dim) {
    strides[dim] = elements;
    elements *= sizes[dim] > 1 ? sizes[dim] : 1;
  }
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_empty_strided(dims, sizes, strides, dtype, place.kind, place.index, &handle));
  return Tensor(handle);
}

Tensor make_bytes(std::size_t bytes, Place place) {
  const auto size = static_cast<std::int64_t>(bytes);
  return make_tensor(&size, 1, aoti_torch_dtype_uint8(), place);
}

Result<void*> current_stream(std::int32_t ordinal) {
  // This function is in PyTorch's CUDA half alone, which a build for the CPU has not, so it is looked up. The
  // library is loaded already, or there would be no CUDA tensor.
  using Function = AOTITorchError (*)(std::int32_t, void**);
  static const Function function = [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return library == nullptr
               ? nullptr
               : reinterpret_cast<Function>(dlsym(library, "aoti_torch_get_current_cuda_stream"));
  }();
  if (function == nullptr) return Error{ErrorCode::device, "this PyTorch tells no CUDA stream"};
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(function(ordinal, &stream));
  return stream;
}

int cpu_threads() {
  std::uint32_t threads = 0;
  TORCH_ERROR_CODE_CHECK(torch_get_num_threads(&threads));
  return threads > 0 ? static_cast<int>(threads) : 1;
}

}  // namespace ingot::torch_op
