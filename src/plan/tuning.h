// SPDX-License-Identifier: Apache-2.0
//
// Measured choices of tiles: what `ingot bench --tune` found on one device, kept in the cache folder. A plain
// table and its JSON; who measures and who reads the file is elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/status.h"
#include "plan/linear.h"

namespace ingot {

/// The fastest tile measured for a linear and a class of tokens.
struct TunedTile {
  LinearSpec linear;
  std::int64_t tokens = 0;  ///< representative of the class
  KernelTile tile;
  double us = 0;  ///< measured
};

/// Of one device and one version of the kernels.
class TuningTable {
 public:
  /// `device` as the driver names it; `kernels` identifies the kernels' source text.
  TuningTable(std::string device, std::string kernels);

  const std::string& device() const { return device_; }
  const std::string& kernels() const { return kernels_; }
  const std::vector<TunedTile>& tiles() const { return tiles_; }  ///< sorted

  /// Keeps the faster where there is one already. Whether the gate lies first is not told apart.
  void add(TunedTile tuned);

  /// Takes the place of what is there.
  void replace(TunedTile tuned);

  /// Null: nothing was measured. Allocates nothing; valid until the next add().
  const KernelTile* find(const LinearSpec& linear, std::int64_t representative) const;

 private:
  std::string device_, kernels_;
  std::vector<TunedTile> tiles_;
};

std::string to_json(const TuningTable& table);
/// Error unreadable: not such a document, or of another version. Lines that do not parse are left out.
Result<TuningTable> parse_tuning(std::string_view document);
/// The table of a document if it is of this device and these kernels, else an empty one.
TuningTable tuning_for(std::string_view document, const std::string& device, const std::string& kernels);

}  // namespace ingot
