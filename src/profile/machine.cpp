// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/env.h"
#include "cpu/describe.h"
#include "cpu/gemm.h"
#include "cpu/isa.h"
#include "cpu/stored_description.h"
#include "ingot/doctor.h"
#include "profile/gpu_probe.h"

namespace ingot {

namespace {

namespace fs = std::filesystem;

/// The folder itself, or the nearest one above that exists: where creating it would be tried.
bool can_write(fs::path folder) {
  std::error_code error;
  while (!folder.empty() && !fs::exists(folder, error)) {
    const fs::path parent = folder.parent_path();
    if (parent == folder) return false;
    folder = parent;
  }
  return access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

void look_at_cache(const base::Environment& environment, Machine& machine) {
  machine.cache_folder = base::cache_folder(environment);
  if (!machine.cache_folder) {
    machine.missing.push_back({"cache folder", "measurements and compiled kernels are made anew every time",
                               "export INGOT_CACHE=/path/to/a/folder"});
    return;
  }
  machine.cache_writable = can_write(*machine.cache_folder);
  if (!machine.cache_writable) {
    machine.missing.push_back({"writable cache folder",
                               "measurements and compiled kernels are made anew every time",
                               "export INGOT_CACHE=/path/to/a/folder you can write to"});
  }
  std::error_code error;
  fs::recursive_directory_iterator entry(*machine.cache_folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;  // a file may vanish while we look
    if (!entry->is_regular_file(unreadable) || unreadable) continue;
    const std::uintmax_t bytes = entry->file_size(unreadable);
    if (unreadable) continue;
    ++machine.cache_files;
    machine.cache_bytes += bytes;
  }
}

}  // namespace

Machine inspect_machine() {
  const base::Environment environment = base::read_environment();
  const cpu::CpuFacts facts = cpu::cpu_facts();
  Machine machine;
  machine.cpu = facts.name;
  machine.processors = facts.processors;
  machine.instruction_sets = cpu::instruction_sets();
  machine.loops_isa = to_string(cpu::widest_isa());
  machine.l1_bytes = facts.l1_bytes;
  machine.l2_bytes = facts.l2_bytes;
  machine.l3_bytes = facts.l3_bytes;
  machine.memory_bytes = facts.memory_bytes;
  machine.available_bytes = cpu::available_memory();
  machine.gemm_library = cpu::gemm_library();
  machine.gemm_dtypes =
      cpu::has_gemm_bf16()
          ? "f32 and bf16; f16 as f32, weights expanded a block at a time, rounded where the contract says"
          : "f32; bf16 and f16 as f32, weights expanded a block at a time, rounded where the contract says";
  machine.measured = cpu::load_description(cpu::estimate_cpu(facts, 0));
  if (cpu::widest_isa() == cpu::Isa::baseline) {
    machine.missing.push_back({"AVX2", "the CPU rungs run at a quarter of the usual rate or less",
                               "none: a processor from 2013 or later has it"});
  }
  profile::probe_gpu(environment, machine);
  look_at_cache(environment, machine);
  return machine;
}

}  // namespace ingot
