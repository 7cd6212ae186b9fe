// SPDX-License-Identifier: Apache-2.0
//
// --tune of the commands that have it.
#pragma once

#include <vector>

#include "cli/shape_options.h"
#include "ingot/bench.h"

namespace ingot::cli {

/// Measures tiles for every shape, with a progress bar, and keeps the fastest in the cache folder; the engine
/// that did it does not use them. `settings`: layout and numerics are the shapes'.
Result<void> tune_all(const Engine& engine, const std::vector<Shape>& shapes, BenchOptions settings);

}  // namespace ingot::cli
