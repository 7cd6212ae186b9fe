// SPDX-License-Identifier: Apache-2.0
//
// What an operator means to an MLP. One row per operator name; an operator without a row is `other`.
#pragma once

#include <string_view>

namespace ingot::trace {

enum class Role {
  other,
  linear,      ///< a matrix product with a shared matrix
  activation,  ///< its `activation` says which
  product,     ///< elementwise product (of two tensors, or by a scalar: the signature tells)
  sum,         ///< elementwise sum: a bias, or a residual
  pointwise,   ///< any other elementwise operator: part of an activation written out by hand
  split,       ///< cuts a tensor into views
  pass,        ///< changes no value at inference: views, copies, casts, dropout
};

struct RoleRow {
  std::string_view name;
  Role role;
  std::string_view
      activation;  ///< for Role::activation; "gelu" where the form stands in an argument or kernel
};

/// The row of an operator name ("aten::gelu"); trailing-underscore forms are the in-place ones.
RoleRow role_of(std::string_view op_name);

}  // namespace ingot::trace
