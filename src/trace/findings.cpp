// SPDX-License-Identifier: Apache-2.0
//
// What an engineer should look at, each with its evidence and what to do. One function a finding, registered
// in `rules` at the end.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "base/units.h"
#include "trace/context.h"
#include "trace/roles.h"

namespace ingot::trace {

namespace {

struct Inputs {
  Context& context;
  const Explanation& explanation;
};
/// A finding and what it weighs: its saving where there is an estimate, else the time it concerns.
struct Weighed {
  Finding finding;
  double weight_us = 0;
};
class Findings {
 public:
  void push_back(Finding finding, double weight_us = 0) {
    const double weight = finding.saving_us.value_or(weight_us);
    all_.push_back({std::move(finding), weight});
  }
  std::vector<Finding> worst_first() && {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Weighed& a, const Weighed& b) { return a.weight_us > b.weight_us; });
    std::vector<Finding> findings;
    for (Weighed& weighed : all_) findings.push_back(std::move(weighed.finding));
    return findings;
  }

 private:
  std::vector<Weighed> all_;
};

std::string plural(std::uint64_t count, std::string_view word) {
  if (count == 1) return fmt::format("1 {}", word);
  if (word.ends_with("y")) return fmt::format("{} {}ies", count, word.substr(0, word.size() - 1));
  return fmt::format("{} {}{}", count, word, word.ends_with("ch") ? "es" : "s");
}

/// "8192x768->3072 gelu_tanh gated bf16", leaving out what is not known.
std::string describe(const MlpRow& mlp) {
  std::string text;
  if (mlp.tokens && mlp.dim && mlp.hidden)
    text += fmt::format("{}x{}->{} ", *mlp.tokens, *mlp.dim, *mlp.hidden);
  text += mlp.activation;
  if (mlp.gated) text += mlp.packed.value_or(false) ? " gated (packed)" : " gated";
  if (mlp.dtype) text += " " + *mlp.dtype;
  return text;
}

/// How to measure it: a command that can be pasted, or what is missing for one.
std::string bench_command(const MlpRow& mlp) {
  if (!mlp.tokens || !mlp.dim || !mlp.hidden || !mlp.bias) {
    return "record with record_shapes=True (and without a CUDA graph) to size it, then: ingot bench "
           "--from-trace FILE";
  }
  const bool form_unknown = mlp.activation == "gelu";
  return fmt::format("ingot bench --tokens {} --dim {} --hidden {} --act {}{}{}{}{}", *mlp.tokens, *mlp.dim,
                     *mlp.hidden, form_unknown ? "gelu_tanh" : mlp.activation, mlp.gated ? " --gated" : "",
                     *mlp.bias ? "" : " --no-bias", mlp.dtype ? " --dtype " + *mlp.dtype : "",
                     form_unknown ? " (or --act gelu_erf: the trace does not say which form)" : "");
}

void overhead_bound(const Inputs& in, Findings& out) {
  const Region* worst = nullptr;
  for (const Region& region : in.explanation.regions) {
    if (region.verdict != Verdict::overhead_bound) continue;
    const auto lost = [](const Region& r) { return r.wait_launch_us * static_cast<double>(r.calls); };
    if (worst == nullptr || lost(region) > lost(*worst)) worst = &region;
  }
  if (worst == nullptr) return;
  out.push_back(
      {.id = "overhead-bound",
       .title = fmt::format("{} is bound by launch overhead, not by the GPU", worst->name),
       .detail = fmt::format(
           "per call {} on the CPU for {} of GPU work in {:.0f} kernels; the GPU waits {} for launches",
           duration_text(worst->cpu_us), duration_text(worst->gpu_busy_us), worst->kernels_per_call,
           duration_text(worst->wait_launch_us)),
       .saving_us = worst->wait_launch_us * static_cast<double>(worst->calls),
       .action = "capture the step in a CUDA graph (torch.compile mode=\"reduce-overhead\"), and fuse: fewer "
                 "launches"});
}

