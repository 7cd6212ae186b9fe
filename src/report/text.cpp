// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.h"
#include "base/units.h"
#include "ingot/report.h"

namespace ingot::report {

namespace {

using Align = TextTable::Align;

class Writer {
 public:
  explicit Writer(const TextOptions& options) : options_(options) {}

  void heading(std::string_view title, std::string_view remark = "") {
    out_ += fmt::format("\n{}", paint(title, "1"));
    if (!remark.empty()) out_ += fmt::format("  {}", paint(remark, "2"));
    out_ += "\n";
  }
  void line(std::string_view text) { out_ += fmt::format("{}\n", text); }
  void table(const TextTable& table) { out_ += table.render(options_.width); }
  /// Paragraph cut at word boundaries to the width.
  void wrapped(std::string_view text, std::size_t indent) {
    const std::size_t room =
        std::max<std::size_t>(40, static_cast<std::size_t>(std::max(options_.width, 0))) - indent;
    std::string current;
    while (!text.empty()) {
      const auto space = text.find(' ');
      const std::string_view word = text.substr(0, space);
      if (!current.empty() && display_width(current) + 1 + display_width(word) > room) {
        out_ += fmt::format("{}{}\n", std::string(indent, ' '), current);
        current.clear();
      }
      if (!current.empty()) current += ' ';
      current += word;
      text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    }
    if (!current.empty()) out_ += fmt::format("{}{}\n", std::string(indent, ' '), current);
  }
  std::string paint(std::string_view text, std::string_view code) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  /// How many rows of `count` to show, at most `most` unless all are wanted.
  std::size_t rows(std::size_t count, std::size_t most) const {
    return options_.all ? count : std::min(count, most);
  }
  void left_out(std::size_t count, std::size_t shown) {
    if (count > shown) out_ += fmt::format("  … and {} more (--all shows them)\n", count - shown);
  }
  std::string take() { return std::move(out_); }

