// SPDX-License-Identifier: Apache-2.0
//
// Where bytes come from: a file, standard input, memory, or a gzip stream over any of these. Sources are read
// front to back in pieces, so nothing depends on the length of what is read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ingot/status.h"

namespace ingot {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Writes up to `capacity` bytes to `out` and returns how many; 0 only at the end.
  virtual Result<std::size_t> read(char* out, std::size_t capacity) = 0;

  /// After the end: why the bytes stop early or cannot be trusted, "" when all is well. One line, without a
  /// name.
  virtual std::string damage() const { return {}; }
};

/// Opens a file, a pipe, or standard input for "-". Error::message names the file: missing, a directory, no
/// permission.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

/// Reads from memory that outlives the source.
std::unique_ptr<ByteSource> memory_bytes(std::string_view bytes);

/// Looks at the first bytes of `source`: a gzip stream is inflated, anything else passes as it is.
Result<std::unique_ptr<ByteSource>> inflate_if_gzip(std::unique_ptr<ByteSource> source);

}  // namespace ingot
