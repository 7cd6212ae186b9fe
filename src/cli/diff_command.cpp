// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/publish.h"
#include "cli/command.h"
#include "ingot/diff.h"
#include "ingot/page.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

struct Options {
  std::string before, after;
  std::string html;
  bool json = false;
  bool all = false;
};

Result<void> write_page(const std::string& file, const Diff& changes, const trace::Trace& before,
                        const trace::Trace& after) {
  const auto first = explain(before, {.timeline = true});
  if (!first) return first.error();
  const auto second = explain(after, {.timeline = true});
  if (!second) return second.error();
  return base::publish(file, page::html(changes, *first, *second));
}

Result<int> run(const Options& options) {
  if (options.before == "-" && options.after == "-") {
    return Error{ErrorCode::invalid_argument, "only one of BEFORE and AFTER can be standard input"};
  }
  Result<trace::Trace> before = trace::read_file(options.before);
  if (!before) return before.error();
  Result<trace::Trace> after = trace::read_file(options.after);
  if (!after) return after.error();
  const Result<Diff> changes = diff(*before, *after);
  if (!changes) return changes.error();
  if (!options.html.empty()) {
    if (Result<void> written = write_page(options.html, *changes, *before, *after); !written)
      return written.error();
  }
  const std::string document =
      options.json
          ? report::json(*changes)
          : report::text(*changes, {.color = color_output(), .width = output_width(), .all = options.all});
  if (Result<void> printed = print(document); !printed) return printed.error();
  return 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BEFORE", options->before, "trace before the change")->required();
  app.add_option("AFTER", options->after, "trace after it")->required();
  app.add_option("--html", options->html, "write a page with both timelines on one axis to this file");
  app.add_flag("--json", options->json, "print one JSON document (schema ingot.diff/1)");
  app.add_flag("--all", options->all, "print every row of every table");
  return [options] { return run(*options); };
}

}  // namespace

const Command diff_command = {
    "diff", "what changed between two traces: operators gone, kernels the same, fused or replaced", setup};

}  // namespace ingot::cli
