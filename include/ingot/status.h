// SPDX-License-Identifier: Apache-2.0
//
// Errors as values. Every fallible function of the library returns Result<T>; nothing in the library prints,
// exits, aborts or throws across its interface.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ingot {

/// Why an operation failed. The command line maps these to exit codes: see exit_code().
enum class ErrorCode {
  invalid_argument,  ///< the caller's values are off; the message names the field and what is accepted
  unreadable,        ///< a file is missing, cut short, or not what it should be
  unsupported,       ///< the device, library or data type needed is not here
  out_of_memory,     ///< an allocation failed; nothing was changed
  device,            ///< the driver, compiler or a kernel reported a failure
  check_failed,      ///< a result is not within its stated error bound
  internal,          ///< a bug in Ingot
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  ///< one line, no trailing full stop or newline
};

/// Exit code of the `ingot` command for an error: 2 usage, 3 unreadable input, 4 device or feature missing,
/// 5 a result failed its check, 1 anything else.
constexpr int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 2;
    case ErrorCode::unreadable:
      return 3;
    case ErrorCode::unsupported:
    case ErrorCode::device:
    case ErrorCode::out_of_memory:
      return 4;
    case ErrorCode::check_failed:
      return 5;
    case ErrorCode::internal:
      break;
  }
  return 1;
}

/// A value or an Error. Test with `if (result)`; reading the wrong side is a programming error
/// (std::bad_variant_access).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error, for operations with nothing to return.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.value(); }

 private:
  std::optional<Error> error_;
};

}  // namespace ingot
