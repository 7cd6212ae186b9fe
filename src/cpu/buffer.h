// SPDX-License-Identifier: Apache-2.0
//
// Memory for numbers, aligned to cache lines, that says so when there is none.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace ingot::cpu {

inline constexpr std::size_t cache_line = 64;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

struct FreeDeleter {
  void operator()(void* pointer) const { std::free(pointer); }
};

/// Uninitialised elements of a trivial type.
template <class T>
class Buffer {
 public:
  /// Null data() when out of memory.
  static Buffer allocate(std::size_t elements) {
    Buffer buffer;
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(elements, sizeof(T), &bytes) || bytes > static_cast<std::size_t>(-1) / 2)
      return buffer;
    buffer.memory_.reset(std::aligned_alloc(cache_line, round_up(bytes == 0 ? 1 : bytes)));
    buffer.elements_ = buffer.memory_ ? elements : 0;
    return buffer;
  }

  T* data() const { return static_cast<T*>(memory_.get()); }
  std::size_t size() const { return elements_; }
  std::size_t bytes() const { return elements_ * sizeof(T); }

 private:
  std::unique_ptr<void, FreeDeleter> memory_;
  std::size_t elements_ = 0;
};

}  // namespace ingot::cpu
