// SPDX-License-Identifier: Apache-2.0
#include "cli/tune.h"

#include <string>

#include "cli/progress_bar.h"

namespace ingot::cli {

Result<void> tune_all(const Engine& engine, const std::vector<Shape>& shapes, BenchOptions settings) {
  ProgressBar bar;
  std::size_t done = 0;
  settings.progress = [&](double fraction, const std::string& what) {
    bar.show((static_cast<double>(done) + fraction) / static_cast<double>(shapes.size()), what);
  };
  for (const Shape& shape : shapes) {
    settings.layout = shape.layout;
    settings.numerics = shape.numerics;
    if (const auto found = tune(engine, shape.mlp, shape.tokens, settings); !found) return found.error();
    ++done;
  }
  return {};
}

}  // namespace ingot::cli
