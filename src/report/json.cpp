// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "ingot/report.h"

namespace ingot::report {

namespace {

using Json = nlohmann::ordered_json;

/// Three decimals are the resolution of the traces; more would be noise.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * 1000) / 1000;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_same_v<T, double>) {
    return rounded(*value);
  } else {
    return *value;
  }
}

std::string dump(const Json& document) {
  // Names come from files: text that is not UTF-8 is replaced, never thrown on.
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json region(const Region& r) {
  return {{"name", r.name},
          {"calls", r.calls},
          {"kernels_per_call", rounded(r.kernels_per_call)},
          {"cpu_us", rounded(r.cpu_us)},
          {"gpu_busy_us", rounded(r.gpu_busy_us)},
          {"gpu_span_us", rounded(r.gpu_span_us)},
          {"verdict", to_string(r.verdict)},
          {"memsets_per_call", rounded(r.memsets_per_call)},
          {"memcpys_per_call", rounded(r.memcpys_per_call)},
          {"launches_per_call", rounded(r.launches_per_call)},
          {"wait_launch_us", rounded(r.wait_launch_us)},
          {"wait_other_us", rounded(r.wait_other_us)},
          {"verdict_reason", r.verdict_reason}};
}

Json kernel(const KernelRow& k) {
  Json gemm = nullptr;
  if (k.gemm) gemm = {{"m", k.gemm->m}, {"n", k.gemm->n}, {"k", k.gemm->k}, {"batch", k.gemm->batch}};
  return {{"name", k.name},
          {"family", k.family.empty() ? Json(nullptr) : Json(k.family)},
          {"op", k.op.empty() ? Json(nullptr) : Json(k.op)},
          {"calls", k.calls},
          {"total_us", rounded(k.total_us)},
          {"median_us", rounded(k.median_us)},
          {"min_us", rounded(k.min_us)},
          {"max_us", rounded(k.max_us)},
          {"dtype", or_null(k.dtype)},
          {"tile", or_null(k.tile)},
          {"layout", or_null(k.layout)},
          {"stages", or_null(k.stages)},
          {"fused", k.fused},
          {"gemm", gemm},
          {"tflops", or_null(k.tflops)},
          {"bytes", or_null(k.bytes)},
          {"gb_s", or_null(k.gb_s)},
          {"peak_share", or_null(k.peak_share)},
          {"occupancy", or_null(k.occupancy)},
          {"short_name", k.short_name},
          {"kind", k.kind}};
}

Json mlp(const MlpRow& m) {
  return {{"activation", m.activation},
          {"gated", m.gated},
          {"bias", or_null(m.bias)},
          {"tokens", or_null(m.tokens)},
          {"dim", or_null(m.dim)},
          {"hidden", or_null(m.hidden)},
          {"dtype", or_null(m.dtype)},
          {"calls", m.calls},
          {"kernels_per_call", or_null(m.kernels_per_call)},
          {"gpu_us_per_call", or_null(m.gpu_us_per_call)},
          {"bytes_per_call", or_null(m.bytes_per_call)},
          {"fused_bytes_per_call", or_null(m.fused_bytes_per_call)},
          {"fused_us_estimate", or_null(m.fused_us_estimate)},
          {"evidence", m.evidence},
          {"region", or_null(m.region)},
          {"packed", or_null(m.packed)},
          {"calls_per_region_call", or_null(m.calls_per_region_call)},
          {"memsets_per_call", rounded(m.memsets_per_call)},
          {"memcpys_per_call", rounded(m.memcpys_per_call)},
          {"kernels", m.kernels}};
}

template <class T, class Row>
Json list(const std::vector<T>& values, Row row) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(row(value));
  return array;
}

Json count(const DiffCount& c) {
  return {{"name", c.name},
          {"short_name", c.short_name},
          {"before", rounded(c.before)},
          {"after", rounded(c.after)},
          {"before_us", rounded(c.before_us)},
          {"after_us", rounded(c.after_us)}};
}

}  // namespace

