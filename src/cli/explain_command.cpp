// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <memory>

#include "base/publish.h"
#include "cli/command.h"
#include "ingot/explain.h"
#include "ingot/page.h"
#include "ingot/report.h"

namespace ingot::cli {

namespace {

struct Options {
  std::string trace;
  std::string html, perfetto;
  bool json = false;
  bool all = false;
  ExplainOptions explain;
};

/// With a timeline of its own, which holds all events: such a file has no limit.
Result<void> write_perfetto(const std::string& file, const trace::Trace& trace) {
  const auto whole =
      explain(trace, {.timeline = true, .timeline_events = std::numeric_limits<std::size_t>::max()});
  if (!whole) return whole.error();
  return base::publish(file, report::perfetto(trace, *whole));
}

Result<int> run(Options options) {
  options.explain.timeline = !options.html.empty();
  Result<trace::Trace> trace = trace::read_file(options.trace);
  if (!trace) return trace.error();
  Result<Explanation> explanation = explain(*trace, options.explain);
  if (!explanation) return explanation.error();
  if (!options.perfetto.empty()) {
    if (Result<void> written = write_perfetto(options.perfetto, *trace); !written) return written.error();
  }
  if (!options.html.empty()) {
    if (Result<void> written = base::publish(options.html, page::html(*explanation)); !written)
      return written.error();
  }
  const std::string document =
      options.json ? report::json(*explanation)
                   : report::text(*explanation,
                                  {.color = color_output(), .width = output_width(), .all = options.all});
  if (Result<void> printed = print(document); !printed) return printed.error();
  const bool failed = explanation->expectation && !explanation->expectation->met;
  return failed ? exit_code(ErrorCode::check_failed) : 0;
}

std::function<Result<int>()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TRACE", options->trace, "profiler trace: .json, .json.gz, or - for standard input")
      ->required();
  app.add_flag("--json", options->json, "print one JSON document (schema ingot.explain/1)");
  app.add_flag("--all", options->all, "print every row of every table");
  app.add_option("--html", options->html, "write a page with the timeline and all tables to this file");
  app.add_option(
      "--perfetto", options->perfetto,
      "write the trace for Perfetto to this file, with the MLPs, idle time and findings as tracks");
  app.add_option(
      "--expect", options->explain.expect,
      "kernels you expect per call of a region, such as \"3 linear, 1 gelu_tanh, 1 mul\" or \"REGION: …\"; "
      "exit code 5 when not met");
  return [options] { return run(*options); };
}

}  // namespace

const Command explain_command = {
    "explain", "report on a profiler trace: what was launched, what is waste, which kernels are one MLP",
    setup};

}  // namespace ingot::cli
