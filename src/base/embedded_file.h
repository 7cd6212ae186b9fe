// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::base {

/// A file of the sources that is part of the library as text (cmake/EmbedFiles.cmake).
struct EmbeddedFile {
  std::string_view name;  ///< its path in the folder that was embedded: "sm90/gemm.cuh"
  std::string_view text;  ///< a zero byte stands behind it
};

}  // namespace ingot::base
