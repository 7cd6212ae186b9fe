// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/byte_source.h"
#include "ingot/status.h"
#include "ingot/trace.h"

namespace ingot::trace {

/// Reads a trace from a source of plain or gzip bytes, in pieces of any size. `name` is the file in messages;
/// "-" is standard input. What read_file and read_text do once they have a source; std::bad_alloc passes
/// through.
Result<Trace> read_source(std::unique_ptr<ByteSource> source, std::string name);

}  // namespace ingot::trace
