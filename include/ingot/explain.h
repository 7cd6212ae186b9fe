// SPDX-License-Identifier: Apache-2.0
//
// From a trace to understanding: what was launched, where the time went, which kernels are one MLP, and what
// to do. Units: microseconds unless the name says otherwise; bytes are bytes of device memory. An unset
// optional means "the trace does not say": it is null in JSON and never a guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/status.h"
#include "ingot/timeline.h"
#include "ingot/trace.h"

namespace ingot {

/// Where the time of a stretch of work goes.
enum class Verdict { unknown, overhead_bound, memory_bound, compute_bound, idle };
std::string_view to_string(Verdict verdict);

/// Peak rates of one GPU model (data sheet, dense) and where they come from.
struct Card {
  std::string name;           ///< "NVIDIA H200"
  double bf16_tflops = 0;     ///< 16-bit tensor rate
  double tf32_tflops = 0;     ///< f32 inputs through tensor cores; 0: none
  double f32_tflops = 0;      ///< plain FMA
  double fp8_tflops = 0;      ///< 0: none
  double bandwidth_tb_s = 0;  ///< device memory
  std::string source;
};
/// The card a device name of a trace stands for, or null for one the table does not hold.
const Card* find_card(std::string_view device_name);
const std::vector<Card>& known_cards();

/// A named stretch of the program: all "ProfilerStep#N" together, one per record_function name, or the whole
/// trace.
struct Region {
  std::string name;
  std::uint64_t calls = 0;
  double kernels_per_call = 0;  ///< kernels (no memcpy, memset), mean over calls
  double memsets_per_call = 0, memcpys_per_call = 0;
  double launches_per_call = 0;  ///< API calls that put work on the device
  double cpu_us = 0;             ///< per call, median
  double gpu_busy_us = 0;        ///< per call, median: union of device intervals
  double gpu_span_us = 0;        ///< per call, median: first start to last end
  double wait_launch_us = 0;     ///< per call, median: device idle because its launch had not come yet
  double wait_other_us = 0;      ///< per call, median: device idle otherwise
  Verdict verdict = Verdict::unknown;
  std::string verdict_reason;  ///< the numbers behind the verdict
};

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  ///< y[m,n] = x[m,k] · w[n,k]ᵀ, PyTorch's linear
};

/// All launches of one kernel name under one operator signature.
struct KernelRow {
  std::string name;  ///< as in the trace (demangled)
  std::string short_name, family, kind, op;
  std::uint64_t calls = 0;
  double total_us = 0, median_us = 0, min_us = 0, max_us = 0;
  std::optional<std::string> dtype, tile, layout;
  std::optional<int> stages;
  std::vector<std::string> fused;
  std::optional<Gemm> gemm;
  std::optional<double> tflops, peak_share, gb_s;  ///< at the median time
  std::optional<std::uint64_t> bytes;              ///< per launch, counted from tensors
  std::optional<double> occupancy;                 ///< theoretical, recomputed from the launch configuration
};

struct ZeroLaunchOp {
  std::string name;
  std::uint64_t calls = 0;
  double cpu_us = 0;  ///< total self time (children that launch nothing included once, under their own name)
  double cpu_share = 0;  ///< of the CPU time of all regions (or of the trace)
};

/// One MLP as it runs now: linear → activation (→ product with a second linear) → linear.
struct MlpRow {
  std::string activation;  ///< relu, gelu_erf, gelu_tanh, silu, …; "gelu": form not recorded
  bool gated = false;
  std::optional<bool> packed;  ///< gate and up come from one projection
  std::optional<bool> bias;
  std::optional<std::int64_t> tokens, dim, hidden;
  std::optional<std::string> dtype;
  std::uint64_t calls = 0;
  std::optional<double> calls_per_region_call;
  std::optional<double> kernels_per_call;  ///< mean over calls; unset in a trace without device work
  double memsets_per_call = 0, memcpys_per_call = 0;
  std::optional<double> gpu_us_per_call;  ///< median over calls of the sum of its device work's durations
  std::optional<std::uint64_t> bytes_per_call, fused_bytes_per_call;
  std::optional<double> fused_us_estimate;  ///< roofline, see docs/cost-model.md
  std::string evidence;  ///< "shapes": operators with recorded shapes; "names": names and order alone
  std::optional<std::string> region;  ///< innermost region that launched it; unset: none
  std::vector<std::string> kernels;   ///< short names, in order, of the first call
};

struct Finding {
  std::string id;  ///< stable, e.g. "overhead-bound", "unfused-mlp"
  std::string title;
  std::string detail;               ///< the evidence, with numbers
  std::optional<double> saving_us;  ///< over the whole trace, an estimate
  std::string action;
};

/// The answer to an expectation such as "3 linear, 1 gelu_tanh, 1 mul" (kernels per region call).
struct Expectation {
  struct Item {
    std::string what;
    double expected = 0, found = 0;
  };
  std::string text, region;
  std::vector<Item> items;  ///< stated items, then kinds found and not stated (expected 0)
  bool met = false;
};

struct Summary {
  double gpu_busy_us = 0, gpu_idle_us = 0, span_us = 0;
  std::uint64_t kernels = 0, memcpys = 0, memsets = 0, launches = 0;
  Verdict verdict = Verdict::unknown;
  std::string verdict_reason;
};

struct Explanation {
  // Envelope facts, copied so that an explanation stands without its trace.
  std::string file;
  std::uint64_t bytes = 0, events = 0, skipped_events = 0;
  std::optional<std::uint64_t> first_skipped_offset;
  std::vector<std::string> warnings;
  std::optional<std::string> device;
  std::optional<Card> card;
  double span_us = 0;

  Summary summary;
  std::vector<Region> regions;
  std::vector<KernelRow> kernels;             ///< by total time, largest first
  std::vector<ZeroLaunchOp> zero_launch_ops;  ///< by CPU time, largest first
  std::vector<MlpRow> mlps;                   ///< by total GPU time, largest first
  std::vector<Finding> findings;              ///< worst first
  std::optional<Expectation> expectation;
  std::optional<Timeline> timeline;  ///< where asked for
};

struct ExplainOptions {
  std::string expect{};   ///< "" none; syntax: "COUNT NAME, …", see parse_expectation
  bool timeline = false;  ///< fill Explanation::timeline
  /// Operators, calls and device activities the timeline holds at most: whole steps, the typical one first.
  std::size_t timeline_events = 150'000;
};

/// Explains a trace. Fails with invalid_argument when options.expect cannot be parsed, and with
/// out_of_memory.
Result<Explanation> explain(const trace::Trace& trace, const ExplainOptions& options = {});

}  // namespace ingot
