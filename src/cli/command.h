// SPDX-License-Identifier: Apache-2.0
//
// The table of commands. A command is one file: it describes its options and runs; main.cpp only lists it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "ingot/status.h"

namespace ingot::cli {

struct Command {
  const char* name;
  const char* summary;
  /// Adds options to the parser and returns what to run once they are parsed. The run prints its result and
  /// returns the exit code (0 done, 5 a result failed its check), or an Error, whose line and code main()
  /// takes care of.
  std::function<Result<int>()> (*setup)(CLI::App& app);
};

extern const Command explain_command;
extern const Command diff_command;
extern const Command bench_command;
extern const Command plan_command;
extern const Command models_command;
extern const Command cost_command;
extern const Command cache_command;
extern const Command doctor_command;

/// Whether standard output is a terminal that takes colour (NO_COLOR is honoured), and its width in columns.
bool color_output();
int output_width();
/// Writes to standard output; an Error when it cannot be written (a full disk, a closed pipe).
Result<void> print(const std::string& text);

}  // namespace ingot::cli
