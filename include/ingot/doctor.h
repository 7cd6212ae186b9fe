// SPDX-License-Identifier: Apache-2.0
//
// What this machine has, what Ingot will use of it, what is missing and how to get it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/plan.h"

namespace ingot {

struct GpuDevice {
  std::string name;
  int compute_major = 0, compute_minor = 0;
  std::uint64_t memory_bytes = 0;
};

/// Something Ingot would use if it were there.
struct MissingPart {
  std::string what;     ///< "NVIDIA driver"
  std::string effect;   ///< what does not work without it
  std::string command;  ///< what gets it
};

struct Machine {
  std::string cpu;
  int processors = 0;            ///< this process may run on
  std::string instruction_sets;  ///< "sse2 avx avx2 fma"
  std::string loops_isa;         ///< the set Ingot's own loops use: "avx2"
  std::uint64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  std::uint64_t memory_bytes = 0, available_bytes = 0;
  std::string gemm_library;                   ///< "oneDNN 2.6.3"
  std::string gemm_dtypes;                    ///< how each dtype is multiplied
  std::optional<DeviceDescription> measured;  ///< the stored measurement for all processors
  std::optional<std::string> driver;          ///< "libcuda.so.1, CUDA 12.8"; unset: none could be opened
  std::vector<GpuDevice> gpus;
  std::optional<std::string> device_compiler;  ///< "libnvrtc.so.12, 12.8"
  std::optional<std::string> cache_folder;     ///< unset: nowhere to keep anything
  bool cache_writable = false;
  std::uint64_t cache_files = 0, cache_bytes = 0;
  std::vector<MissingPart> missing;
};

/// Looks around; libraries are opened at run time, nothing is measured. Never fails: what cannot be found is
/// missing.
Machine inspect_machine();

}  // namespace ingot
