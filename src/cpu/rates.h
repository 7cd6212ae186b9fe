// SPDX-License-Identifier: Apache-2.0
//
// The measured rates of a CPU, one after the other.
#pragma once

#include <fmt/format.h>

#include <string>

#include "ingot/plan.h"

namespace ingot::cpu {

/// Every rate of the description under its name, so that those who write, read or combine
/// them cannot disagree.
template <class Description, class Field>
void for_each_rate(Description& cpu, const Field& field) {
  field("gemm_flops_per_s", cpu.gemm_flops_per_s);
  field("gemm_row_overhead", cpu.gemm_row_overhead);
  field("bf16_flops_per_s", cpu.bf16_flops_per_s);
  field("bf16_row_overhead", cpu.bf16_row_overhead);
  field("cache_bytes_per_s", cpu.cache_bytes_per_s);
  field("cached_bytes", cpu.cached_bytes);
  field("cache_stream_bytes_per_s", cpu.cache_stream_bytes_per_s);
  field("memory_bytes_per_s", cpu.memory_bytes_per_s);
  field("stream_bytes_per_s", cpu.stream_bytes_per_s);
  field("task_s", cpu.task_s);
  for (std::size_t d = 0; d < dtype_count; ++d) {
    const std::string dtype(to_string(static_cast<DType>(d)));
    for (const ActivationInfo& activation : activations()) {
      field(fmt::format("activation_s.{}.{}", dtype, activation.name),
            cpu.activation_s[d][static_cast<std::size_t>(activation.id)]);
    }
    field("gate_s." + dtype, cpu.gate_s[d]);
    field("convert_s." + dtype, cpu.convert_s[d]);
  }
}

}  // namespace ingot::cpu