void unfused_mlps(const Inputs& in, Findings& out) {
  for (const MlpRow& mlp : in.explanation.mlps) {
    if (mlp.kernels_per_call.value_or(0) < 2 || !mlp.gpu_us_per_call) continue;
    const auto calls = static_cast<double>(mlp.calls);
    std::optional<double> saving;
    std::string estimate;
    if (mlp.fused_us_estimate) {
      saving = std::max(0.0, *mlp.gpu_us_per_call - *mlp.fused_us_estimate) * calls;
      estimate = fmt::format(", about {} fused", duration_text(*mlp.fused_us_estimate));
    }
    if (mlp.bytes_per_call && mlp.fused_bytes_per_call) {
      estimate +=
          fmt::format("; {:.1f} MB moved, {:.1f} MB needed", static_cast<double>(*mlp.bytes_per_call) * 1e-6,
                      static_cast<double>(*mlp.fused_bytes_per_call) * 1e-6);
    }
    out.push_back({.id = "unfused-mlp",
                   .title = fmt::format("{} kernels run one MLP: {}", std::llround(*mlp.kernels_per_call),
                                        describe(mlp)),
                   .detail = fmt::format("{}, {} of GPU time each{}", plural(mlp.calls, "call"),
                                         duration_text(*mlp.gpu_us_per_call), estimate),
                   .saving_us = saving,
                   .action = bench_command(mlp)},
                  *mlp.gpu_us_per_call * calls);
  }
}

void cold_first_step(const Inputs& in, Findings& out) {
  constexpr double times_slower = 2;
  const auto& annotations = in.context.trace.annotations;
  std::map<std::string_view, std::vector<std::uint32_t>> rows;
  for (const std::uint32_t row : in.context.links.annotations.order) {
    const std::string_view name = region_name(in.context.trace.strings[annotations.name[row]]);
    // Only the outermost: a step and what it contains are slow together.
    if (!name.empty() && in.context.links.annotations.parent[row] == none) rows[name].push_back(row);
  }
  for (auto& [name, of_name] : rows) {
    if (of_name.size() < 3) continue;
    std::sort(of_name.begin(), of_name.end(),
              [&](std::uint32_t a, std::uint32_t b) { return annotations.ts_ns[a] < annotations.ts_ns[b]; });
    std::vector<double> rest;
    for (std::size_t i = 1; i < of_name.size(); ++i)
      rest.push_back(in.context.us(annotations.dur_ns[of_name[i]]));
    const double first = in.context.us(annotations.dur_ns[of_name.front()]);
    const double usual = median(std::move(rest));
    if (usual <= 0 || first < times_slower * usual) continue;
    out.push_back({.id = "cold-first-step",
                   .title = fmt::format("the first {} is cold", name),
                   .detail = fmt::format("{} against a median of {} for the {} after it",
                                         duration_text(first), duration_text(usual), of_name.size() - 1),
                   .saving_us = first - usual,
                   .action = "leave it out of any average; warm up before profiling, or move the warm-up off "
                             "the first request"});
  }
}

void metadata_operators(const Inputs& in, Findings& out) {
  double cpu_us = 0;
  double share = 0;
  std::uint64_t calls = 0;
  std::string names;
  for (const ZeroLaunchOp& op : in.explanation.zero_launch_ops) {
    if (calls == 0) names = op.name;
    cpu_us += op.cpu_us;
    share += op.cpu_share;
    calls += op.calls;
  }
  constexpr double worth_saying = 0.05;
  if (share < worth_saying) return;
  const bool counts = in.explanation.summary.verdict == Verdict::overhead_bound;
  out.push_back(
      {.id = "metadata-operators",
       .title = fmt::format("{:.0f} % of the CPU time goes to operators that launch nothing", 100 * share),
       .detail = fmt::format("{}, {} in all, most in {}{}", plural(calls, "call"), duration_text(cpu_us),
                             names, counts ? "" : "; the GPU hides it here"),
       .saving_us = counts ? std::optional(cpu_us) : std::nullopt,
       .action = "compile or fuse the region: views and transposes vanish, their CPU cost with them"});
}

