// SPDX-License-Identifier: Apache-2.0
#include "ingot/mlp.h"

#include <fmt/format.h>

#include <array>

#include "base/nearest.h"

namespace ingot {

namespace {

constexpr std::array<std::string_view, 3> dtype_names{"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 2> numerics_names{"match", "fast"};

#define INGOT_NAME(name, formula) std::string_view(#name),
constexpr std::array activation_names{INGOT_ACTIVATIONS(INGOT_NAME)};
#undef INGOT_NAME

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Result<void> check_width(std::string_view field, std::int64_t value) {
  if (value >= 1 && value <= max_width) return {};
  return invalid(fmt::format("{}: {} is not accepted, give 1 to {}", field, value, max_width));
}

/// rows * width * bytes, or false when it passes 2^63 - 1.
bool fits(std::int64_t rows, std::int64_t width, std::int64_t factor) {
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  return !__builtin_mul_overflow(rows, width, &elements) && !__builtin_mul_overflow(elements, factor, &bytes);
}

template <std::size_t N>
std::size_t position(const std::array<std::string_view, N>& names, std::string_view name) {
  std::size_t i = 0;
  while (i < N && names[i] != name) ++i;
  return i;
}

}  // namespace

std::string_view to_string(DType dtype) {
  return dtype_names[static_cast<std::size_t>(dtype)];
}

Result<DType> parse_dtype(std::string_view name) {
  const std::size_t i = position(dtype_names, name);
  if (i == dtype_names.size()) return invalid(unknown_name("dtype", name, dtype_names));
  return static_cast<DType>(i);
}

const std::vector<ActivationInfo>& activations() {
#define INGOT_INFO(name, formula) ActivationInfo{Activation::name, #name, formula},
  static const std::vector<ActivationInfo> all{INGOT_ACTIVATIONS(INGOT_INFO)};
#undef INGOT_INFO
  return all;
}

std::string_view to_string(Activation activation) {
  return activation_names[static_cast<std::size_t>(activation)];
}

Result<Activation> parse_activation(std::string_view name) {
  const std::size_t i = position(activation_names, name);
  if (i == activation_names.size()) return invalid(unknown_name("activation", name, activation_names));
  return static_cast<Activation>(i);
}

double activate(Activation activation, double x) {
  switch (activation) {
#define INGOT_CASE(name, formula) \
  case Activation::name:          \
    return activation::name::exact(x);
    INGOT_ACTIVATIONS(INGOT_CASE)
#undef INGOT_CASE
  }
  return x;
}

std::string_view to_string(Numerics numerics) {
  return numerics_names[static_cast<std::size_t>(numerics)];
}

Result<Numerics> parse_numerics(std::string_view name) {
  const std::size_t i = position(numerics_names, name);
  if (i == numerics_names.size()) return invalid(unknown_name("numerics", name, numerics_names));
  return static_cast<Numerics>(i);
}

Result<void> validate(const Mlp& mlp, std::int64_t tokens) {
  if (auto ok = check_width("dim", mlp.dim); !ok) return ok;
  if (auto ok = check_width("hidden", mlp.hidden); !ok) return ok;
  if (static_cast<std::size_t>(mlp.activation) >= activation_names.size()) {
    return invalid(fmt::format("activation: {} is not in the list", static_cast<int>(mlp.activation)));
  }
  if (static_cast<std::size_t>(mlp.dtype) >= dtype_names.size()) {
    return invalid(fmt::format("dtype: {} is not in the list", static_cast<int>(mlp.dtype)));
  }
  if (tokens < 0) return invalid(fmt::format("tokens: {} is not accepted, give 0 or more", tokens));
  const auto element = static_cast<std::int64_t>(size_of(mlp.dtype));
  if (!fits(mlp.hidden * 2, mlp.dim, element)) {
    return invalid(fmt::format("dim, hidden: a weight of {} x {} passes 2^63 bytes", mlp.hidden, mlp.dim));
  }
  // The widest intermediate is gate and up side by side in f32.
  if (!fits(tokens, mlp.hidden * 2, 4) || !fits(tokens, mlp.dim, 4)) {
    return invalid(
        fmt::format("tokens: {} rows of {} pass 2^63 bytes", tokens, std::max(mlp.hidden * 2, mlp.dim)));
  }
  return {};
}

std::string to_string(const Mlp& mlp) {
  return fmt::format("{} -> {} {}{}, {}, {}", mlp.dim, mlp.hidden, to_string(mlp.activation),
                     mlp.gated ? " gated" : "", mlp.bias ? "bias" : "no bias", to_string(mlp.dtype));
}

std::int64_t parameter_count(const Mlp& mlp) {
  const std::int64_t up = mlp.gated ? 2 * mlp.hidden : mlp.hidden;
  return (up + mlp.hidden) * mlp.dim + (mlp.bias ? up + mlp.dim : 0);
}

double flops(const Mlp& mlp, std::int64_t tokens) {
  const double products = mlp.gated ? 3 : 2;
  return 2.0 * products * static_cast<double>(tokens) * static_cast<double>(mlp.dim) *
         static_cast<double>(mlp.hidden);
}

double least_bytes(const Mlp& mlp, std::int64_t tokens) {
  const double elements = static_cast<double>(parameter_count(mlp)) +
                          2.0 * static_cast<double>(tokens) * static_cast<double>(mlp.dim);
  return elements * static_cast<double>(size_of(mlp.dtype));
}

}  // namespace ingot
