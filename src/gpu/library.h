// SPDX-License-Identifier: Apache-2.0
//
// A shared library opened at run time. It stays open: drivers and compilers keep threads and state that
// outlive their users.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>

namespace ingot::gpu {

class Library {
 public:
  explicit Library(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* const why = dlerror();
      error_ = why == nullptr ? file + ": cannot be opened" : why;
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  /// Why it is not open, one line.
  const std::string& error() const { return error_; }

  /// Null when the library has no such function.
  template <class Function>
  Function* symbol(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  /// The absolute path of the file a function was loaded from.
  static std::optional<std::string> file_of(const void* function) {
    Dl_info info{};
    if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return std::nullopt;
    return info.dli_fname;
  }

 private:
  void* handle_;
  std::string error_;
};

/// Takes functions out of a library one by one, and remembers the first that it lacks.
class Symbols {
 public:
  explicit Symbols(const Library& library) : library_(library) {}

  template <class Function>
  void take(Function*& function, const char* name) {
    function = library_.symbol<Function>(name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  /// Null: it had all.
  const char* missing() const { return missing_; }

 private:
  const Library& library_;
  const char* missing_ = nullptr;
};

}  // namespace ingot::gpu
