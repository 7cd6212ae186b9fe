// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "trace/context.h"
#include "trace/roles.h"

namespace ingot::trace {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Words that mean the same kind of kernel.
std::string canonical(std::string_view word) {
  for (const std::string_view same : {"gemm", "matmul", "mm", "addmm", "linears", "gemms"}) {
    if (word == same) return "linear";
  }
  return std::string(word);
}

struct Stated {
  std::string region;
  std::vector<Expectation::Item> items;
};

Error bad(std::string_view part) {
  return {ErrorCode::invalid_argument,
          fmt::format("cannot read \"{}\" in --expect: write COUNT NAME, separated by commas, such as "
                      "\"3 linear, 1 gelu_tanh, 1 mul\", optionally after \"REGION:\"",
                      part)};
}

Result<Stated> parse(std::string_view text) {
  Stated stated;
  if (const auto colon = text.rfind(':'); colon != std::string_view::npos) {
    stated.region = trimmed(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  while (true) {
    const auto comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    const auto space = part.find_first_of(" \t");
    double count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    const bool whole_number =
        error == std::errc() && end == part.data() + (space == std::string_view::npos ? part.size() : space);
    if (!whole_number || space == std::string_view::npos || !(count >= 0) || !std::isfinite(count))
      return bad(part);
    const std::string_view name = trimmed(part.substr(space));
    if (name.empty() || name.find_first_of(" \t") != std::string_view::npos) return bad(part);
    const std::string what = canonical(name);
    for (const Expectation::Item& item : stated.items) {
      if (item.what == what) return bad(part);
    }
    stated.items.push_back({.what = what, .expected = count, .found = 0});
    if (comma == std::string_view::npos) return stated;
    text.remove_prefix(comma + 1);
  }
}

/// What a person would call a piece of device work: linear, gelu_tanh, mul, layer_norm, gelu+mul, memset …
std::string label(Context& context, std::uint32_t activity) {
  const auto& gpu = context.trace.gpu;
  if (gpu.kind[activity] == ActivityKind::memset) return "memset";
  if (gpu.kind[activity] == ActivityKind::memcpy) return "memcpy";
  const KernelGroup& group = context.groups[context.group_of[activity]];
  const KernelName& name = context.names.of(group.name);
  if (name.kind == KernelKind::gemm_helper) return "splitk_reduce";
  if (name.kind == KernelKind::gemm || group.gemm) return "linear";
  if (name.kind == KernelKind::attention) return "attention";
  if (name.fused.size() > 1) return fmt::format("{}", fmt::join(name.fused, "+"));
  std::string activation = activation_of(name, context.trace.strings[group.name]);
  if (!activation.empty()) return activation;
  std::string_view op = context.op_name(group.op);
  if (op.starts_with("aten::")) {
    op.remove_prefix(6);
    if (op.starts_with("native_")) op.remove_prefix(7);
    if (op.ends_with("_")) op.remove_suffix(1);
    return std::string(op);
  }
  if (name.fused.size() == 1) return name.fused.front();
  return name.kind == KernelKind::unknown ? name.short_name : std::string(to_string(name.kind));
}

bool matches(std::string_view expected, std::string_view found) {
  return expected == found || (expected == "gelu" && found.starts_with("gelu_"));
}

}  // namespace

Result<Expectation> check_expectation(Context& context, const std::string& text,
                                      const std::vector<Region>& regions) {
  Result<Stated> parsed = parse(text);
  if (!parsed) return parsed.error();
  Expectation expectation;
  expectation.text = text;
  expectation.items = std::move(parsed->items);

  const Region* region = nullptr;
  for (const Region& candidate : regions) {
    const bool wanted =
        parsed->region.empty() ? candidate.name == "ProfilerStep" : candidate.name == parsed->region;
    if (wanted) region = &candidate;
  }
  if (region == nullptr && !parsed->region.empty()) {
    std::vector<std::string> names;
    names.reserve(regions.size());
    for (const Region& candidate : regions) names.push_back(candidate.name);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("--expect names the region \"{}\", the trace has: {}", parsed->region,
                             fmt::join(names, ", "))};
  }
  if (region == nullptr) region = &regions.front();
  expectation.region = region->name;

  const bool whole =
      context.trace.annotations.size() == 0 || (regions.size() == 1 && region->name == "trace");
  std::map<std::string, std::uint64_t> found;
  for (const std::uint32_t activity : context.links.by_start) {
    bool inside = whole;
    for (std::uint32_t row = context.links.activity_annotation[activity]; row != none && !inside;
         row = context.links.annotations.parent[row]) {
      inside = region_name(context.trace.strings[context.trace.annotations.name[row]]) == region->name;
    }
    if (inside) ++found[label(context, activity)];
  }

  const auto calls = static_cast<double>(region->calls);
  for (const auto& [what, count] : found) {
    const double per_call = static_cast<double>(count) / calls;
    bool stated = false;
    for (Expectation::Item& item : expectation.items) {
      if (!stated && matches(item.what, what)) {
        item.found += per_call;
        stated = true;
      }
    }
    // Kernels not stated are a difference; memory operations count only where they are stated.
    if (!stated && what != "memset" && what != "memcpy") {
      expectation.items.push_back({.what = what, .expected = 0, .found = per_call});
    }
  }
  expectation.met =
      std::all_of(expectation.items.begin(), expectation.items.end(),
                  [](const Expectation::Item& item) { return std::abs(item.expected - item.found) < 1e-9; });
  return expectation;
}

}  // namespace ingot::trace
