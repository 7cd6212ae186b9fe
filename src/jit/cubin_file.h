// SPDX-License-Identifier: Apache-2.0
//
// A kernel as one file of the disk cache: the code, then what is known of it as JSON, then sizes, a checksum
// over all before it, and a mark with the version of this layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jit/kernel.h"

namespace ingot::jit {

struct CubinFile {
  std::string key;  ///< guards against a file under another's name
  std::string name, target, compiler;
  Cubin cubin;
};

std::string to_bytes(const CubinFile& file);
/// Nothing unless the bytes are whole, undamaged, of this version, and of `key`.
std::optional<CubinFile> from_bytes(std::string_view bytes, std::string_view key);

}  // namespace ingot::jit
