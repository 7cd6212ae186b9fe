// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/command.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

Result<int> run(bool json) {
  const std::string document =
      json ? report::json(known_models())
           : report::text(known_models(), {.color = color_output(), .width = output_width()});
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print one JSON document (schema ingot.models/1)");
  return [json] { return run(*json); };
}

}  // namespace

const Command models_command = {"models", "the feed-forward blocks of known models, for --model", setup};

}  // namespace ingot::cli
