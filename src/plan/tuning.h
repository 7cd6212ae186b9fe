// SPDX-License-Identifier: Apache-2.0
//
// Measured choices of tiles: what `ingot bench --tune` found on one device, kept in the cache folder. A plain
// table and its JSON; who measures and who reads the file is elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/status.h"
#include "plan/linear.h"
#include "plan/mlp_kernel.h"

namespace ingot {

/// The fastest tile measured for a linear and a class of tokens.
struct TunedTile {
  LinearSpec linear;
  std::int64_t tokens = 0;  ///< representative of the class
  KernelTile tile;
  double us = 0;  ///< measured
};

/// What was measured to be fastest for a whole MLP and a class of tokens.
struct TunedMlp {
  MlpSpec mlp;
  std::int64_t tokens = 0;      ///< representative of the class
  std::optional<MlpTile> tile;  ///< of one kernel; unset: two kernels
  double us = 0;                ///< measured
};

/// What one measurement found, or a table holds.
struct TunedChoices {
  std::vector<TunedTile> tiles;
  std::vector<TunedMlp> mlps;
};

/// Of one device and one version of the kernels.
class TuningTable {
 public:
  /// `device` as the driver names it; `kernels` identifies the kernels' source text.
  TuningTable(std::string device, std::string kernels);

  const std::string& device() const { return device_; }
  const std::string& kernels() const { return kernels_; }
  const std::vector<TunedTile>& tiles() const { return choices_.tiles; }  ///< sorted
  const std::vector<TunedMlp>& mlps() const { return choices_.mlps; }     ///< sorted

  /// Keeps the faster where there is one already. Whether the gate lies first is not told apart.
  void add(TunedTile tuned);
  void add(TunedMlp tuned);

  /// Each takes the place of what is there.
  void replace(const TunedChoices& choices);

  /// Null: nothing was measured. Allocates nothing; valid until the next add().
  const KernelTile* find(const LinearSpec& linear, std::int64_t representative) const;
  const TunedMlp* find(const MlpSpec& mlp, std::int64_t representative) const;

 private:
  std::string device_, kernels_;
  TunedChoices choices_;
};

std::string to_json(const TuningTable& table);
/// Error unreadable: not such a document, or of another version. Lines that do not parse are left out.
Result<TuningTable> parse_tuning(std::string_view document);
/// The table of a document if it is of this device and these kernels, else an empty one.
TuningTable tuning_for(std::string_view document, const std::string& device, const std::string& kernels);

}  // namespace ingot
