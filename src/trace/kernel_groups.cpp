// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "trace/context.h"

namespace ingot::trace {

namespace {

struct GroupKey {
  StringId name, op_name, dims, types;
  bool operator==(const GroupKey&) const = default;
};
struct GroupHash {
  std::size_t operator()(const GroupKey& key) const {
    std::uint64_t hash = key.name;
    for (const StringId part : {key.op_name, key.dims, key.types})
      hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(hash ^ (hash >> 32U));
  }
};

/// Operators whose result has the size of their largest argument and whose traffic is their arguments and
/// result.
bool is_elementwise(KernelKind kind) {
  return kind == KernelKind::pointwise || kind == KernelKind::norm;
}

std::optional<std::uint64_t> gemm_bytes(const MatmulShape& shape) {
  const int element = dtype_bytes(shape.dtype);
  if (element == 0) return std::nullopt;
  const double elements =
      static_cast<double>(shape.batch) * (static_cast<double>(shape.m) * static_cast<double>(shape.k) +
                                          static_cast<double>(shape.k) * static_cast<double>(shape.n) +
                                          static_cast<double>(shape.m) * static_cast<double>(shape.n)) +
      (shape.bias ? static_cast<double>(shape.n) : 0);
  const double bytes = elements * element;
  if (bytes > 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::optional<std::uint64_t> elementwise_bytes(const Signature& signature) {
  std::uint64_t bytes = 0;
  std::int64_t largest = 0;
  int result_element = 0;
  for (const Argument& argument : signature) {
    if (!argument.is_tensor()) continue;
    const int element = dtype_bytes(argument.dtype);
    if (element == 0 || argument.numel() > (std::int64_t{1} << 56)) return std::nullopt;
    bytes += static_cast<std::uint64_t>(argument.numel()) * static_cast<std::uint64_t>(element);
    if (argument.numel() > largest) {
      largest = argument.numel();
      result_element = element;
    }
  }
  if (largest == 0) return std::nullopt;
  return bytes + static_cast<std::uint64_t>(largest) * static_cast<std::uint64_t>(result_element);
}

/// What the shapes say about a kernel: its matrix product and the bytes of its tensors.
void measure(Context& context, KernelGroup& group) {
  const KernelName& name = context.names.of(group.name);
  group.compute_heavy = name.kind == KernelKind::gemm || name.kind == KernelKind::attention ||
                        name.kind == KernelKind::convolution;
  if (group.kind != ActivityKind::kernel) {
    group.bytes = context.trace.gpu.bytes[group.launches.front()];
    return;
  }
  if (group.op == none) return;
  const Signature& signature = context.signatures.of(group.op);
  const std::string_view op = context.op_name(group.op);
  if (name.kind == KernelKind::gemm || name.kind == KernelKind::unknown) {
    group.gemm = matmul_shape(op, signature);
    if (group.gemm) {
      group.bytes = gemm_bytes(*group.gemm);
      group.compute_heavy = true;
    }
  } else if (is_elementwise(name.kind) && op.starts_with("aten::")) {
    // A compiler's kernel lists in-out buffers once, so its operator's arguments do not give its traffic.
    group.bytes = elementwise_bytes(signature);
  }
}

void rate(const Context& context, KernelGroup& group) {
  if (context.card == nullptr) return;
  std::vector<double> times;
  for (const std::uint32_t launch : group.launches) times.push_back(context.duration_us(launch));
  const double seconds = median(std::move(times)) * 1e-6;
  if (seconds <= 0) return;
  if (group.gemm) {
    const double peak = peak_flops(*context.card, group.gemm->dtype);
    if (peak > 0) group.compute_share = group.flops() / peak / seconds;
  }
  if (group.bytes && context.card->bandwidth_tb_s > 0) {
    group.memory_share = static_cast<double>(*group.bytes) / (context.card->bandwidth_tb_s * 1e12) / seconds;
  }
}

/// Blocks that may reside on one multiprocessor at once (CUDA programming guide, technical specifications).
int most_blocks(const Device& device) {
  const int capability = device.compute_major * 10 + device.compute_minor;
  if (capability == 75 || capability == 86 || capability == 87) return 16;
  if (capability == 89 || capability >= 120) return 24;
  return 32;
}

/// Share of a multiprocessor's warps that a launch configuration lets reside (theoretical occupancy), from
/// the documented allocation rules of NVIDIA devices (others: unset): registers by warp in units of 256,
/// shared memory by block with 1 KiB reserved from compute capability 8 on.
std::optional<double> occupancy(const Device& device, const LaunchShape& shape) {
  const double threads = static_cast<double>(shape.block[0]) * shape.block[1] * shape.block[2];
  if (device.max_threads_per_sm == 0 || device.registers_per_sm == 0 || device.shared_memory_per_sm == 0 ||
      threads < 1 || shape.registers_per_thread == 0 || device.warp_size != 32) {
    return std::nullopt;
  }
  const double warps = std::ceil(threads / device.warp_size);
  const double registers = std::ceil(shape.registers_per_thread * device.warp_size / 256.0) * 256.0 * warps;
  const double reserved = device.compute_major >= 8 ? 1024 : 0;
  double blocks = std::floor(device.max_threads_per_sm / (warps * device.warp_size));
  blocks = std::min(blocks, std::floor(static_cast<double>(device.registers_per_sm) / registers));
  blocks = std::min(blocks, std::floor(static_cast<double>(device.shared_memory_per_sm) /
                                       (shape.shared_memory_bytes + reserved)));
  blocks = std::min(blocks, static_cast<double>(most_blocks(device)));
  return blocks * warps / (static_cast<double>(device.max_threads_per_sm) / device.warp_size);
}

}  // namespace

double peak_flops(const Card& card, std::string_view dtype) {
  double tflops = 0;
  if (dtype == "bf16" || dtype == "f16") tflops = card.bf16_tflops;
  if (dtype == "f32") tflops = card.f32_tflops;
  if (dtype == "tf32") tflops = card.tf32_tflops;
  if (dtype == "fp8") tflops = card.fp8_tflops;
  return tflops * 1e12;
}

void group_kernels(Context& context) {
  const Trace& trace = context.trace;
  std::unordered_map<GroupKey, std::uint32_t, GroupHash> ids;
  context.group_of.resize(trace.gpu.size());
  for (const std::uint32_t activity : context.links.by_start) {
    const std::uint32_t op = context.links.activity_op[activity];
    GroupKey key{trace.gpu.name[activity], 0, 0, 0};
    if (op != none)
      key = {trace.gpu.name[activity], trace.ops.name[op], trace.ops.dims[op], trace.ops.types[op]};
    const auto [at, fresh] = ids.try_emplace(key, static_cast<std::uint32_t>(context.groups.size()));
    if (fresh) {
      KernelGroup group;
      group.name = trace.gpu.name[activity];
      group.op = op;
      group.kind = trace.gpu.kind[activity];
      context.groups.push_back(std::move(group));
    }
    context.groups[at->second].launches.push_back(activity);
    context.group_of[activity] = at->second;
  }
  for (KernelGroup& group : context.groups) {
    measure(context, group);
    // f32 products run on tensor cores only where the kernel says tf32.
    if (group.gemm && group.gemm->dtype == "f32" && context.names.of(group.name).dtype == "tf32")
      group.gemm->dtype = "tf32";
    rate(context, group);
  }
}

std::vector<KernelRow> kernel_rows(Context& context) {
  std::vector<KernelRow> rows;
  for (const KernelGroup& group : context.groups) {
    const KernelName& name = context.names.of(group.name);
    KernelRow row;
    row.name = demangle(context.trace.strings[group.name]);
    row.short_name = group.kind == ActivityKind::kernel ? name.short_name : row.name;
    row.family = name.family;
    row.kind = group.kind == ActivityKind::memcpy   ? "memcpy"
               : group.kind == ActivityKind::memset ? "memset"
                                                    : std::string(to_string(name.kind));
    row.op = context.op_name(group.op);
    row.calls = group.launches.size();
    std::vector<double> times;
    for (const std::uint32_t launch : group.launches) times.push_back(context.duration_us(launch));
    for (const double time : times) row.total_us += time;
    row.min_us = *std::min_element(times.begin(), times.end());
    row.max_us = *std::max_element(times.begin(), times.end());
    row.median_us = median(std::move(times));
    if (!name.dtype.empty()) row.dtype = name.dtype;
    if (!row.dtype && group.gemm && !group.gemm->dtype.empty()) row.dtype = group.gemm->dtype;
    if (name.tile) {
      row.tile = std::to_string(name.tile->m) + "x" + std::to_string(name.tile->n);
      if (name.tile->k != 0) *row.tile += "x" + std::to_string(name.tile->k);
    }
    if (!name.layout.empty()) row.layout = name.layout;
    row.stages = name.stages;
    row.fused = name.fused;
    row.bytes = group.bytes;
    if (row.median_us > 0) {
      if (group.gemm) row.tflops = group.flops() / row.median_us * 1e-6;
      if (group.bytes) row.gb_s = static_cast<double>(*group.bytes) / row.median_us * 1e-3;
    }
    if (group.gemm)
      row.gemm = Gemm{.m = group.gemm->m, .n = group.gemm->n, .k = group.gemm->k, .batch = group.gemm->batch};
    row.peak_share = group.compute_share;
    const std::uint32_t first = group.launches.front();
    const std::uint32_t shape = context.trace.gpu.shape[first];
    for (const Device& device : context.trace.devices) {
      if (device.id == context.trace.gpu.device[first] && shape < context.trace.launch_shapes.size()) {
        row.occupancy = occupancy(device, context.trace.launch_shapes[shape]);
      }
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rows[a].total_us > rows[b].total_us; });
  std::vector<KernelRow> sorted;
  sorted.reserve(rows.size());
  context.row_of.resize(rows.size());
  for (const std::uint32_t group : order) {
    context.row_of[group] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(rows[group]));
  }
  return sorted;
}

}  // namespace ingot::trace
