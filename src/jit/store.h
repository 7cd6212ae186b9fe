// SPDX-License-Identifier: Apache-2.0
//
// Where the engine gets its kernels.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "jit/disk_cache.h"
#include "jit/kernel.h"
#include "jit/sources.h"

namespace ingot::jit {

/// Memory, then the disk cache, then the compiler. Threads that want one kernel at once share one
/// compilation; processes may repeat it, and each keeps a whole file. What fails is tried anew the next time.
/// A disk cache that cannot be written costs only time.
class CachedKernelStore : public KernelStore {
 public:
  enum class Origin { memory, disk, compiled };
  struct Found {
    std::shared_ptr<const Cubin> cubin;
    Origin origin = Origin::memory;
    std::string not_kept;  ///< why the disk cache did not take it; "" when it did
  };

  /// `sources`: what the compiler includes from.
  explicit CachedKernelStore(std::shared_ptr<const Compiler> compiler, std::optional<DiskCache> disk,
                             std::span<const SourceFile> sources = kernel_sources());

  /// Errors as the compiler's; where the kernel does not compile, with the path of its text.
  Result<std::shared_ptr<const Cubin>> get(const KernelText& kernel) override;
  /// get(), and where the kernel came from.
  Result<Found> find(const KernelText& kernel);

 private:
  struct Slot {
    bool done = false;
    Result<Found> result = Found{};
  };
  Result<Found> make(const CacheKey& key, const KernelText& kernel) const;

  std::shared_ptr<const Compiler> compiler_;
  std::optional<DiskCache> disk_;
  std::span<const SourceFile> sources_;
  std::string identity_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::map<CacheKey, std::shared_ptr<Slot>> slots_;  // guarded by mutex_; kernels, and those being made
};

}  // namespace ingot::jit
