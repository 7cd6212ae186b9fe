// SPDX-License-Identifier: Apache-2.0
#include "cpu/describe.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <thread>

#include "arch/cpu.h"
#include "cpu/gemm.h"
#include "cpu/isa.h"

namespace ingot::cpu {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "512K", "32M", "64" to bytes; 0 when it is none of these.
std::uint64_t size_in_bytes(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  if (unit == 'K') return value << 10U;
  if (unit == 'M') return value << 20U;
  if (unit == 'G') return value << 30U;
  return value;
}

std::string model_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

void read_caches(CpuFacts& facts) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_line(folder + "level");
    if (level.empty()) return;
    if (first_line(folder + "type") == "Instruction") continue;
    const std::uint64_t bytes = size_in_bytes(first_line(folder + "size"));
    if (bytes == 0) continue;
    if (level == "1") facts.l1_bytes = bytes;
    if (level == "2") facts.l2_bytes = bytes;
    if (level == "3") facts.l3_bytes = bytes;
  }
}

}  // namespace

CpuFacts cpu_facts() {
  CpuFacts facts{.name = model_name(),
                 .processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                 .l1_bytes = 32U << 10U,
                 .l2_bytes = 512U << 10U,
                 .l3_bytes = 8U << 20U};
  read_caches(facts);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    facts.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  return facts;
}

std::uint64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (in >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10U;
    std::getline(in, unit);
  }
  return 0;
}

DeviceDescription estimate_cpu(const CpuFacts& facts, int threads) {
  CpuDescription cpu{.threads = threads > 0 ? threads : facts.processors,
                     .isa = std::string(to_string(widest_isa())),
                     .library = gemm_library(),
                     .l1_bytes = facts.l1_bytes,
                     .l2_bytes = facts.l2_bytes,
                     .l3_bytes = facts.l3_bytes};
  const auto known = std::find_if(arch::cpu_estimates.begin(), arch::cpu_estimates.end(),
                                  [&](const arch::CpuEstimate& estimate) { return estimate.isa == cpu.isa; });
  const arch::CpuEstimate& estimate =
      known == arch::cpu_estimates.end() ? arch::cpu_estimates.front() : *known;
  const double cores = std::min(cpu.threads, facts.processors);
  cpu.gemm_flops_per_s = estimate.gemm_gflops * 1e9 * cores;
  cpu.gemm_row_overhead = arch::gemm_row_overhead;
  cpu.cache_bytes_per_s = arch::cache_gb_s_per_core * 1e9 * cores;
  cpu.native_bf16 = has_gemm_bf16();
  if (cpu.native_bf16) {
    cpu.bf16_flops_per_s = arch::bf16_gemm_gflops * 1e9 * cores;
    cpu.bf16_row_overhead = arch::gemm_row_overhead;
  }
  cpu.cached_bytes = static_cast<double>(facts.l3_bytes);
  cpu.cache_stream_bytes_per_s = cpu.cache_bytes_per_s;
  cpu.memory_bytes_per_s = cpu.stream_bytes_per_s = arch::memory_gb_s * 1e9;
  cpu.task_s = cpu.threads > 1 ? arch::task_us * 1e-6 : 0;
  const double element = estimate.activation_ns * 1e-9 / cores;
  for (std::size_t dtype = 0; dtype < dtype_count; ++dtype) {
    const bool narrow = static_cast<DType>(dtype) != DType::f32;
    cpu.activation_s[dtype].fill(narrow ? 2 * element : element);
    cpu.gate_s[dtype] = narrow ? element : element / 4;
    cpu.convert_s[dtype] = narrow ? element / 4 : 0;
  }
  return {.kind = DeviceKind::cpu, .name = facts.name, .source = "estimate, not measured", .cpu = cpu};
}

}  // namespace ingot::cpu
