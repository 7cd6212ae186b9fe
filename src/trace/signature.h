// SPDX-License-Identifier: Apache-2.0
//
// Shapes and types of an operator call, from the JSON text the profiler recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/trace.h"

namespace ingot::trace {

/// One argument of an operator. A scalar or missing argument has no dimensions; a tensor list is flattened
/// into as many tensors, `is_list` on each.
struct Argument {
  std::vector<std::int64_t> dims;
  std::string_view dtype;  ///< Ingot's word (bf16, f16, f32, f64, fp8, i64, …); "" unknown or not a tensor
  std::string concrete;    ///< scalar value as text; "" none
  bool is_list = false;

  bool is_tensor() const { return !dims.empty(); }
  std::int64_t numel() const;  ///< 1 for no dimensions; saturates
};

using Signature = std::vector<Argument>;

/// Ingot's word for a type as the profiler writes it ("c10::BFloat16" → "bf16"); "" for what is not a number
/// type.
std::string_view dtype_word(std::string_view profiler_type);
/// Bytes of one element of a type word; 0 for an unknown one.
int dtype_bytes(std::string_view word);

/// Parses the three texts; an unparsable text yields no arguments (shapes unknown), never a wrong shape.
Signature parse_signature(std::string_view dims, std::string_view types, std::string_view concrete);

/// Signatures by operator row, each distinct combination of texts parsed once.
class Signatures {
 public:
  explicit Signatures(const Trace& trace) : trace_(trace) {}
  /// Empty when shapes were not recorded.
  const Signature& of(std::uint32_t op);

 private:
  struct Key {
    StringId dims, types, concrete;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t mixed = (static_cast<std::uint64_t>(key.dims) << 32U) ^
                                  (static_cast<std::uint64_t>(key.types) << 16U) ^ key.concrete;
      return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15ULL);
    }
  };
  const Trace& trace_;
  std::unordered_map<Key, Signature, Hash> parsed_;
};

/// Shape of the matrix product an operator computes, in PyTorch's terms: y[m,n] = x[m,k] · w[k,n].
struct MatmulShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view dtype;  ///< of x; static text
  bool bias = false;
};
/// Of aten::linear, mm, addmm, _addmm_activation, bmm, baddbmm, matmul, mv, dot, _scaled_mm and their out
/// forms; unset for any other operator or where the shapes do not fit one.
std::optional<MatmulShape> matmul_shape(std::string_view op, const Signature& signature);

}  // namespace ingot::trace
