// SPDX-License-Identifier: Apache-2.0
//
// The arguments of the operators, checked and described for the engine.
#pragma once

#include <optional>
#include <string_view>

#include "ingot/engine.h"
#include "ingot/mlp.h"
#include "ingot/status.h"
#include "tensors.h"

namespace ingot::torch_op {

/// Weights as the operators take them: [out, in], at any row stride, of one dtype on one device.
struct WeightTensors {
  Tensor up;    ///< [hidden, dim]; packed: [2 * hidden, dim]
  Tensor down;  ///< [dim, hidden]
  std::optional<Tensor> up_bias, down_bias;
  std::optional<Tensor> gate;  ///< [hidden, dim], layout "separate"
  std::optional<Tensor> gate_bias;
};

/// An MLP in PyTorch's memory.
struct Request {
  Mlp mlp;
  Weights weights;
  Numerics numerics = Numerics::match;
  Place place;
  std::int32_t dtype = 0;  ///< PyTorch's number
};

/// Reads weights and options. `layout`: "plain" (not gated), "separate", "packed_value_first" or
/// "packed_gate_first". Errors: name the argument, what was given and what is accepted.
Result<Request> read_request(const WeightTensors& weights, std::string_view activation,
                             std::string_view layout, std::string_view numerics);

/// Whether x, of any number of dimensions, goes with the weights. Errors as read_request.
Result<void> check_input(const View& x, const Request& request);

}  // namespace ingot::torch_op
