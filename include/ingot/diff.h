// SPDX-License-Identifier: Apache-2.0
//
// What changed between two traces of the same work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/explain.h"
#include "ingot/trace.h"

namespace ingot {

/// Something present on one side, with how often and how long (per region call where the region is shared).
struct DiffCount {
  std::string name;
  std::string short_name;              ///< decoded, for tables; operators: the name itself
  double before = 0, after = 0;        ///< per call
  double before_us = 0, after_us = 0;  ///< per call: CPU self time of operators, GPU time of kernels
};

struct DiffRegion {
  std::string name;
  std::uint64_t calls_before = 0, calls_after = 0;
  double launches_before = 0, launches_after = 0;
  double kernels_before = 0, kernels_after = 0;
  double cpu_us_before = 0, cpu_us_after = 0;
  double gpu_busy_us_before = 0, gpu_busy_us_after = 0;
};

/// Kernels that went and kernels that came in their place, matched by what they compute.
struct DiffReplacement {
  std::vector<std::string> before, after;  ///< decoded short names, each once
  std::string what;  ///< "fused": fewer kernels, the operators are in the new one's name; "replaced"
};

struct Diff {
  std::string before_file, after_file;
  std::string basis;                ///< the region counts are per call of; "trace" where the two share none
  std::vector<DiffRegion> regions;  ///< regions both have
  std::vector<DiffCount> ops_gone, ops_new;  ///< operators on one side only
  std::vector<DiffCount> kernels_identical;  ///< byte-for-byte the same name on both sides
  std::vector<DiffCount> kernels_gone, kernels_new;
  std::vector<DiffReplacement> replacements;
};

/// Compares two traces; traces with nothing in common give a Diff that says so. Fails with out_of_memory
/// only.
Result<Diff> diff(const trace::Trace& before, const trace::Trace& after);

}  // namespace ingot
