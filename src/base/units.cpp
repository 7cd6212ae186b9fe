// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

namespace ingot {

std::string duration_text(double us) {
  if (us >= 1e6) return fmt::format("{:.2f} s", us * 1e-6);
  if (us >= 1e3) return fmt::format("{:.2f} ms", us * 1e-3);
  return fmt::format("{:.1f} us", us);
}

std::string memory_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib >= 1024 * 1024) return fmt::format("{:.1f} GiB", kib / (1024 * 1024));
  if (kib >= 1024) return fmt::format("{:.4g} MiB", kib / 1024);
  return fmt::format("{:.4g} KiB", kib);
}

}  // namespace ingot
