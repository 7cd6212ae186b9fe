// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

/// 128 bits of XXH3: names what was hashed, guards against damage, not against an attacker.
struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};
Hash128 hash_of(std::string_view bytes);
/// 32 hexadecimal digits.
std::string to_string(const Hash128& hash);

}  // namespace ingot