/// Sums device work that matches, by a predicate over the activity; nothing where none does.
template <class Matches>
void summed(const Inputs& in, Findings& out, Finding finding, std::string_view what, Matches matches) {
  std::uint64_t count = 0;
  double time_us = 0;
  for (const std::uint32_t activity : in.context.links.by_start) {
    if (!matches(activity)) continue;
    ++count;
    time_us += in.context.duration_us(activity);
  }
  if (count == 0) return;
  finding.detail = fmt::format("{}, {} in all", plural(count, what), duration_text(time_us));
  finding.saving_us = time_us;
  out.push_back(std::move(finding));
}

bool is_linear_op(const Inputs& in, std::uint32_t activity) {
  const std::string_view op = in.context.op_name(in.context.links.activity_op[activity]);
  return !op.empty() && role_of(op).role == Role::linear;
}

void bias_copies(const Inputs& in, Findings& out) {
  summed(in, out,
         {.id = "bias-copy",
          .title = "addmm copies its bias into the result before multiplying",
          .detail = {},
          .saving_us = {},
          .action = "give the bias as a vector (nn.Linear does) so that the GEMM's epilogue adds it"},
         "copy", [&](std::uint32_t activity) {
           return in.context.trace.gpu.kind[activity] == ActivityKind::memcpy && is_linear_op(in, activity) &&
                  in.context.trace.strings[in.context.trace.gpu.name[activity]].find("DtoD") !=
                      std::string_view::npos;
         });
}

void tile_counter_memsets(const Inputs& in, Findings& out) {
  summed(in, out,
         {.id = "tile-counter-memset",
          .title = "the GEMM library clears a tile counter before its kernel",
          .detail = {},
          .saving_us = {},
          .action = "nothing to tune from outside; a fused kernel needs none"},
         "4-byte memset", [&](std::uint32_t activity) {
           return in.context.trace.gpu.kind[activity] == ActivityKind::memset &&
                  in.context.trace.gpu.bytes[activity] == 4 && is_linear_op(in, activity);
         });
}

void split_k(const Inputs& in, Findings& out) {
  summed(in, out,
         {.id = "split-k",
          .title = "GEMMs split along K pay a second kernel to sum the parts",
          .detail = {},
          .saving_us = {},
          .action = "more tokens per call (batch), or a kernel that reduces inside its cluster"},
         "reduction kernel", [&](std::uint32_t activity) {
           if (in.context.trace.gpu.kind[activity] != ActivityKind::kernel) return false;
           const KernelName& name = in.context.names.of(in.context.trace.gpu.name[activity]);
           return name.kind == KernelKind::gemm_helper && name.short_name.starts_with("splitK");
         });
}

void misaligned_gemms(const Inputs& in, Findings& out) {
  std::uint64_t launches = 0;
  double time_us = 0;
  int alignment = 0;
  std::string example;
  for (const KernelGroup& group : in.context.groups) {
    const KernelName& name = in.context.names.of(group.name);
    // 16 bytes is what vector loads and the copy engine need: 8 elements of 16 bits.
    if (name.kind != KernelKind::gemm || !name.alignment || *name.alignment > 2) continue;
    launches += group.launches.size();
    for (const std::uint32_t launch : group.launches) time_us += in.context.duration_us(launch);
    if (alignment == 0 || *name.alignment < alignment) {
      alignment = *name.alignment;
      example =
          group.gemm ? fmt::format(" (m {}, n {}, k {})", group.gemm->m, group.gemm->n, group.gemm->k) : "";
    }
  }
  if (launches == 0) return;
  out.push_back(
      {.id = "misaligned-gemm",
       .title = fmt::format("GEMMs run on a slow path: rows are aligned to {} only",
                            plural(static_cast<std::uint64_t>(alignment), "element")),
       .detail = fmt::format("{}, {} in all{}", plural(launches, "launch"), duration_text(time_us), example),
       .saving_us = {},
       .action = "pad the odd dimension to a multiple of 8 elements (16 bytes)"},
      time_us);
}

