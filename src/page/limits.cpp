// SPDX-License-Identifier: Apache-2.0
#include "page/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot::page {

namespace {

void shorten(std::string& text, std::size_t most = name_bytes) {
  if (text.size() > most) text = cut(text, most);
}
void shorten(std::optional<std::string>& text) {
  if (text) shorten(*text);
}
void shorten(std::vector<std::string>& texts, std::size_t most = name_bytes) {
  constexpr std::size_t most_texts = 64;
  if (texts.size() > most_texts) texts.resize(most_texts);
  for (std::string& text : texts) shorten(text, most);
}
void shorten(Region& region) {
  shorten(region.name);
  shorten(region.verdict_reason, text_bytes);
}
void shorten(KernelRow& row) {
  shorten(row.name);
  shorten(row.short_name);
  shorten(row.op);
  shorten(row.fused);
}
void shorten(ZeroLaunchOp& row) {
  shorten(row.name);
}
void shorten(MlpRow& row) {
  shorten(row.region);
  shorten(row.kernels);
}
void shorten(Finding& finding) {
  shorten(finding.title, text_bytes);
  shorten(finding.detail, text_bytes);
  shorten(finding.action, text_bytes);
}
void shorten(DiffRegion& region) {
  shorten(region.name);
}
void shorten(DiffCount& row) {
  shorten(row.name);
  shorten(row.short_name);
}
void shorten(DiffReplacement& row) {
  shorten(row.before);
  shorten(row.after);
}

/// The first rows, shortened. A row is copied before it is shortened: of a few names of megabytes that is
/// little.
template <class Row>
std::vector<Row> first_rows(const std::vector<Row>& rows, std::string_view what,
                            std::vector<std::string>& left_out) {
  std::vector<Row> out;
  const std::size_t kept = std::min(rows.size(), table_rows);
  out.reserve(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    out.push_back(rows[i]);
    shorten(out.back());
  }
  if (kept < rows.size()) {
    left_out.push_back(fmt::format("{} of {} {}: the table holds the first {}", rows.size() - kept,
                                   rows.size(), what, kept));
  }
  return out;
}

}  // namespace

std::string cut(std::string_view text, std::size_t most) {
  constexpr std::string_view ellipsis = "…";
  if (text.size() <= most) return std::string(text);
  std::size_t end = most > ellipsis.size() ? most - ellipsis.size() : 0;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  for (int back = 0; back < 3 && end > 0 && continues(end); ++back) --end;
  return std::string(text.substr(0, end)).append(ellipsis);
}

Explanation within_limits(const Explanation& e, std::vector<std::string>& left_out) {
  Explanation out;
  out.file = cut(e.file);
  out.bytes = e.bytes;
  out.events = e.events;
  out.skipped_events = e.skipped_events;
  out.first_skipped_offset = e.first_skipped_offset;
  out.warnings = e.warnings;
  shorten(out.warnings, text_bytes);
  out.device = e.device;
  shorten(out.device);
  out.card = e.card;
  out.span_us = e.span_us;
  out.summary = e.summary;
  out.regions = first_rows(e.regions, "regions", left_out);
  out.kernels = first_rows(e.kernels, "kernels", left_out);
  out.zero_launch_ops = first_rows(e.zero_launch_ops, "operators that launch nothing", left_out);
  out.mlps = first_rows(e.mlps, "MLPs", left_out);
  out.findings = first_rows(e.findings, "findings", left_out);
  out.expectation = e.expectation;
  return out;
}

Diff within_limits(const Diff& d, std::vector<std::string>& left_out) {
  Diff out;
  out.before_file = cut(d.before_file);
  out.after_file = cut(d.after_file);
  out.basis = cut(d.basis);
  out.regions = first_rows(d.regions, "regions", left_out);
  out.ops_gone = first_rows(d.ops_gone, "operators gone", left_out);
  out.ops_new = first_rows(d.ops_new, "new operators", left_out);
  out.kernels_identical = first_rows(d.kernels_identical, "identical kernels", left_out);
  out.kernels_gone = first_rows(d.kernels_gone, "kernels gone", left_out);
  out.kernels_new = first_rows(d.kernels_new, "new kernels", left_out);
  out.replacements = first_rows(d.replacements, "replacements", left_out);
  return out;
}

}  // namespace ingot::page
