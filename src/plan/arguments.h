// SPDX-License-Identifier: Apache-2.0
//
// Checks of what callers pass to prepare and run, the same for every device: null and misaligned pointers,
// strides that overlap, sizes that overflow.
#pragma once

#include "ingot/engine.h"

namespace ingot {

/// Weights with every default filled in: strides set, packed weights taken apart.
struct ResolvedWeights {
  Linear gate;  ///< not gated: the first linear
  Linear up;    ///< not gated: all null
  Linear down;
};

/// Checks the MLP and its weights. Errors invalid_argument: name the field and what is accepted.
Result<ResolvedWeights> resolve_weights(const Mlp& mlp, const Weights& weights);

/// Whether gate's weights lie before up's, by address: the two may belong to different allocations.
bool gate_lies_first(const ResolvedWeights& weights);

/// What the planner must know of an MLP that is prepared.
PlanOptions planning_options(const Mlp& mlp, const Weights& weights, const PrepareOptions& options);

/// The arguments with default strides filled in. Errors invalid_argument; tokens = 0 needs no pointers.
Result<RunArguments> resolve_run(const Mlp& mlp, const RunArguments& arguments, std::size_t workspace_needed);

}  // namespace ingot
