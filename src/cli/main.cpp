// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/env.h"
#include "cli/command.h"

namespace ingot::cli {

namespace {
const Command* const commands[] = {&explain_command, &diff_command, &bench_command, &plan_command,
                                   &models_command,  &cost_command, &cache_command, &doctor_command};
}

bool color_output() {
  return isatty(STDOUT_FILENO) == 1 && !base::read_environment().no_color;
}

int output_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60)
    return size.ws_col;
  return 120;
}

Result<void> print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return Error{ErrorCode::internal, "cannot write to standard output"};
  }
  return {};
}

namespace {

int run(int argc, char** argv) {
  CLI::App app(
      "Reads what a PyTorch model really launches, and casts its MLPs into as few kernels as the hardware "
      "allows.",
      "ingot");
  app.set_version_flag("--version", std::string("ingot ") + INGOT_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  std::function<Result<int>()> chosen;
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->failure_message(CLI::FailureMessage::simple);
    std::function<Result<int>()> action = command->setup(*sub);
    sub->callback([&chosen, action = std::move(action)] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "ingot: %s (see ingot --help)\n", error.what());
    return ingot::exit_code(ErrorCode::invalid_argument);
  }
  const Result<int> code = chosen();
  if (code) return *code;
  std::fprintf(stderr, "ingot: %s\n", code.error().message.c_str());
  return ingot::exit_code(code.error().code);
}

}  // namespace

}  // namespace ingot::cli

int main(int argc, char** argv) {
  try {
    return ingot::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("ingot: out of memory\n", stderr);
    return ingot::exit_code(ingot::ErrorCode::out_of_memory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ingot: unexpected: %s\n", error.what());
    return ingot::exit_code(ingot::ErrorCode::internal);
  }
}
