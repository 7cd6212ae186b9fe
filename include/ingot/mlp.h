// SPDX-License-Identifier: Apache-2.0
//
// What an MLP is: tokens × dim → hidden → dim, in PyTorch's linear convention (weights are [out, in],
// row-major).
//
//   plain   h = act(x·W1ᵀ + b1)                          y = h·W2ᵀ + b2
//   gated   h = act(x·Wgᵀ + bg) · (x·Wuᵀ + bu)            y = h·W2ᵀ + b2
//
// The number of tokens is not part of it: weights, activation and device are fixed, tokens change from call
// to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/activations.cuh"
#include "ingot/status.h"

namespace ingot {

/// Type of inputs, outputs, weights and biases. Sums are kept in f32 (f64 in the reference).
enum class DType : std::uint8_t { f32, bf16, f16 };
inline constexpr std::size_t dtype_count = 3;
std::string_view to_string(DType dtype);
constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::f32 ? 4 : 2;
}
/// Error invalid_argument: names the accepted values.
Result<DType> parse_dtype(std::string_view name);

/// One value per line of INGOT_ACTIVATIONS (kernels/activations.cuh), in its order.
enum class Activation : std::uint8_t {
#define INGOT_ENUMERATOR(name, formula) name,
  INGOT_ACTIVATIONS(INGOT_ENUMERATOR)
#undef INGOT_ENUMERATOR
};
inline constexpr std::size_t activation_count = [] {
  std::size_t count = 0;
#define INGOT_COUNT(name, formula) ++count;
  INGOT_ACTIVATIONS(INGOT_COUNT)
#undef INGOT_COUNT
  return count;
}();

struct ActivationInfo {
  Activation id;
  std::string_view name;     ///< as in `--act` and in traces' explanations
  std::string_view formula;  ///< for help texts
};
const std::vector<ActivationInfo>& activations();
std::string_view to_string(Activation activation);
/// Error invalid_argument: suggests the nearest name and lists all.
Result<Activation> parse_activation(std::string_view name);
/// The definition in double precision.
double activate(Activation activation, double x);

/// Where results are rounded to the dtype on the way (f32: both are the same).
enum class Numerics : std::uint8_t {
  match,  ///< after each linear, after the activation, after the product: where the unfused framework rounds
  fast,   ///< once, at the hidden tensor; f32 from the first GEMM's sums through activation and product
};
std::string_view to_string(Numerics numerics);
Result<Numerics> parse_numerics(std::string_view name);

struct Mlp {
  std::int64_t dim = 0;     ///< width of input and output, 1 to max_width
  std::int64_t hidden = 0;  ///< width between the linears, 1 to max_width; gated: of gate and of up each
  Activation activation = Activation::relu;
  bool gated = false;
  bool bias = true;  ///< linears may carry a bias; false: none does
  DType dtype = DType::f32;

  bool operator==(const Mlp&) const = default;
};

inline constexpr std::int64_t max_width = 2147483647;  ///< BLAS interfaces take 32-bit sizes

/// Error invalid_argument for the first field that is off: "dim: 0 is not accepted, give 1 to 2147483647".
/// Checks that every tensor's bytes (weights, input, hidden, packed gate and up) fit in 63 bits.
Result<void> validate(const Mlp& mlp, std::int64_t tokens = 0);

/// "320 -> 1280 gelu_erf gated, bias, f32"
std::string to_string(const Mlp& mlp);

/// Weights and biases, elements.
std::int64_t parameter_count(const Mlp& mlp);
/// Floating point operations of the linears, 2 per multiply-add; double, since it may pass 2^63.
double flops(const Mlp& mlp, std::int64_t tokens);
/// Bytes that must cross the memory bus whatever the fusion: input, weights and biases read once, output
/// written.
double least_bytes(const Mlp& mlp, std::int64_t tokens);

/// One feed-forward block of a published model. Shapes from the models' configuration files.
struct KnownModel {
  std::string_view name;   ///< for `--model`, e.g. "wan2.1-1.3b"
  std::string_view title;  ///< as people say it, and which block of it
  Mlp mlp;
  std::int64_t tokens = 0;  ///< per forward at the size in `at`
  std::string_view at;      ///< resolution, frames, batch those tokens stand for
  int blocks = 0;           ///< such feed-forwards in one forward of the model
  std::string_view gate;    ///< gated: how its weights lie, "packed, value first" …; "" when not gated
};
const std::vector<KnownModel>& known_models();
/// Error invalid_argument: suggests the nearest name.
Result<KnownModel> find_model(std::string_view name);

}  // namespace ingot