std::string json(const Explanation& e) {
  Json document;
  document["schema"] = "ingot.explain/1";
  Json card = nullptr;
  if (e.card) {
    card = {{"name", e.card->name},
            {"bf16_tflops", e.card->bf16_tflops},
            {"bandwidth_tb_s", e.card->bandwidth_tb_s},
            {"source", e.card->source}};
  }
  document["trace"] = {{"file", e.file},
                       {"bytes", e.bytes},
                       {"events", e.events},
                       {"skipped_events", e.skipped_events},
                       {"warnings", e.warnings},
                       {"device", or_null(e.device)},
                       {"span_us", rounded(e.span_us)},
                       {"first_skipped_offset", or_null(e.first_skipped_offset)},
                       {"card", card}};
  document["summary"] = {{"gpu_busy_us", rounded(e.summary.gpu_busy_us)},
                         {"gpu_idle_us", rounded(e.summary.gpu_idle_us)},
                         {"kernels", e.summary.kernels},
                         {"launches", e.summary.launches},
                         {"verdict", to_string(e.summary.verdict)},
                         {"memcpys", e.summary.memcpys},
                         {"memsets", e.summary.memsets},
                         {"gpu_span_us", rounded(e.summary.span_us)},
                         {"verdict_reason", e.summary.verdict_reason}};
  document["regions"] = list(e.regions, region);
  document["kernels"] = list(e.kernels, kernel);
  document["zero_launch_ops"] = list(e.zero_launch_ops, [](const ZeroLaunchOp& op) -> Json {
    return {{"name", op.name},
            {"calls", op.calls},
            {"cpu_us", rounded(op.cpu_us)},
            {"cpu_share", rounded(op.cpu_share)}};
  });
  document["mlps"] = list(e.mlps, mlp);
  document["findings"] = list(e.findings, [](const Finding& f) -> Json {
    return {{"id", f.id},
            {"title", f.title},
            {"detail", f.detail},
            {"saving_us", or_null(f.saving_us)},
            {"action", f.action}};
  });
  if (e.expectation) {
    document["expectation"] = {
        {"text", e.expectation->text},
        {"region", e.expectation->region},
        {"met", e.expectation->met},
        {"items", list(e.expectation->items, [](const Expectation::Item& i) -> Json {
           return {{"what", i.what}, {"expected", rounded(i.expected)}, {"found", rounded(i.found)}};
         })}};
  }
  return dump(document);
}

std::string json(const Diff& d) {
  Json document;
  document["schema"] = "ingot.diff/1";
  document["before"] = d.before_file;
  document["after"] = d.after_file;
  document["basis"] = d.basis;
  document["regions"] = list(d.regions, [](const DiffRegion& r) -> Json {
    const auto pair = [](Json before, Json after) -> Json {
      return {{"before", std::move(before)}, {"after", std::move(after)}};
    };
    return {{"name", r.name},
            {"calls", pair(r.calls_before, r.calls_after)},
            {"launches_per_call", pair(rounded(r.launches_before), rounded(r.launches_after))},
            {"kernels_per_call", pair(rounded(r.kernels_before), rounded(r.kernels_after))},
            {"cpu_us", pair(rounded(r.cpu_us_before), rounded(r.cpu_us_after))},
            {"gpu_busy_us", pair(rounded(r.gpu_busy_us_before), rounded(r.gpu_busy_us_after))}};
  });
  document["ops_gone"] = list(d.ops_gone, count);
  document["ops_new"] = list(d.ops_new, count);
  document["kernels_identical"] = list(d.kernels_identical, count);
  document["kernels_gone"] = list(d.kernels_gone, count);
  document["kernels_new"] = list(d.kernels_new, count);
  document["replacements"] = list(d.replacements, [](const DiffReplacement& r) -> Json {
    return {{"what", r.what}, {"before", r.before}, {"after", r.after}};
  });
  return dump(document);
}

}  // namespace ingot::report
