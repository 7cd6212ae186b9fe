// SPDX-License-Identifier: Apache-2.0
//
// The page's own files (assets/), part of the library since the build.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace ingot::page {

std::span<const base::EmbeddedFile> assets();

}  // namespace ingot::page
