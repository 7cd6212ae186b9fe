// SPDX-License-Identifier: Apache-2.0
//
// What the operating system says about this machine's CPU.
#pragma once

#include <cstdint>
#include <string>

#include "ingot/plan.h"

namespace ingot::cpu {

struct CpuFacts {
  std::string name;                                        ///< "AMD EPYC 7763 64-Core Processor"
  int processors = 1;                                      ///< this process may run on
  std::uint64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  ///< data or unified; l3: as one core sees it
  std::uint64_t memory_bytes = 0;
};

/// Never fails: what cannot be read stays at its default (caches: 32 KiB, 512 KiB, 8 MiB).
CpuFacts cpu_facts();

/// Memory that can be allocated without swapping, in bytes; 0: unknown.
std::uint64_t available_memory();

/// A description with estimated rates (arch/cpu.h). threads <= 0: one per processor.
DeviceDescription estimate_cpu(const CpuFacts& facts, int threads);

}  // namespace ingot::cpu