 private:
  const TextOptions& options_;
  std::string out_;
};

std::string us(double value) {
  if (value >= 99999.95) return fmt::format("{:.1f} ms", value / 1000);
  return fmt::format("{:.1f}", value);
}
std::string per_call(double value) {
  return std::abs(value - std::round(value)) < 1e-9 ? fmt::format("{:.0f}", value)
                                                    : fmt::format("{:.1f}", value);
}
template <class T>
std::string or_dash(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}
std::string megabytes(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{:.1f}", static_cast<double>(*bytes) * 1e-6) : "-";
}
std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string_view verdict_color(Verdict verdict) {
  switch (verdict) {
    case Verdict::overhead_bound:
    case Verdict::idle:
      return "31";
    case Verdict::memory_bound:
      return "33";
    case Verdict::compute_bound:
      return "32";
    case Verdict::unknown:
      break;
  }
  return "0";
}

void write_head(Writer& w, const Explanation& e) {
  w.line(fmt::format("{}: {} events, {:.1f} MB, {}, {}", w.paint(e.file, "1"), e.events,
                     static_cast<double>(e.bytes) * 1e-6, e.device.value_or("no device named"),
                     duration_text(e.span_us)));
  for (const std::string& warning : e.warnings)
    w.line(fmt::format("{} {}", w.paint("warning:", "33"), warning));
  w.line(fmt::format("{}: {}", w.paint(to_string(e.summary.verdict), verdict_color(e.summary.verdict)),
                     e.summary.verdict_reason));
  w.line(fmt::format("{} kernels, {} memsets, {} memcpys by {} launches; GPU busy {}, idle {}",
                     e.summary.kernels, e.summary.memsets, e.summary.memcpys, e.summary.launches,
                     duration_text(e.summary.gpu_busy_us), duration_text(e.summary.gpu_idle_us)));
}

void write_regions(Writer& w, const Explanation& e) {
  w.heading("Regions", "us per call, median");
  TextTable table({{"region", Align::left},
                   {"calls"},
                   {"kernels"},
                   {"launches"},
                   {"CPU"},
                   {"GPU busy"},
                   {"GPU span"},
                   {"waits for launch"},
                   {"other idle"},
                   {"verdict", Align::left}});
  const std::size_t shown = w.rows(e.regions.size(), 12);
  for (std::size_t i = 0; i < shown; ++i) {
    const Region& r = e.regions[i];
    table.add({r.name, fmt::format("{}", r.calls), per_call(r.kernels_per_call),
               per_call(r.launches_per_call), us(r.cpu_us), us(r.gpu_busy_us), us(r.gpu_span_us),
               us(r.wait_launch_us), us(r.wait_other_us), std::string(to_string(r.verdict))});
  }
  w.table(table);
  w.left_out(e.regions.size(), shown);
}

void write_mlps(Writer& w, const Explanation& e) {
  if (e.mlps.empty()) return;
  w.heading("MLPs",
            "per call: GPU time now and a roofline estimate when fused, memory traffic now and when fused");
  TextTable table({{"tokens"},
                   {"dim → hidden"},
                   {"activation", Align::left},
                   {"bias"},
                   {"type"},
                   {"calls"},
                   {"kernels"},
                   {"us now"},
                   {"fused"},
                   {"MB now"},
                   {"fused"},
                   {"by", Align::left},
                   {"region", Align::left}});
  for (const MlpRow& m : e.mlps) {
    std::string form = m.activation;
    if (m.gated) form += m.packed.value_or(false) ? ", gated (packed)" : ", gated";
    std::string kernels = m.kernels_per_call ? per_call(*m.kernels_per_call) : "-";
    if (m.memsets_per_call + m.memcpys_per_call > 0)
      kernels += fmt::format("+{}", per_call(m.memsets_per_call + m.memcpys_per_call));
    const std::string widths = m.dim && m.hidden ? fmt::format("{} → {}", *m.dim, *m.hidden) : "-";
    table.add({or_dash(m.tokens), widths, form, m.bias ? (*m.bias ? "yes" : "no") : "-",
               m.dtype.value_or("-"), fmt::format("{}", m.calls), kernels,
               m.gpu_us_per_call ? us(*m.gpu_us_per_call) : "-",
               m.fused_us_estimate ? us(*m.fused_us_estimate) : "-", megabytes(m.bytes_per_call),
               megabytes(m.fused_bytes_per_call), m.evidence, m.region.value_or("-")});
  }
  w.table(table);
}

void write_findings(Writer& w, const Explanation& e) {
  w.heading("Findings",
            e.findings.empty() ? "none" : "worst first; savings are estimates over the whole trace");
  int number = 0;
  for (const Finding& f : e.findings) {
    const std::string saving = f.saving_us ? fmt::format("  (up to {})", duration_text(*f.saving_us)) : "";
    w.line(fmt::format("  {}. {}{}", ++number, w.paint(f.title, "1"), saving));
    w.wrapped(f.detail, 5);
    w.wrapped(fmt::format("→ {}", f.action), 5);
  }
}

void write_kernels(Writer& w, const Explanation& e) {
  if (e.kernels.empty()) return;
  w.heading("Kernels", "by total time; us");
  TextTable table({{"kernel", Align::left},
                   {"operator", Align::left},
                   {"calls"},
                   {"total"},
                   {"min"},
                   {"median"},
                   {"max"},
                   {"m·n·k"},
                   {"TFLOP/s"},
                   {"of peak"},
                   {"GB/s"}});
  const std::size_t shown = w.rows(e.kernels.size(), 15);
  for (std::size_t i = 0; i < shown; ++i) {
    const KernelRow& k = e.kernels[i];
    std::string size = "-";
    if (k.gemm) {
      size = fmt::format("{}·{}·{}", k.gemm->m, k.gemm->n, k.gemm->k);
      if (k.gemm->batch > 1) size = fmt::format("{}×{}", k.gemm->batch, size);
    }
    table.add({k.short_name, k.op.empty() ? "-" : k.op, fmt::format("{}", k.calls), us(k.total_us),
               us(k.min_us), us(k.median_us), us(k.max_us), size,
               k.tflops ? fmt::format("{:.1f}", *k.tflops) : "-", k.peak_share ? percent(*k.peak_share) : "-",
               k.gb_s ? fmt::format("{:.0f}", *k.gb_s) : "-"});
  }
  w.table(table);
  w.left_out(e.kernels.size(), shown);
  if (e.card)
    w.line(fmt::format("  peak: {} dense bf16 {:.0f} TFLOP/s, {:.2f} TB/s ({})", e.card->name,
                       e.card->bf16_tflops, e.card->bandwidth_tb_s, e.card->source));
}

void write_zero_launch(Writer& w, const Explanation& e) {
  if (e.zero_launch_ops.empty()) return;
  w.heading("Operators that launch nothing", "their own CPU time");
  TextTable table({{"operator", Align::left}, {"calls"}, {"us"}, {"of CPU time"}});
  const std::size_t shown = w.rows(e.zero_launch_ops.size(), 6);
  for (std::size_t i = 0; i < shown; ++i) {
    const ZeroLaunchOp& op = e.zero_launch_ops[i];
    table.add(
        {op.name, fmt::format("{}", op.calls), us(op.cpu_us), fmt::format("{:.1f} %", 100 * op.cpu_share)});
  }
  w.table(table);
  w.left_out(e.zero_launch_ops.size(), shown);
}

void write_expectation(Writer& w, const Expectation& x) {
  w.heading("Expectation", fmt::format("kernels per call of {}", x.region));
  TextTable table({{"kernel", Align::left}, {"expected"}, {"found"}, {"", Align::left}});
  for (const Expectation::Item& item : x.items) {
    const double difference = item.found - item.expected;
    table.add({item.what, per_call(item.expected), per_call(item.found),
               std::abs(difference) < 1e-9
                   ? "as expected"
                   : fmt::format("{}{}", difference > 0 ? "+" : "", per_call(difference))});
  }
  w.table(table);
  w.line(x.met ? w.paint("  met", "32") : w.paint("  not met", "31"));
}

void write_counts(Writer& w, std::string_view title, std::string_view what,
                  const std::vector<DiffCount>& counts, bool kernels) {
  if (counts.empty()) return;
  w.heading(title, what);
  TextTable table({{kernels ? "kernel" : "operator", Align::left},
                   {"count before"},
                   {"after"},
                   {"us before"},
                   {"after"}});
  const std::size_t shown = w.rows(counts.size(), 12);
  for (std::size_t i = 0; i < shown; ++i) {
    const DiffCount& c = counts[i];
    table.add({c.name.size() > 60 ? c.short_name : c.name, per_call(c.before), per_call(c.after),
               us(c.before_us), us(c.after_us)});
  }
  w.table(table);
  w.left_out(counts.size(), shown);
}

}  // namespace

std::string text(const Explanation& e, const TextOptions& options) {
  Writer w(options);
  write_head(w, e);
  if (e.expectation) write_expectation(w, *e.expectation);
  write_regions(w, e);
  write_mlps(w, e);
  write_findings(w, e);
  write_kernels(w, e);
  write_zero_launch(w, e);
  return w.take();
}

std::string text(const Diff& d, const TextOptions& options) {
  Writer w(options);
  w.line(fmt::format("before {}", w.paint(d.before_file, "1")));
  w.line(fmt::format("after  {}", w.paint(d.after_file, "1")));
  const std::string unit =
      d.basis == "trace" ? "whole trace (no region in common)" : fmt::format("per call of {}", d.basis);
  if (!d.regions.empty()) {
    w.heading("Regions", "per call; us median");
    TextTable table({{"region", Align::left},
                     {"launches before"},
                     {"after"},
                     {"kernels before"},
                     {"after"},
                     {"CPU us before"},
                     {"after"},
                     {"GPU us before"},
                     {"after"}});
    for (const DiffRegion& r : d.regions) {
      table.add({r.name, per_call(r.launches_before), per_call(r.launches_after), per_call(r.kernels_before),
                 per_call(r.kernels_after), us(r.cpu_us_before), us(r.cpu_us_after), us(r.gpu_busy_us_before),
                 us(r.gpu_busy_us_after)});
    }
    w.table(table);
  }
  if (!d.replacements.empty()) {
    w.heading("Fused and replaced");
    for (const DiffReplacement& r : d.replacements) {
      w.wrapped(fmt::format("{}: {} → {}", r.what, fmt::join(r.before, " + "), fmt::join(r.after, " + ")), 2);
    }
  }
  write_counts(w, "Kernels byte-for-byte the same", unit, d.kernels_identical, true);
  write_counts(w, "Kernels gone", unit, d.kernels_gone, true);
  write_counts(w, "Kernels new", unit, d.kernels_new, true);
  write_counts(w, "Operators gone", unit, d.ops_gone, false);
  write_counts(w, "Operators new", unit, d.ops_new, false);
  if (d.kernels_gone.empty() && d.kernels_new.empty() && d.ops_gone.empty() && d.ops_new.empty()) {
    w.line("\nno operator or kernel came or went");
  }
  return w.take();
}

}  // namespace ingot::report
