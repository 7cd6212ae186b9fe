// SPDX-License-Identifier: Apache-2.0
//
// The options that say which MLP, shared by the commands that take one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "ingot/engine.h"
#include "ingot/mlp.h"

namespace ingot::cli {

struct ShapeOptions {
  std::optional<std::int64_t> tokens, dim, hidden;
  std::optional<std::string> act, dtype, model, layout;
  std::string numerics = "match";
  bool gated = false;
  bool no_bias = false;

  /// --tokens --dim --hidden --act --gated --no-bias --dtype --model --layout --numerics
  void add_to(CLI::App& app);
};

struct Shape {
  Mlp mlp;
  std::int64_t tokens = 0;
  GateLayout layout = GateLayout::separate;
  Numerics numerics = Numerics::match;
};

/// Errors invalid_argument: name the option.
Result<Shape> resolve(const ShapeOptions& options);

/// "separate", "packed_value_first", "packed_gate_first"
Result<GateLayout> parse_layout(std::string_view name);
/// --dtype and --numerics of commands that take their MLPs from elsewhere.
Result<Shape> resolve_without_shape(const ShapeOptions& options);

}  // namespace ingot::cli
