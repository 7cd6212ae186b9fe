// SPDX-License-Identifier: Apache-2.0
#include "plan/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {

namespace {

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

bool aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

/// A [rows, columns] tensor in the caller's memory.
struct Tensor {
  std::string_view name;
  const void* data;
  std::int64_t rows, columns, stride;
  std::size_t element;
};

Result<void> check_tensor(const Tensor& tensor) {
  if (tensor.data == nullptr) return invalid(fmt::format("{}: null pointer", tensor.name));
  if (!aligned(tensor.data, tensor.element)) {
    return invalid(fmt::format("{}: address is not a multiple of {} bytes", tensor.name, tensor.element));
  }
  if (tensor.rows > 1 && tensor.stride < tensor.columns) {
    return invalid(
        fmt::format("{} row stride: {} overlaps rows of {}", tensor.name, tensor.stride, tensor.columns));
  }
  std::int64_t elements = 0, bytes = 0;
  if (__builtin_mul_overflow(tensor.rows, tensor.stride, &elements) ||
      __builtin_mul_overflow(elements, static_cast<std::int64_t>(tensor.element), &bytes)) {
    return invalid(
        fmt::format("{} row stride: {} rows of {} pass 2^63 bytes", tensor.name, tensor.rows, tensor.stride));
  }
  return {};
}

/// First byte and the byte after the last.
struct Extent {
  std::uintptr_t first, end;
};
Extent extent(const Tensor& tensor) {
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.data);
  const std::int64_t elements = (tensor.rows - 1) * tensor.stride + tensor.columns;
  return {first, first + static_cast<std::uintptr_t>(elements) * tensor.element};
}
bool meet(Extent a, Extent b) {
  return a.first < b.end && b.first < a.end;
}

/// Whether two tensors of equal columns may share an element. Views of one buffer side by side, with one
/// stride, do not; other tensors whose extents meet are taken to.
bool share_elements(const Tensor& a, const Tensor& b) {
  const Extent at = extent(a), bt = extent(b);
  if (!meet(at, bt)) return false;
  if (a.stride != b.stride || a.rows == 1 || b.rows == 1) return true;
  const auto pitch = static_cast<std::uintptr_t>(a.stride) * a.element;
  const auto width = static_cast<std::uintptr_t>(a.columns) * a.element;
  const std::uintptr_t offset = (std::max(at.first, bt.first) - std::min(at.first, bt.first)) % pitch;
  return offset < width || pitch - offset < width;
}

Result<void> check_linear(const Mlp& mlp, std::string_view name, const Linear& linear, std::int64_t out,
                          std::int64_t in) {
  const std::size_t element = size_of(mlp.dtype);
  const std::string weight_name = fmt::format("{} weight", name);
  if (auto ok = check_tensor({weight_name, linear.weight, out, in, linear.row_stride, element}); !ok)
    return ok;
  if (linear.bias == nullptr) return {};
  if (!mlp.bias) return invalid(fmt::format("{} bias: given, but the MLP has bias = false", name));
  if (!aligned(linear.bias, element)) {
    return invalid(fmt::format("{} bias: address is not a multiple of {} bytes", name, element));
  }
  return {};
}

Linear with_stride(Linear linear, std::int64_t in) {
  if (linear.row_stride == 0) linear.row_stride = in;
  return linear;
}

/// The linear made of the rows from `first` on.
Linear rows_from(const Linear& linear, std::int64_t first, std::size_t element) {
  const auto move = [&](const void* base, std::int64_t elements) -> const void* {
    return base == nullptr ? nullptr
                           : static_cast<const char*>(base) + elements * static_cast<std::int64_t>(element);
  };
  return {move(linear.weight, first * linear.row_stride), linear.row_stride, move(linear.bias, first)};
}

}  // namespace

