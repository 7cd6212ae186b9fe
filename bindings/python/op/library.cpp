// SPDX-License-Identifier: Apache-2.0
//
// The operators torch.ops.ingot.mlp and torch.ops.ingot.warm. Loaded by torch.ops.load_library; built on
// PyTorch's stable ABI, so that one binary serves every version from 2.11 on.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "prepared.h"
#include "request.h"
#include "tensors.h"
#include "text.h"

namespace ingot::torch_op {

namespace {

using torch::stable::detail::to;

/// PyTorch wants exceptions; this is the border where errors become one.
[[noreturn]] void raise(std::string_view op, const Error& error) {
  throw std::runtime_error(text("ingot.", op, ": ", error.message));
}

/// The process's table. Operators have no place to keep state but their library; it is never torn down, since
/// PyTorch may still call while the process ends, and threads and drivers do not like to be stopped then.
PreparedTable& table() {
  static auto* const table = new PreparedTable;
  return *table;
}

/// A string argument. PyTorch's own conversion never frees the copy it makes.
class Text {
 public:
  explicit Text(StableIValue value) : handle_(to<StringHandle>(value)) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { torch_delete_string(handle_); }
  std::string_view view() const {
    std::size_t length = 0;
    const char* data = nullptr;
    TORCH_ERROR_CODE_CHECK(torch_string_length(handle_, &length));
    TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle_, &data));
    return {data, length};
  }

 private:
  StringHandle handle_;
};

/// The arguments both operators share, in the order of their schema from `up` on; owns them.
struct Arguments {
  explicit Arguments(const StableIValue* stack)
      : weights{to<Tensor>(stack[0]),
                to<Tensor>(stack[1]),
                to<std::optional<Tensor>>(stack[2]),
                to<std::optional<Tensor>>(stack[3]),
                to<std::optional<Tensor>>(stack[4]),
                to<std::optional<Tensor>>(stack[5])},
        activation(stack[6]),
        layout(stack[7]),
        numerics(stack[8]) {}
  Result<Request> request() const {
    return read_request(weights, activation.view(), layout.view(), numerics.view());
  }

  WeightTensors weights;
  Text activation, layout, numerics;
};
constexpr std::uint64_t shared_arguments = 9;

/// Says how to do it with PyTorch's side of Ingot.
Error explain_capture(Error error, std::int64_t tokens) {
  if (error.code == ErrorCode::unsupported) {
    error.message += text(" (ingot.warm(model, tokens=[", tokens, "]) does it for a model)");
  }
  return error;
}

Tensor run_mlp(const Tensor& given, const Arguments& arguments) {
  const auto request = arguments.request();
  if (!request) raise("mlp", request.error());
  Tensor input = given;
  View x = view("x", input);
  if (auto ok = check_input(x, *request); !ok) raise("mlp", ok.error());
  Tensor output = make_tensor(x.sizes, x.dims, x.dtype, x.place);
  std::int64_t tokens = 1;
  for (std::int64_t dim = 0; dim + 1 < x.dims; ++dim) tokens *= x.size(dim);
  if (tokens == 0) return output;

  auto stride = row_stride(x);
  if (!stride) {
    input = torch::stable::contiguous(input);
    x = view("x", input);
    stride = x.size(-1);
  }
  const auto prepared = table().find(*request);
  if (!prepared) raise("mlp", prepared.error());
  RunArguments run{.tokens = tokens,
                   .x = x.data,
                   .x_row_stride = *stride,
                   .y = output.mutable_data_ptr(),
                   .y_row_stride = 0,
                   .workspace = nullptr,
                   .workspace_bytes = prepared->workspace_bytes(tokens),
                   .stream = {}};
  std::optional<Tensor> workspace;
  if (run.workspace_bytes > 0) {
    workspace = make_bytes(run.workspace_bytes, x.place);
    run.workspace = workspace->mutable_data_ptr();
  }
  if (x.place.is_cuda()) {
    const auto stream = current_stream(x.place.index);
    if (!stream) raise("mlp", stream.error());
    run.stream = {*stream};
  }
  if (auto ok = prepared->run(run); !ok) raise("mlp", explain_capture(ok.error(), tokens));
  // The workspace goes back to PyTorch's allocator, which hands it out again on this stream alone.
  return output;
}

void mlp(StableIValue* stack, std::uint64_t inputs, std::uint64_t) {
  STD_TORCH_CHECK(inputs == shared_arguments + 1, "ingot.mlp: ", inputs, " arguments");
  const auto x = to<Tensor>(stack[0]);
  const Arguments arguments(stack + 1);
  stack[0] = torch::stable::detail::from(run_mlp(x, arguments));
}

void warm(StableIValue* stack, std::uint64_t inputs, std::uint64_t) {
  STD_TORCH_CHECK(inputs == shared_arguments + 1, "ingot.warm: ", inputs, " arguments");
  const Arguments arguments(stack);
  const auto tokens = to<std::int64_t>(stack[shared_arguments]);
  const auto request = arguments.request();
  if (!request) raise("warm", request.error());
  const auto prepared = table().find(*request);
  if (!prepared) raise("warm", prepared.error());
  if (auto ok = prepared->warm(tokens); !ok) raise("warm", ok.error());
}

}  // namespace

}  // namespace ingot::torch_op

STABLE_TORCH_LIBRARY(ingot, library) {
  library.def(
      "mlp(Tensor x, Tensor up, Tensor down, Tensor? up_bias, Tensor? down_bias, Tensor? gate, Tensor? "
      "gate_bias, "
      "str activation, str layout, str numerics) -> Tensor");
  library.def(
      "warm(Tensor up, Tensor down, Tensor? up_bias, Tensor? down_bias, Tensor? gate, Tensor? gate_bias, "
      "str activation, str layout, str numerics, int tokens) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(ingot, CPU, library) {
  library.impl("mlp", &ingot::torch_op::mlp);
  library.impl("warm", &ingot::torch_op::warm);
}
STABLE_TORCH_LIBRARY_IMPL(ingot, CUDA, library) {
  library.impl("mlp", &ingot::torch_op::mlp);
  library.impl("warm", &ingot::torch_op::warm);
}
