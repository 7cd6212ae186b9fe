// SPDX-License-Identifier: Apache-2.0
//
// Planning: which way to run an MLP on a device, and what it will cost. Pure arithmetic over plain data: no
// device is touched, so any device can be planned for from any machine. The cost model is described in
// docs/cost-model.md. Units: bytes, seconds inside descriptions, microseconds in forecasts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/mlp.h"
#include "ingot/status.h"

namespace ingot {

enum class DeviceKind : std::uint8_t { cpu, cuda };
std::string_view to_string(DeviceKind kind);

/// One way to run an MLP. A launch is one kernel (one primitive on a CPU) submitted.
enum class Rung : std::uint8_t {
  matmul_add,  ///< matmul, bias addition, activation, product: each its own pass over memory
  unfused,     ///< linear with its bias folded in, activation, product, linear: what eager frameworks launch
  epilogue,  ///< activation and product applied where the first linear's tile is still in registers or cache
  two_kernel,  ///< the same as two kernels compiled for this shape; gate and up are one of them (GPU)
  one_pass,    ///< tiles of tokens taken through both linears; the hidden tensor never reaches memory
  one_kernel,  ///< the same as one kernel compiled for this shape (GPU)
};
inline constexpr std::size_t rung_count = 6;
std::string_view to_string(Rung rung);
/// Error invalid_argument: suggests the nearest name and lists all.
Result<Rung> parse_rung(std::string_view name);
const std::vector<std::string_view>& rung_names();

/// How one rung cuts its work into tasks that run side by side.
struct Tile {
  std::int64_t tokens = 0;  ///< rows of a task
  std::int64_t hidden = 0;  ///< columns of the hidden tensor a task holds at a time
  std::int64_t splits =
      1;  ///< tasks that share one tile's columns (of the hidden tensor, then of the output)
  bool operator==(const Tile&) const = default;
};
/// "192x256", or "8x512/2" with two splits.
std::string to_string(const Tile& tile);

/// What the planner knows of a CPU. Rates are for all `threads` together.
struct CpuDescription {
  int threads = 1;
  std::string isa;                           ///< widest instruction set in use: "avx2", "avx512", …
  std::string library;                       ///< GEMM library and version, "oneDNN 2.6.3"
  std::uint64_t l1_bytes = 0, l2_bytes = 0;  ///< per core
  std::uint64_t l3_bytes = 0;                ///< shared
  double gemm_flops_per_s = 0;               ///< f32 GEMM on tiles of many rows
  double gemm_row_overhead = 0;              ///< a GEMM of m rows takes the time of m + this many
  double cached_bytes = 0;  ///< weights up to this size are read from cache; less than l3_bytes where others
                            ///< share it; 0: l3_bytes
  double cache_bytes_per_s = 0;   ///< reading such weights
  double memory_bytes_per_s = 0;  ///< reading weights from memory
  double stream_bytes_per_s = 0;  ///< passes that read and write memory; bytes read + bytes written
  double cache_stream_bytes_per_s =
      0;              ///< the same where all of it fits the last cache; 0: cache_bytes_per_s
  double task_s = 0;  ///< starting one parallel phase
  /// One element of the hidden tensor in cache, from first sums to hidden value; by DType, then Activation.
  std::array<std::array<double, activation_count>, dtype_count> activation_s{};
  std::array<double, dtype_count> gate_s{};     ///< more when gated: the second sum and the product; by DType
  std::array<double, dtype_count> convert_s{};  ///< one element between dtype and f32; by DType
  bool native_bf16 = false;      ///< the library multiplies bf16 itself; else weights are expanded to f32
  double bf16_flops_per_s = 0;   ///< native_bf16: as gemm_flops_per_s
  double bf16_row_overhead = 0;  ///< native_bf16: as gemm_row_overhead
};

/// What the planner knows of a GPU. On it the first three rungs are calls of the vendor's library.
struct GpuDescription {
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0, l2_bytes = 0;
  int shared_bytes = 0;           ///< a block may use, opted in
  double tensor_flops_per_s = 0;  ///< dense bf16 or f16 products that a good kernel sustains
  double f32_flops_per_s = 0;     ///< plain multiply-adds
  double memory_bytes_per_s = 0;  ///< that a copy sustains
  double launch_s = 0;            ///< from the end of one kernel of a graph to the start of the next
  bool library = false;           ///< the vendor's library is at hand
};

/// What the planner knows of a device.
struct DeviceDescription {
  DeviceKind kind = DeviceKind::cpu;
  std::string name;      ///< "AMD EPYC 7763", "NVIDIA H200"
  std::string source;    ///< where the rates come from: "measured 2026-01-31", "data sheet", "estimate"
  CpuDescription cpu;    ///< kind cpu
  GpuDescription gpu{};  ///< kind cuda
};

/// A card that stands for a generation of GPUs, from data sheets and measurements, to plan for where there is
/// none: "sm80" (A100), "sm86" (A10), "sm89" (L40S), "sm90" (H200), "sm100" (B200), "sm120" (RTX 5090). Error
/// invalid_argument: lists them.
Result<DeviceDescription> describe_gpu(std::string_view generation);
const std::vector<std::string_view>& gpu_generations();

/// Error invalid_argument for the first field that cannot be planned with: threads below 1, a rate that is
/// not positive.
Result<void> validate(const DeviceDescription& device);

/// Why a candidate is out. One line each in the catalogue; see to_string().
enum class Rejection : std::uint8_t {
  none,
  slower,               ///< a legal candidate with a longer forecast than the chosen one
  not_asked_for,        ///< the caller named another rung
  too_few_tokens,       ///< fewer tiles of tokens than threads: some would idle while weights are read again
  not_on_device,        ///< the device has no such rung
  no_library_epilogue,  ///< the vendor's library folds in relu and gelu_tanh only, and no gate
  no_library,           ///< the vendor's library is not at hand
  within_model_error,   ///< of the library, and not forecast faster by more than the forecasts are off
  no_mlp_kernel,        ///< no kernel of a whole MLP takes this one; the candidate's detail says why
  measured_slower,      ///< than the chosen one, on this device
};
std::string_view to_string(Rejection rejection);

struct Candidate {
  Rung rung = Rung::unfused;
  Tile tile;  ///< of a CPU's tasks; 0 x 0 on other devices
  int launches = 0;
  double bytes = 0;  ///< counted from tensors: each launch reads its inputs once, writes its outputs once
  double forecast_us = 0;  ///< 0 when there is none: the candidate is not legal
  Rejection rejected = Rejection::none;
  std::string detail{};  ///< of no_mlp_kernel: each kernel's reason; filled in by plan()
};
/// Why the candidate is out: its rejection, and the detail where there is one. Empty: it is not.
std::string rejection_text(const Candidate& candidate);

/// One compiled kernel of a plan.
struct KernelPlan {
  std::string name;  ///< "fc1": x to hidden; "fc2": hidden to y; "mlp": x to y
  std::string tile;  ///< label, see docs/measured-gpu.md
  double forecast_us = 0;
  bool tuned = false;  ///< the tile was measured to be the fastest, on this device
};

struct Plan {
  Mlp mlp;
  std::int64_t tokens = 0;
  Numerics numerics = Numerics::match;
  DeviceDescription device;
  Candidate chosen;
  std::vector<Candidate> candidates;  ///< chosen one included, in the order of Rung
  std::vector<KernelPlan> kernels{};  ///< of a chosen two_kernel or one_kernel; empty for other rungs
};
/// How the chosen candidate is cut: its kernels' tiles, or its tile; empty where the library decides.
std::string tile_text(const Plan& plan);

struct PlanOptions {
  Numerics numerics = Numerics::match;
  std::optional<Rung> rung;  ///< unset: the planner chooses
  bool packed = false;       ///< gated: gate and up are one weight, so that unfused runs them as one linear
  bool aligned = true;       ///< GPU: every address and row stride is a multiple of 16 bytes
};

/// Plans one MLP for one number of tokens. Errors invalid_argument: from validate(); unsupported: no legal
/// candidate.
Result<Plan> plan(const Mlp& mlp, std::int64_t tokens, const DeviceDescription& device,
                  const PlanOptions& options = {});

}  // namespace ingot