Result<ResolvedWeights> resolve_weights(const Mlp& mlp, const Weights& weights) {
  if (auto ok = validate(mlp); !ok) return ok.error();
  const Linear up = with_stride(weights.up, mlp.dim);
  const Linear gate = with_stride(weights.gate, mlp.dim);
  const Linear down = with_stride(weights.down, mlp.hidden);
  const bool packed = weights.layout != GateLayout::separate;
  if (packed && !mlp.gated) return invalid("layout: packed needs a gated MLP");
  if ((packed || !mlp.gated) && (gate.weight != nullptr || gate.bias != nullptr)) {
    return invalid(
        fmt::format("gate: given, but {}", packed ? "packed weights hold it in up" : "the MLP is not gated"));
  }
  if (auto ok = check_linear(mlp, "up", up, packed ? 2 * mlp.hidden : mlp.hidden, mlp.dim); !ok)
    return ok.error();
  if (mlp.gated && !packed) {
    if (auto ok = check_linear(mlp, "gate", gate, mlp.hidden, mlp.dim); !ok) return ok.error();
  }
  if (auto ok = check_linear(mlp, "down", down, mlp.dim, mlp.hidden); !ok) return ok.error();

  if (!mlp.gated) return ResolvedWeights{up, {}, down};
  if (!packed) return ResolvedWeights{gate, up, down};
  const Linear first = up;
  const Linear second = rows_from(up, mlp.hidden, size_of(mlp.dtype));
  const bool gate_first = weights.layout == GateLayout::packed_gate_first;
  return ResolvedWeights{gate_first ? first : second, gate_first ? second : first, down};
}

bool gate_lies_first(const ResolvedWeights& weights) {
  return reinterpret_cast<std::uintptr_t>(weights.gate.weight) <
         reinterpret_cast<std::uintptr_t>(weights.up.weight);
}

PlanOptions planning_options(const Mlp& mlp, const Weights& weights, const PrepareOptions& options) {
  return {.numerics = options.numerics,
          .rung = options.rung,
          .packed = mlp.gated && weights.layout != GateLayout::separate};
}

Result<RunArguments> resolve_run(const Mlp& mlp, const RunArguments& arguments,
                                 std::size_t workspace_needed) {
  RunArguments run = arguments;
  if (run.tokens < 0) return invalid(fmt::format("tokens: {} is not accepted, give 0 or more", run.tokens));
  if (run.tokens == 0) return run;
  // The stride of a single row is never used, so any value is as good as the default.
  if (run.x_row_stride == 0 || run.tokens == 1) run.x_row_stride = mlp.dim;
  if (run.y_row_stride == 0 || run.tokens == 1) run.y_row_stride = mlp.dim;
  const std::size_t element = size_of(mlp.dtype);
  const Tensor x{"x", run.x, run.tokens, mlp.dim, run.x_row_stride, element};
  const Tensor y{"y", run.y, run.tokens, mlp.dim, run.y_row_stride, element};
  if (auto ok = check_tensor(x); !ok) return ok.error();
  if (auto ok = check_tensor(y); !ok) return ok.error();
  if (share_elements(x, y)) return invalid("y: shares memory with x");
  if (workspace_needed == 0) {
    run.workspace = nullptr;  // whatever was given is not touched
    return run;
  }
  if (run.workspace_bytes < workspace_needed) {
    return invalid(fmt::format("workspace: {} bytes, {} tokens need {}", run.workspace_bytes, run.tokens,
                               workspace_needed));
  }
  if (run.workspace == nullptr) return invalid("workspace: null pointer");
  if (!aligned(run.workspace, workspace_alignment)) {
    return invalid(fmt::format("workspace: address is not a multiple of {} bytes", workspace_alignment));
  }
  const auto first = reinterpret_cast<std::uintptr_t>(run.workspace);
  const Extent used{first, first + workspace_needed};
  if (meet(used, extent(x)) || meet(used, extent(y))) return invalid("workspace: shares memory with x or y");
  return run;
}

}  // namespace ingot
