// SPDX-License-Identifier: Apache-2.0
#include "trace/roles.h"

namespace ingot::trace {

namespace {
constexpr RoleRow rows[] = {
    {"aten::linear", Role::linear, ""},
    {"aten::addmm", Role::linear, ""},
    {"aten::mm", Role::linear, ""},
    {"aten::matmul", Role::linear, ""},
    {"aten::_addmm_activation", Role::linear, ""},
    {"aten::_scaled_mm", Role::linear, ""},
    {"aten::relu", Role::activation, "relu"},
    {"aten::relu_", Role::activation, "relu"},
    {"aten::clamp_min", Role::activation, "relu"},
    {"aten::clamp_min_", Role::activation, "relu"},
    {"aten::threshold", Role::activation, "relu"},
    {"aten::threshold_", Role::activation, "relu"},
    {"aten::gelu", Role::activation, "gelu"},
    {"aten::gelu_", Role::activation, "gelu"},
    {"aten::silu", Role::activation, "silu"},
    {"aten::silu_", Role::activation, "silu"},
    {"aten::sigmoid", Role::activation, "sigmoid"},
    {"aten::sigmoid_", Role::activation, "sigmoid"},
    {"aten::tanh", Role::activation, "tanh"},
    {"aten::tanh_", Role::activation, "tanh"},
    {"aten::mul", Role::product, ""},
    {"aten::mul_", Role::product, ""},
    {"aten::multiply", Role::product, ""},
    {"aten::add", Role::sum, ""},
    {"aten::add_", Role::sum, ""},
    {"aten::pow", Role::pointwise, ""},
    {"aten::pow_", Role::pointwise, ""},
    {"aten::div", Role::pointwise, ""},
    {"aten::erf", Role::pointwise, ""},
    {"aten::chunk", Role::split, ""},
    {"aten::split", Role::split, ""},
    {"aten::split_with_sizes", Role::split, ""},
    {"aten::unbind", Role::split, ""},
    {"aten::slice", Role::split, ""},
    {"aten::narrow", Role::split, ""},
    {"aten::select", Role::split, ""},
    {"aten::tensor_split", Role::split, ""},
    {"aten::dropout", Role::pass, ""},
    {"aten::dropout_", Role::pass, ""},
    {"aten::native_dropout", Role::pass, ""},
    {"aten::to", Role::pass, ""},
    {"aten::_to_copy", Role::pass, ""},
    {"aten::contiguous", Role::pass, ""},
    {"aten::clone", Role::pass, ""},
    {"aten::copy_", Role::pass, ""},
    {"aten::alias", Role::pass, ""},
    {"aten::detach", Role::pass, ""},
    {"aten::t", Role::pass, ""},
    {"aten::view", Role::pass, ""},
    {"aten::_unsafe_view", Role::pass, ""},
    {"aten::reshape", Role::pass, ""},
    {"aten::flatten", Role::pass, ""},
    {"aten::unflatten", Role::pass, ""},
    {"aten::transpose", Role::pass, ""},
    {"aten::permute", Role::pass, ""},
    {"aten::expand", Role::pass, ""},
    {"aten::squeeze", Role::pass, ""},
    {"aten::unsqueeze", Role::pass, ""},
    {"aten::as_strided", Role::pass, ""},
    {"aten::empty", Role::pass, ""},
    {"aten::empty_like", Role::pass, ""},
    {"aten::empty_strided", Role::pass, ""},
};
}  // namespace

RoleRow role_of(std::string_view op_name) {
  for (const RoleRow& row : rows) {
    if (row.name == op_name) return row;
  }
  return {op_name, Role::other, ""};
}

}  // namespace ingot::trace
