// SPDX-License-Identifier: Apache-2.0
//
// Compiled kernels kept in a folder, for this process and all others. Two files a kernel, named by its key:
// KEY.cubin, which the vendor's tools read as it is (what Ingot adds follows the code), and KEY.cu, the text
// it was made from. Files appear whole or not at all; one that is cut short, damaged or of another version
// counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/hash.h"
#include "ingot/cache.h"
#include "ingot/status.h"
#include "jit/kernel.h"
#include "jit/sources.h"

namespace ingot::jit {

using CacheKey = Hash128;
/// Of all that shapes the code: the compiler with its options, the target, the text, every file it includes.
CacheKey cache_key(std::string_view compiler, const KernelText& kernel, std::span<const SourceFile> sources);

/// Safe for any number of threads and processes at once; nothing is kept in memory.
class DiskCache {
 public:
  /// Nothing is touched yet. `limit_bytes`: of all files together; the least recently used go first.
  explicit DiskCache(std::string folder, std::uint64_t limit_bytes = cache_limit_bytes);

  const std::string& folder() const { return folder_; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }

  /// Marks the kernel as used now. Nothing when it is not there, or not what was written.
  std::optional<Cubin> load(const CacheKey& key) const;

  /// Error unreadable: the system's reason; what was there before stays whole.
  Result<void> store(const CacheKey& key, const KernelText& kernel, std::string_view compiler,
                     const Cubin& cubin) const;
  /// The text alone, of a kernel that does not compile; its path.
  Result<std::string> store_text(const CacheKey& key, const KernelText& kernel) const;

  /// Sorted by name, then target. A folder that does not exist holds none.
  std::vector<CachedKernel> list() const;
  /// Removes the kernels and what unfinished writes left behind; other files stay. Error unreadable: the
  /// first file that cannot be removed.
  Result<CacheCleared> clear() const;

 private:
  std::string path(const CacheKey& key, const char* suffix) const;
  void remove_least_used() const;

  std::string folder_;
  std::uint64_t limit_bytes_;
};

/// "kernels" in the cache folder; nothing where there is no such folder.
std::optional<DiskCache> kernel_cache(const base::Environment& environment);

}  // namespace ingot::jit
