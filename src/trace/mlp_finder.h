// SPDX-License-Identifier: Apache-2.0
//
// Finds MLPs in a sequence of stages: linear → activation (→ product with a second linear) → linear.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/trace.h"
#include "trace/stages.h"

namespace ingot::trace {

/// One execution of one MLP.
struct MlpCall {
  std::string activation;
  bool gated = false;
  std::optional<bool> packed, bias;
  std::optional<std::int64_t> tokens, dim, hidden;
  std::string_view dtype;  ///< "" unknown
  bool shapes = false;     ///< dimensions come from recorded shapes
  std::vector<std::uint32_t> activities;
  std::optional<std::uint64_t> bytes;  ///< moved as it runs now, counted from tensors
};

/// Bytes a fused MLP moves: input, output, weights and biases, each once. Unset where a dimension is unknown.
std::optional<std::uint64_t> fused_bytes(const MlpCall& mlp);

/// Calls in order. With shapes, every dimension must fit (hidden feeds the last linear, whose result is as
/// wide as the first one's input); without, order alone decides and anything ambiguous is left out.
std::vector<MlpCall> find_mlps(const Trace& trace, const StageSequence& sequence);

}  // namespace ingot::trace
