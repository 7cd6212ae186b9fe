// SPDX-License-Identifier: Apache-2.0
//
// What a run is judged by. The reference computes the MLP's definition in float64 from the very inputs and
// weights a run reads. Beside it stands the same MLP with the roundings of an unfused framework, whose error
// is the yardstick: a run that follows the `match` or `fast` contract has at most 1.1 times that error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpu/pool.h"
#include "ingot/engine.h"

namespace ingot::cpu {

/// Values for `rows`, each [rows.size(), dim].
struct Reference {
  std::vector<std::int64_t> rows;  ///< tokens judged, ascending
  std::vector<double> exact;       ///< float64 throughout
  std::vector<double> framework;   ///< rounded to the dtype after each linear, the activation and the product
  std::vector<double> matmul_add;  ///< also between each matmul and its bias
  /// Standard deviations to expect of `framework` - `exact` and `matmul_add` - `exact`, from their roundings.
  std::vector<double> deviation, matmul_add_deviation;
};

/// Computes the reference for the given rows of x. f32: sums run in f32 in the order of the index, as a
/// framework may; 16-bit: sums are exact and the roundings to the dtype are all there is. Weights and x as
/// for run(). Errors invalid_argument: as resolve_weights; out_of_memory.
Result<Reference> reference(const Mlp& mlp, const Weights& weights, const void* x, std::int64_t x_row_stride,
                            const std::vector<std::int64_t>& rows, ThreadPool& pool);

/// At most `count` of the rows [0, tokens), spread evenly, first and last included.
std::vector<std::int64_t> spread_rows(std::int64_t tokens, std::int64_t count);

/// How far a result is from the reference: ||y - exact|| / ||exact|| over all judged rows (0 / 0 is 0).
struct Verdict {
  double error = 0;            ///< of the run
  double framework_error = 0;  ///< of the yardstick for its rung
  double bound =
      0;  ///< largest error accepted: 1.1 x the yardstick's, plus what a sample this small may stray
  double worst = 0;    ///< largest |y - exact| of one value, in standard deviations to expect
  bool ok = false;     ///< error <= bound, worst within reason, finite where the reference is
  std::string reason;  ///< why not ok, one line
};
Verdict judge(const Mlp& mlp, const Reference& reference, Rung rung, const void* y,
              std::int64_t y_row_stride);

}  // namespace ingot::cpu
