// SPDX-License-Identifier: Apache-2.0
//
// What the steps of an explanation share: the trace, its links, and what was derived from them so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/explain.h"
#include "ingot/trace.h"
#include "trace/link.h"
#include "trace/signature.h"
#include "trace/stages.h"

namespace ingot::trace {

/// All launches of one kernel (or memcpy, memset) name under one operator signature.
struct KernelGroup {
  StringId name = 0;
  std::uint32_t op = none;  ///< the operator of its first launch
  ActivityKind kind = ActivityKind::kernel;
  std::vector<std::uint32_t> launches;  ///< activities, by start
  std::optional<MatmulShape> gemm;
  std::optional<std::uint64_t> bytes;   ///< per launch
  std::optional<double> compute_share;  ///< share of the time its arithmetic would take at the card's peak
  std::optional<double> memory_share;   ///< share of the time its bytes would take at the card's bandwidth
  bool compute_heavy = false;           ///< matrix products, attention, convolutions

  double flops() const {
    return gemm ? 2.0 * static_cast<double>(gemm->m) * static_cast<double>(gemm->n) *
                      static_cast<double>(gemm->k) * static_cast<double>(gemm->batch)
                : 0;
  }
};

/// One execution of one MLP, as a row of the explanation counts it.
struct FoundMlp {
  std::uint32_t row = 0;  ///< index into the rows of mlp_rows
  std::vector<std::uint32_t> activities;
};

struct Context {
  const Trace& trace;
  Links links;
  Signatures signatures;
  KernelNames names;
  const Card* card = nullptr;
  std::vector<KernelGroup> groups;
  std::vector<std::uint32_t> group_of;  ///< activity → group
  std::vector<std::uint32_t> row_of;    ///< group → row of kernel_rows, which fills it
  std::vector<FoundMlp> mlps;           ///< filled by mlp_rows

  explicit Context(const Trace& t) : trace(t), links(link(t)), signatures(t), names(t) {}

  double us(std::int64_t ns) const { return static_cast<double>(ns) / 1000.0; }
  double duration_us(std::uint32_t activity) const { return us(trace.gpu.dur_ns[activity]); }
  std::string_view op_name(std::uint32_t op) const {
    return op == none ? "" : trace.strings[trace.ops.name[op]];
  }
};

/// Median of values, in any order; 0 of none. The mean of the middle two where their number is even.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
         2;
}

/// Rate of a card for operands of a type, in FLOP/s; 0 where the table has none. f32 means tensor cores
/// (tf32) only where the kernel's name says so.
double peak_flops(const Card& card, std::string_view dtype);

/// Fills context.groups and group_of.
void group_kernels(Context& context);
std::vector<KernelRow> kernel_rows(Context& context);

/// Why the device idled before an activity, when it had nothing to do since `free_since_ns`.
struct Wait {
  std::int64_t launch_ns = 0;  ///< first it waited for the launch
  std::int64_t other_ns =
      0;  ///< then for something else: another stream, work the trace does not hold, the hand-over
};
Wait wait_before(const Context& context, std::uint32_t activity, std::int64_t free_since_ns);

/// Name of the region an annotation belongs to: all profiler steps are one; a compiled graph's own annotation
/// is none.
std::string_view region_name(std::string_view annotation);
std::vector<Region> find_regions(const Context& context);
/// The innermost annotation around an activity that stands for a region, or `none`.
std::uint32_t region_annotation(const Context& context, std::uint32_t activity);
Summary summarize(const Context& context);

std::vector<ZeroLaunchOp> zero_launch_ops(const Context& context, const std::vector<Region>& regions);

std::vector<MlpRow> mlp_rows(Context& context, const std::vector<Region>& regions);

std::vector<Finding> find_findings(Context& context, const Explanation& explanation);

Result<Expectation> check_expectation(Context& context, const std::string& text,
                                      const std::vector<Region>& regions);

}  // namespace ingot::trace
