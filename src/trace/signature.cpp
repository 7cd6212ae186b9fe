// SPDX-License-Identifier: Apache-2.0
#include "trace/signature.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace ingot::trace {

namespace {

struct TypeRow {
  std::string_view profiler, word;
  int bytes;
};
constexpr TypeRow type_rows[] = {
    {"c10::BFloat16", "bf16", 2},
    {"c10::Half", "f16", 2},
    {"float", "f32", 4},
    {"double", "f64", 8},
    {"c10::Float8_e4m3fn", "fp8", 1},
    {"c10::Float8_e5m2", "fp8", 1},
    {"c10::Float8_e4m3fnuz", "fp8", 1},
    {"c10::Float8_e5m2fnuz", "fp8", 1},
    {"c10::complex<float>", "c64", 8},
    {"c10::complex<double>", "c128", 16},
    {"long", "i64", 8},
    {"long int", "i64", 8},
    {"int", "i32", 4},
    {"short", "i16", 2},
    {"short int", "i16", 2},
    {"signed char", "i8", 1},
    {"unsigned char", "u8", 1},
    {"bool", "bool", 1},
};

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

using Json = nlohmann::json;

Json parse_or_null(std::string_view text) {
  // The profiler's own nesting is three deep; anything far deeper is not a shape.
  if (std::count(text.begin(), text.end(), '[') > 4096) return nullptr;
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_array() ? parsed : Json(nullptr);
}

/// "[8192, 768]" as numbers; false when it is not a flat list of sizes.
bool read_dims(const Json& value, std::vector<std::int64_t>& dims) {
  if (!value.is_array()) return false;
  for (const Json& size : value) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < 0) return false;
    dims.push_back(size.get<std::int64_t>());
  }
  return true;
}

std::int64_t rows_of(const Argument& tensor) {  // product of all dimensions but the last
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.dims.size(); ++i) rows = saturating_product(rows, tensor.dims[i]);
  return rows;
}

std::optional<MatmulShape> product_of(const Signature& signature, std::size_t x_at, std::size_t w_at,
                                      bool bias) {
  if (signature.size() <= std::max(x_at, w_at)) return std::nullopt;
  const Argument& x = signature[x_at];
  const Argument& w = signature[w_at];
  if (x.dims.size() != 2 || w.dims.size() != 2 || x.dims[1] != w.dims[0]) return std::nullopt;
  return MatmulShape{
      .m = x.dims[0], .n = w.dims[1], .k = x.dims[1], .batch = 1, .dtype = x.dtype, .bias = bias};
}

std::optional<MatmulShape> batched_product(const Signature& signature, std::size_t x_at, std::size_t w_at) {
  if (signature.size() <= std::max(x_at, w_at)) return std::nullopt;
  const Argument& x = signature[x_at];
  const Argument& w = signature[w_at];
  if (x.dims.size() != 3 || w.dims.size() != 3 || x.dims[0] != w.dims[0] || x.dims[2] != w.dims[1])
    return std::nullopt;
  return MatmulShape{
      .m = x.dims[1], .n = w.dims[2], .k = x.dims[2], .batch = x.dims[0], .dtype = x.dtype, .bias = false};
}

}  // namespace

std::int64_t Argument::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : dims) product = saturating_product(product, size);
  return product;
}

std::string_view dtype_word(std::string_view profiler_type) {
  for (const TypeRow& row : type_rows) {
    if (row.profiler == profiler_type) return row.word;
  }
  return "";
}

int dtype_bytes(std::string_view word) {
  for (const TypeRow& row : type_rows) {
    if (row.word == word) return row.bytes;
  }
  return 0;
}

Signature parse_signature(std::string_view dims, std::string_view types, std::string_view concrete) {
  Signature signature;
  const Json dims_json = parse_or_null(dims);
  if (dims_json.is_null()) return signature;
  const Json types_json = parse_or_null(types);
  const Json concrete_json = parse_or_null(concrete);
  const auto text_at = [](const Json& list, std::size_t at) {
    return list.is_array() && at < list.size() && list[at].is_string() ? list[at].get<std::string>()
                                                                       : std::string();
  };
  for (std::size_t i = 0; i < dims_json.size(); ++i) {
    const Json& entry = dims_json[i];
    if (entry.is_array() && !entry.empty() && entry[0].is_array()) {
      for (const Json& tensor : entry) {
        Argument argument{.dims = {}, .dtype = {}, .concrete = {}, .is_list = true};
        if (!read_dims(tensor, argument.dims)) return {};
        signature.push_back(std::move(argument));
      }
      continue;
    }
    Argument argument;
    if (!read_dims(entry, argument.dims)) return {};
    argument.dtype = dtype_word(text_at(types_json, i));
    argument.concrete = text_at(concrete_json, i);
    signature.push_back(std::move(argument));
  }
  return signature;
}

const Signature& Signatures::of(std::uint32_t op) {
  const auto& ops = trace_.ops;
  const Key key{ops.dims[op], ops.types[op], ops.concrete[op]};
  const auto [at, fresh] = parsed_.try_emplace(key);
  if (fresh && key.dims != 0) {
    at->second =
        parse_signature(trace_.strings[key.dims], trace_.strings[key.types], trace_.strings[key.concrete]);
  }
  return at->second;
}

std::optional<MatmulShape> matmul_shape(std::string_view op, const Signature& signature) {
  if (op == "aten::linear") {  // (input [*, k], weight [n, k], bias [n]?)
    if (signature.size() < 2) return std::nullopt;
    const Argument& x = signature[0];
    const Argument& w = signature[1];
    if (x.dims.empty() || w.dims.size() != 2 || x.dims.back() != w.dims[1]) return std::nullopt;
    const bool bias = signature.size() > 2 && signature[2].is_tensor();
    return MatmulShape{
        .m = rows_of(x), .n = w.dims[0], .k = w.dims[1], .batch = 1, .dtype = x.dtype, .bias = bias};
  }
  if (op == "aten::mm" || op == "aten::_scaled_mm") return product_of(signature, 0, 1, false);
  if (op == "aten::addmm" || op == "aten::_addmm_activation") {
    std::optional<MatmulShape> shape = product_of(signature, 1, 2, false);
    // A first argument as large as the result is a matrix to add to, not a bias.
    if (shape) shape->bias = signature[0].is_tensor() && signature[0].numel() == shape->n;
    return shape;
  }
  if (op == "aten::bmm") return batched_product(signature, 0, 1);
  if (op == "aten::baddbmm") return batched_product(signature, 1, 2);
  if (op == "aten::matmul") {  // against a shared matrix only: [*, k] · [k, n]
    if (signature.size() < 2) return std::nullopt;
    const Argument& x = signature[0];
    const Argument& w = signature[1];
    if (x.dims.empty() || w.dims.size() != 2 || x.dims.back() != w.dims[0]) return std::nullopt;
    return MatmulShape{
        .m = rows_of(x), .n = w.dims[1], .k = w.dims[0], .batch = 1, .dtype = x.dtype, .bias = false};
  }
  if (op == "aten::mv") {
    if (signature.size() < 2 || signature[0].dims.size() != 2 || signature[1].dims.size() != 1)
      return std::nullopt;
    return MatmulShape{.m = 1,
                       .n = signature[0].dims[0],
                       .k = signature[0].dims[1],
                       .batch = 1,
                       .dtype = signature[0].dtype,
                       .bias = false};
  }
  return std::nullopt;
}

}  // namespace ingot::trace
