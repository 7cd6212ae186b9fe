// SPDX-License-Identifier: Apache-2.0
#include "request.h"

#include <array>
#include <utility>

#include "text.h"

namespace ingot::torch_op {

namespace {

Error invalid(std::string_view name, const std::string& what) {
  return {ErrorCode::invalid_argument, text(name, ": ", what)};
}

/// Not gated, or how gate and up lie.
struct Layout {
  bool gated = false;
  GateLayout gate = GateLayout::separate;
};

Result<Layout> parse_layout(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Layout>, 4> layouts{
      {{"plain", {false, GateLayout::separate}},
       {"separate", {true, GateLayout::separate}},
       {"packed_value_first", {true, GateLayout::packed_value_first}},
       {"packed_gate_first", {true, GateLayout::packed_gate_first}}}};
  for (const auto& [known, layout] : layouts) {
    if (known == name) return layout;
  }
  return invalid(
      "layout",
      text("'", name, "' is unknown, give plain, separate, packed_value_first or packed_gate_first"));
}

/// That a tensor is where the first weight is, and of its type.
Result<void> check_kin(const View& view, const Request& request) {
  if (view.place != request.place) {
    return invalid(view.name,
                   text("on ", to_string(view.place), ", but up is on ", to_string(request.place)));
  }
  if (view.dtype != request.dtype) {
    return invalid(view.name, text(dtype_text(view.dtype), ", but up is ", dtype_text(request.dtype)));
  }
  return {};
}

/// The weight of one linear, [rows, columns].
Result<Linear> read_weight(const View& view, std::int64_t rows, std::int64_t columns,
                           const Request& request) {
  if (auto ok = check_kin(view, request); !ok) return ok.error();
  if (view.dims != 2 || view.size(0) != rows || view.size(1) != columns) {
    return invalid(view.name, text("shape ", shape_text(view), ", expected [", rows, ", ", columns, "]"));
  }
  const auto stride = row_stride(view);
  if (!stride) {
    return invalid(view.name, "elements of a row do not adjoin (a transposed or expanded view); give a copy");
  }
  return Linear{view.data, *stride, nullptr};
}

Result<const void*> read_bias(std::string_view name, const std::optional<Tensor>& bias, std::int64_t size,
                              const Request& request) {
  if (!bias) return static_cast<const void*>(nullptr);
  const View of = view(name, *bias);
  if (auto ok = check_kin(of, request); !ok) return ok.error();
  if (of.dims != 1 || of.size(0) != size) {
    return invalid(name, text("shape ", shape_text(of), ", expected [", size, "]"));
  }
  if (size > 1 && of.stride(0) != 1) return invalid(name, "elements do not adjoin; give a copy");
  return of.data;
}

}  // namespace

Result<Request> read_request(const WeightTensors& weights, std::string_view activation,
                             std::string_view layout_text, std::string_view numerics) {
  Request request;
  const auto layout = parse_layout(layout_text);
  if (!layout) return layout.error();
  const auto parsed_activation = parse_activation(activation);
  if (!parsed_activation) return parsed_activation.error();
  const auto parsed_numerics = parse_numerics(numerics);
  if (!parsed_numerics) return parsed_numerics.error();
  request.numerics = *parsed_numerics;

  const View up = view("up", weights.up), down = view("down", weights.down);
  const auto dtype = dtype_of(up);
  if (!dtype) return dtype.error();
  request.place = up.place;
  request.dtype = up.dtype;
  if (up.dims != 2) return invalid("up", text("shape ", shape_text(up), ", expected [hidden, dim]"));
  const bool packed = layout->gate != GateLayout::separate;
  if (packed && up.size(0) % 2 != 0) {
    return invalid("up", text("shape ", shape_text(up), ", expected [2 * hidden, dim], gate and up in one"));
  }
  const bool any_bias = weights.up_bias || weights.down_bias || weights.gate_bias;
  request.mlp = {.dim = up.size(1),
                 .hidden = packed ? up.size(0) / 2 : up.size(0),
                 .activation = *parsed_activation,
                 .gated = layout->gated,
                 .bias = any_bias,
                 .dtype = *dtype};
  const Mlp& mlp = request.mlp;

  const auto up_linear = read_weight(up, up.size(0), mlp.dim, request);
  if (!up_linear) return up_linear.error();
  const auto up_bias = read_bias("up_bias", weights.up_bias, up.size(0), request);
  if (!up_bias) return up_bias.error();
  const auto down_linear = read_weight(down, mlp.dim, mlp.hidden, request);
  if (!down_linear) return down_linear.error();
  const auto down_bias = read_bias("down_bias", weights.down_bias, mlp.dim, request);
  if (!down_bias) return down_bias.error();
  request.weights = {.up = *up_linear, .gate = {}, .down = *down_linear, .layout = GateLayout::separate};
  request.weights.up.bias = *up_bias;
  request.weights.down.bias = *down_bias;
  request.weights.layout = layout->gate;

  const bool wants_gate = layout->gated && !packed;
  if (wants_gate != weights.gate.has_value()) {
    return invalid("gate",
                   wants_gate ? "missing, layout separate needs it" : "given, but the layout has none");
  }
  if (!wants_gate) {
    if (weights.gate_bias) return invalid("gate_bias", "given, but there is no gate");
    return request;
  }
  const auto gate = read_weight(view("gate", *weights.gate), mlp.hidden, mlp.dim, request);
  if (!gate) return gate.error();
  const auto gate_bias = read_bias("gate_bias", weights.gate_bias, mlp.hidden, request);
  if (!gate_bias) return gate_bias.error();
  request.weights.gate = *gate;
  request.weights.gate.bias = *gate_bias;
  return request;
}

Result<void> check_input(const View& x, const Request& request) {
  if (auto ok = check_kin(x, request); !ok) return ok;
  if (x.dims < 1 || x.size(-1) != request.mlp.dim) {
    return invalid("x",
                   text("shape ", shape_text(x), ", expected [..., ", request.mlp.dim, "], the width of up"));
  }
  return {};
}

}  // namespace ingot::torch_op
