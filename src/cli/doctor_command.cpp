// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/command.h"
#include "ingot/doctor.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

Result<int> run(bool json) {
  const Machine machine = inspect_machine();
  const std::string document =
      json ? report::json(machine)
           : report::text(machine, {.color = color_output(), .width = output_width()});
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print one JSON document (schema ingot.doctor/1)");
  return [json] { return run(*json); };
}

}  // namespace

const Command doctor_command = {
    "doctor", "what this machine has, what will be used of it, what is missing and how to get it", setup};

}  // namespace ingot::cli
