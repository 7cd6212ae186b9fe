// SPDX-License-Identifier: Apache-2.0
#include "cli/shape_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "base/nearest.h"

namespace ingot::cli {

namespace {

constexpr std::array<std::string_view, 3> layouts{"separate", "packed_value_first", "packed_gate_first"};

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

std::string activation_help() {
  std::vector<std::string> lines;
  for (const ActivationInfo& info : activations())
    lines.push_back(fmt::format("{}: {}", info.name, info.formula));
  return fmt::format("activation; {}", fmt::join(lines, "; "));
}

GateLayout layout_of(const KnownModel& model) {
  if (model.gate == "packed, value first") return GateLayout::packed_value_first;
  if (model.gate == "packed, gate first") return GateLayout::packed_gate_first;
  return GateLayout::separate;
}

}  // namespace

void ShapeOptions::add_to(CLI::App& app) {
  app.add_option("--tokens", tokens, "rows of the input");
  app.add_option("--dim", dim, "width of input and output");
  app.add_option("--hidden", hidden, "width between the linears (of gate and up each, when gated)");
  app.add_option("--act", act, activation_help());
  app.add_flag("--gated", gated, "h = act(gate) * up");
  app.add_flag("--no-bias", no_bias, "no linear has a bias");
  app.add_flag("!--bias", no_bias, "linears have a bias (the default)");
  app.add_option("--dtype", dtype, "f32, bf16 or f16 (default: f32, or the model's)");
  app.add_option("--model", model, "a known model instead of a shape: see ingot models");
  app.add_option(
      "--layout", layout,
      "gated weights: separate, packed_value_first or packed_gate_first (default: separate, or the model's)");
  app.add_option("--numerics", numerics,
                 "match: rounds where the unfused framework does; fast: once, at the hidden tensor");
}

Result<GateLayout> parse_layout(std::string_view name) {
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i] == name) return static_cast<GateLayout>(i);
  }
  return invalid(unknown_name("layout", name, layouts));
}

Result<Shape> resolve_without_shape(const ShapeOptions& options) {
  Shape shape;
  const auto numerics = parse_numerics(options.numerics);
  if (!numerics) return numerics.error();
  shape.numerics = *numerics;
  if (options.layout) {
    const auto layout = parse_layout(*options.layout);
    if (!layout) return layout.error();
    shape.layout = *layout;
  }
  if (options.dtype) {
    const auto dtype = parse_dtype(*options.dtype);
    if (!dtype) return dtype.error();
    shape.mlp.dtype = *dtype;
  }
  return shape;
}

Result<Shape> resolve(const ShapeOptions& options) {
  Result<Shape> common = resolve_without_shape(options);
  if (!common) return common;
  Shape shape = *common;
  if (options.model) {
    if (options.dim || options.hidden || options.act || options.gated || options.no_bias) {
      return invalid("--model stands for dim, hidden, act, gated and bias: give it or them, not both");
    }
    const auto model = find_model(*options.model);
    if (!model) return model.error();
    shape.mlp = model->mlp;
    shape.tokens = model->tokens;
    if (options.dtype) shape.mlp.dtype = common->mlp.dtype;
    if (!options.layout) shape.layout = layout_of(*model);
    if (!options.tokens && model->tokens == 0) {
      return invalid(fmt::format("--tokens: needed, the catalogue has no number for {}", model->name));
    }
  } else {
    if (!options.dim || !options.hidden) return invalid("give --dim and --hidden, or --model");
    if (!options.tokens) return invalid("--tokens: needed without --model");
    shape.mlp.dim = *options.dim;
    shape.mlp.hidden = *options.hidden;
    shape.mlp.gated = options.gated;
    shape.mlp.bias = !options.no_bias;
    const auto activation = parse_activation(options.act.value_or("gelu_tanh"));
    if (!activation) return activation.error();
    shape.mlp.activation = *activation;
  }
  if (options.tokens) shape.tokens = *options.tokens;
  if (!shape.mlp.gated && shape.layout != GateLayout::separate) {
    return invalid("--layout: packed needs a gated MLP");
  }
  if (auto ok = validate(shape.mlp, shape.tokens); !ok) return ok.error();
  return shape;
}

}  // namespace ingot::cli