void same_shape_other_tile(const Inputs& in, Findings& out) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::string_view, bool,
                         std::string_view>;
  std::map<Key, std::vector<const KernelGroup*>> by_shape;
  for (const KernelGroup& group : in.context.groups) {
    if (!group.gemm || in.context.names.of(group.name).kind != KernelKind::gemm) continue;
    const MatmulShape& g = *group.gemm;
    by_shape[{g.m, g.n, g.k, g.batch, g.dtype, g.bias, in.context.op_name(group.op)}].push_back(&group);
  }
  for (const auto& [key, groups] : by_shape) {
    if (groups.size() < 2) continue;
    double best = 0;
    double saving = 0;
    std::string tiles;
    const auto median_of = [&](const KernelGroup& group) {
      std::vector<double> times;
      for (const std::uint32_t launch : group.launches) times.push_back(in.context.duration_us(launch));
      return median(std::move(times));
    };
    for (const KernelGroup* group : groups) {
      const double time = median_of(*group);
      if (best == 0 || time < best) best = time;
    }
    for (const KernelGroup* group : groups) {
      const double time = median_of(*group);
      saving += (time - best) * static_cast<double>(group->launches.size());
      tiles +=
          fmt::format("{}{} {} ({})", tiles.empty() ? "" : ", ", in.context.names.of(group->name).short_name,
                      duration_text(time), plural(group->launches.size(), "call"));
    }
    out.push_back({.id = "same-shape-other-tile",
                   .title = fmt::format("one GEMM shape runs on {} different kernels: m {}, n {}, k {}",
                                        groups.size(), std::get<0>(key), std::get<1>(key), std::get<2>(key)),
                   .detail = tiles,
                   .saving_us = saving,
                   .action = "look at strides and alignment of its operands: layouts differ where tiles do"});
  }
}

void profiler_gaps(const Inputs& in, Findings& out) {
  const auto& overheads = in.context.trace.overheads;
  std::map<std::string_view, std::pair<std::uint64_t, double>> by_name;
  double total = 0;
  for (std::size_t row = 0; row < overheads.size(); ++row) {
    auto& [count, time] = by_name[in.context.trace.strings[overheads.name[row]]];
    ++count;
    time += in.context.us(overheads.dur_ns[row]);
    total += in.context.us(overheads.dur_ns[row]);
  }
  if (total <= 0) return;
  std::string detail;
  for (const auto& [name, sum] : by_name) {
    detail += fmt::format("{}{}: {}, {}", detail.empty() ? "" : "; ", name, plural(sum.first, "time"),
                          duration_text(sum.second));
  }
  out.push_back({.id = "profiler-gap",
                 .title = "some of the time is the profiler's own",
                 .detail = detail,
                 .saving_us = {},
                 .action = "do not optimise these gaps; without the profiler they are not there"});
}

void incomplete(const Inputs& in, Findings& out) {
  const Trace& trace = in.context.trace;
  std::vector<std::string> reasons;
  if (!trace.complete) reasons.emplace_back("the file ends before its event array does");
  if (trace.skipped_events != 0) {
    reasons.push_back(fmt::format("{} could not be read, the first at byte {}",
                                  plural(trace.skipped_events, "event"), trace.first_skipped_offset));
  }
  std::uint64_t unlinked = 0;
  for (std::uint32_t activity = 0; activity < trace.gpu.size(); ++activity) {
    const bool has_call = in.context.links.activity_call[activity] != none;
    if (!has_call && trace.calls.size() != 0 && trace.gpu.correlation[activity] != no_id) ++unlinked;
  }
  if (unlinked != 0)
    reasons.push_back(
        fmt::format("{} with a launch call that was not recorded", plural(unlinked, "device activity")));
  if (reasons.empty()) return;
  out.push_back({.id = "incomplete-trace",
                 .title = "the trace does not hold everything that ran",
                 .detail = fmt::format("{}", fmt::join(reasons, "; ")),
                 .saving_us = {},
                 .action = "counts and regions at the edges are too small; record whole steps (schedule with "
                           "wait and warmup)"});
}

constexpr void (*rules[])(const Inputs&, Findings&) = {
    overhead_bound,        unfused_mlps,     cold_first_step, metadata_operators,
    bias_copies,           misaligned_gemms, split_k,         tile_counter_memsets,
    same_shape_other_tile, profiler_gaps,    incomplete,
};

}  // namespace

std::vector<Finding> find_findings(Context& context, const Explanation& explanation) {
  Findings findings;
  const Inputs inputs{context, explanation};
  for (const auto rule : rules) rule(inputs, findings);
  return std::move(findings).worst_first();
}

}  // namespace ingot::trace
