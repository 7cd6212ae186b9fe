// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "jit/kernel.h"

namespace ingot::jit {

std::string to_string(const Target& target) {
  return fmt::format("sm_{}{}{}", target.major, target.minor, target.chip_specific ? "a" : "");
}

Result<Target> parse_target(std::string_view text) {
  const Error error{ErrorCode::invalid_argument,
                    fmt::format("target '{}' is not accepted, give sm_80 or newer, as in sm_90a", text)};
  std::string_view digits = text;
  if (!digits.starts_with("sm")) return error;
  digits.remove_prefix(digits.starts_with("sm_") ? 3 : 2);
  const bool chip_specific = digits.ends_with('a');
  if (chip_specific) digits.remove_suffix(1);
  int number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc() || end != digits.data() + digits.size() || digits.front() == '0') return error;
  const Target target{number / 10, number % 10, chip_specific};
  if (target.major < 8 || target.major > 99 || (chip_specific && target.major < 9)) return error;
  return target;
}

Target target_of(const GpuDescription& gpu) {
  return {gpu.major, gpu.minor, gpu.major == 9 && gpu.minor == 0};
}

}  // namespace ingot::jit
