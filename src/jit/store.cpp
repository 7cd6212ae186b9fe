// SPDX-License-Identifier: Apache-2.0
#include "jit/store.h"

#include <fmt/format.h>

#include <new>
#include <utility>

namespace ingot::jit {

CachedKernelStore::CachedKernelStore(std::shared_ptr<const Compiler> compiler, std::optional<DiskCache> disk,
                                     std::span<const SourceFile> sources)
    : compiler_(std::move(compiler)),
      disk_(std::move(disk)),
      sources_(sources),
      identity_(compiler_->identity()) {}

Result<CachedKernelStore::Found> CachedKernelStore::make(const CacheKey& key,
                                                         const KernelText& kernel) const {
  try {
    if (disk_) {
      if (auto cubin = disk_->load(key))
        return Found{std::make_shared<const Cubin>(std::move(*cubin)), Origin::disk, {}};
    }
    auto cubin = compiler_->compile(kernel);
    if (!cubin) {
      Error error = cubin.error();
      // The text is for whoever looks into it; a kernel that no compiler was tried on needs no look.
      if (disk_ && error.code == ErrorCode::device) {
        if (auto path = disk_->store_text(key, kernel))
          error.message += fmt::format("; its text is {}", *path);
      }
      return error;
    }
    Found found{std::make_shared<const Cubin>(std::move(cubin).value()), Origin::compiled, {}};
    if (!disk_) {
      found.not_kept = "there is no cache folder";
    } else if (auto kept = disk_->store(key, kernel, identity_, *found.cubin); !kept) {
      found.not_kept = kept.error().message;
    }
    return found;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, fmt::format("{}: not enough memory to compile", kernel.name)};
  }
}

Result<CachedKernelStore::Found> CachedKernelStore::find(const KernelText& kernel) {
  try {
    const CacheKey key = cache_key(identity_, kernel, sources_);
    std::shared_ptr<Slot> slot;
    {
      std::unique_lock lock(mutex_);
      auto [place, is_new] = slots_.try_emplace(key);
      if (!is_new) {
        slot = place->second;
        finished_.wait(lock, [&] { return slot->done; });
        if (!slot->result) return slot->result.error();
        return Found{slot->result->cubin, Origin::memory, {}};
      }
      try {
        slot = place->second = std::make_shared<Slot>();
      } catch (const std::bad_alloc&) {
        slots_.erase(place);  // nobody has seen it: the lock was held
        throw;
      }
    }
    // From here on nothing throws until the others have been told.
    auto made = make(key, kernel);
    {
      const std::lock_guard lock(mutex_);
      slot->result = std::move(made);
      slot->done = true;
      if (!slot->result) slots_.erase(key);
    }
    finished_.notify_all();
    return slot->result;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory for a kernel"};
  }
}

Result<std::shared_ptr<const Cubin>> CachedKernelStore::get(const KernelText& kernel) {
  auto found = find(kernel);
  if (!found) return found.error();
  return std::move(found->cubin);
}

}  // namespace ingot::jit
