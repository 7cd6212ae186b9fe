// SPDX-License-Identifier: Apache-2.0
#include "ingot/cache.h"

#include <new>

#include "jit/disk_cache.h"

namespace ingot {

namespace {

Error no_folder() {
  return {ErrorCode::unsupported, "there is no cache folder: set INGOT_CACHE to a folder, or HOME"};
}
Error no_memory() {
  return {ErrorCode::out_of_memory, "not enough memory to read the cache folder"};
}

}  // namespace

Result<CacheListing> list_cache() {
  try {
    const auto cache = jit::kernel_cache(base::read_environment());
    if (!cache) return no_folder();
    return CacheListing{cache->folder(), cache->limit_bytes(), cache->list()};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<CacheCleared> clear_cache() {
  try {
    const auto cache = jit::kernel_cache(base::read_environment());
    if (!cache) return no_folder();
    return cache->clear();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace ingot
