// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ingot/engine.h"

namespace ingot::gpu_bench {

/// One MLP to measure, bf16 unless the command line says otherwise.
struct Shape {
  std::string name;
  std::int64_t tokens = 0;
  Mlp mlp;
  GateLayout layout = GateLayout::separate;
};

/// The shapes of docs/measured-gpu.md.
const std::vector<Shape>& known_shapes();

/// A known name, or "NAME:TOKENS:DIM:HIDDEN:ACT[:gated|:packed][:nobias]". Error invalid_argument.
Result<Shape> parse_shape(const std::string& text);

}  // namespace ingot::gpu_bench
