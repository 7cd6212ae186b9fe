// SPDX-License-Identifier: Apache-2.0
//
// A trace as sequences of stages: what happened to the data, in order, with views and containers taken away.
// Two sources give the same kind of sequence: operators of a thread, and kernels alone (inside a graph
// launch, or where no operator was recorded).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingot/kernel_name.h"
#include "ingot/trace.h"
#include "trace/link.h"
#include "trace/roles.h"
#include "trace/signature.h"

namespace ingot::trace {

/// decode() of each distinct name, once.
class KernelNames {
 public:
  explicit KernelNames(const Trace& trace) : trace_(trace) {}
  const KernelName& of(StringId name);

 private:
  const Trace& trace_;
  std::unordered_map<StringId, KernelName> decoded_;
};

struct Stage {
  enum class Kind { linear, activation, product, bias, pointwise, split, pass, fused, other };
  Kind kind = Kind::other;
  std::uint32_t op = none;                    ///< operator; `none` in a sequence of kernels
  std::span<const std::uint32_t> activities;  ///< its device work, in order of start
  std::optional<MatmulShape> matmul;          ///< linear, where shapes are recorded
  std::optional<std::int64_t> numel;          ///< elements of the result of an elementwise stage
  std::int64_t elements_moved = 0;  ///< elements read and written by an elementwise stage; 0 unknown
  std::string activation;           ///< activation, fused, or a linear that applies one itself
  bool has_product = false;         ///< fused: multiplies two tensors
  std::optional<bool> has_bias;     ///< linear: by operator or kernel name; fused: adds one
  std::string_view dtype;           ///< static text; "" unknown
  double scale = 0;                 ///< product by a recorded scalar; 0 none
  std::string_view op_name;         ///< for pointwise stages
};

struct StageSequence {
  bool from_operators = true;
  std::vector<std::uint32_t> activity_storage;  ///< what the spans of a kernel sequence point into
  std::vector<Stage> stages;
};

/// All sequences of a trace: one per thread that ran operators, then those of kernels alone.
std::vector<StageSequence> stage_sequences(const Trace& trace, const Links& links, Signatures& signatures,
                                           KernelNames& names);

}  // namespace ingot::trace
