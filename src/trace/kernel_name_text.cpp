// SPDX-License-Identifier: Apache-2.0
#include "trace/kernel_name_text.h"

#include <algorithm>
#include <charconv>

#include "ingot/kernel_name.h"

namespace ingot::trace::names {
namespace {

struct Spelling {
  std::string_view text, dtype;
};

// Element types without their namespace, as sources, mangled names and name grammars spell them.
constexpr Spelling kSpellings[] = {
    {"bf16", "bf16"},
    {"bfloat16", "bf16"},
    {"Bfloat16", "bf16"},
    {"BFloat16", "bf16"},
    {"__nv_bfloat16", "bf16"},
    {"nv_bfloat16", "bf16"},
    {"__hip_bfloat16", "bf16"},
    {"hip_bfloat16", "bf16"},
    {"bfloat16_t", "bf16"},
    {"__bf16", "bf16"},
    {"DF16b", "bf16"},
    {"f16", "f16"},
    {"fp16", "f16"},
    {"Fp16", "f16"},
    {"float16", "f16"},
    {"half", "f16"},
    {"Half", "f16"},
    {"__half", "f16"},
    {"half_t", "f16"},
    {"_Float16", "f16"},
    {"f32", "f32"},
    {"fp32", "f32"},
    {"Fp32", "f32"},
    {"float", "f32"},
    {"float32", "f32"},
    {"tf32", "tf32"},
    {"tfloat32_t", "tf32"},
    {"f64", "f64"},
    {"fp64", "f64"},
    {"double", "f64"},
    {"e4m3", "fp8"},
    {"e5m2", "fp8"},
    {"fp8", "fp8"},
    {"E4m3", "fp8"},
    {"E5m2", "fp8"},
    {"MxE4m3", "fp8"},
    {"MxE5m2", "fp8"},
    {"fp8e4nv", "fp8"},
    {"fp8e5", "fp8"},
    {"Float8_e4m3fn", "fp8"},
    {"Float8_e4m3fnuz", "fp8"},
    {"Float8_e5m2", "fp8"},
    {"Float8_e5m2fnuz", "fp8"},
    {"__nv_fp8_e4m3", "fp8"},
    {"__nv_fp8_e5m2", "fp8"},
    {"float_e4m3_t", "fp8"},
    {"float_e5m2_t", "fp8"},
    {"f8", "fp8"},
    {"e2m1", "fp4"},
    {"E2m1", "fp4"},
    {"MxE2m1", "fp4"},
    {"f4", "fp4"},
    {"fp4", "fp4"},
    {"mxfp4", "fp4"},
    {"nvfp4", "fp4"},
    {"float_e2m1_t", "fp4"},
    {"__nv_fp4_e2m1", "fp4"},
    {"ue4m3xf4", "fp4"},
    {"ue4m3xe2m1", "fp4"},
    {"ue8m0xf4", "fp4"},
    {"ue8m0xe2m1", "fp4"},
    {"ue8m0xe4m3", "fp8"},
    {"ue8m0xe5m2", "fp8"},
    {"ue8m0xf8", "fp8"},
    {"s8", "i8"},
    {"i8", "i8"},
    {"int8", "i8"},
    {"int8_t", "i8"},
    {"signed char", "i8"},
    {"u8", "u8"},
    {"uint8", "u8"},
    {"uint8_t", "u8"},
    {"unsigned char", "u8"},
    {"short", "i16"},
    {"s32", "i32"},
    {"i32", "i32"},
    {"int", "i32"},
    {"int32", "i32"},
    {"long", "i64"},
    {"long long", "i64"},
    {"int64", "i64"},
    {"bool", "bool"},
};

// The types xmma names string together, longest first where one begins another.
constexpr Spelling kRunTypes[] = {
    {"bf16", "bf16"}, {"tf32", "tf32"}, {"f16", "f16"}, {"f32", "f32"}, {"f64", "f64"},
    {"e4m3", "fp8"},  {"e5m2", "fp8"},  {"i32", "i32"}, {"i8", "i8"},
};

// How compilers print an unnamed namespace.
constexpr std::string_view kUnnamed[] = {"(anonymous namespace)::", "{anonymous}::", "<unnamed>::"};

std::size_t unnamed_at(std::string_view rest) {
  for (const std::string_view text : kUnnamed) {
    if (rest.starts_with(text)) return text.size();
  }
  return 0;
}

}  // namespace

std::string clean(std::string_view name) {
  std::string text = demangle(name.substr(0, kMaxName));
  if (text.size() > kMaxName) text.resize(kMaxName);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

void parse_signature(std::string_view text, Signature& signature) {
  signature.full = text;
  signature.head.clear();
  signature.template_args = {};
  if (text.find_first_of("<(") == std::string_view::npos) {
    signature.head = text;
  } else {
    std::size_t angle = 0, round = 0, args_begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool outside = angle == 0 && round == 0;
      if (outside) {
        if (const std::size_t skip = unnamed_at(text.substr(i)); skip != 0) {
          i += skip - 1;
          continue;
        }
      }
      if (c == '(') {
        if (outside && !signature.head.empty()) break;  // the parameters
        ++round;
      } else if (c == ')') {
        if (round > 0) --round;
      } else if (c == '<' && round == 0) {  // brackets inside parentheses are balanced by them
        if (angle++ == 0) args_begin = i + 1;
        if (angle == 1) signature.template_args = text.substr(args_begin);
      } else if (c == '>' && round == 0) {
        if (angle > 0 && --angle == 0) signature.template_args = text.substr(args_begin, i - args_begin);
      } else if (outside) {
        if (c == ' ') {  // what came before was the return type
          signature.head.clear();
          signature.template_args = {};
        } else {
          signature.head += c;
        }
      }
    }
  }
  const std::size_t colon = signature.head.rfind("::");
  signature.base = std::string_view(signature.head).substr(colon == std::string::npos ? 0 : colon + 2);
}

std::optional<Numbers> match(std::string_view pattern, std::string_view text) {
  Numbers numbers;
  std::size_t at = 0;
  for (const char p : pattern) {
    if (p == '*') return numbers;
    if (at >= text.size()) return std::nullopt;
    if (p == '#') {
      int value = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
      if (error != std::errc() || text[at] == '-') return std::nullopt;
      at = static_cast<std::size_t>(end - text.data());
      if (numbers.count < numbers.value.size()) numbers.value[numbers.count++] = value;
    } else if (p == '%') {
      if (std::string_view("ntNT").find(text[at]) == std::string_view::npos) return std::nullopt;
      ++at;
    } else {
      if (text[at] != p) return std::nullopt;
      ++at;
    }
  }
  if (at != text.size()) return std::nullopt;
  return numbers;
}

std::string_view dtype_of(std::string_view spelling) {
  if (const std::size_t colon = spelling.rfind("::"); colon != std::string_view::npos)
    spelling.remove_prefix(colon + 2);
  for (const Spelling& row : kSpellings) {
    if (row.text == spelling) return row.dtype;
  }
  return {};
}

bool is_floating(std::string_view dtype) {
  return dtype.starts_with("bf") || dtype.starts_with("f") || dtype.starts_with("tf");
}

std::vector<std::string_view> dtype_run(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto* row = std::find_if(std::begin(kRunTypes), std::end(kRunTypes),
                                   [&](const Spelling& type) { return text.starts_with(type.text); });
    if (row == std::end(kRunTypes)) return {};
    out.push_back(row->dtype);
    text.remove_prefix(row->text.size());
  }
  return out;
}

std::string_view dtype_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && (is_identifier(text[end]) || text[end] == ':')) ++end;
  return dtype_of(text.substr(begin, end - begin));
}

std::string_view first_floating_argument(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 0 && std::string_view("<,( ").find(text[i - 1]) == std::string_view::npos) continue;
    std::size_t end = i;
    while (end < text.size() && (is_identifier(text[end]) || text[end] == ':')) ++end;
    if (end == i) continue;
    const std::string_view dtype = dtype_of(text.substr(i, end - i));
    std::string_view rest = text.substr(end);
    if (rest.starts_with(" const")) rest.remove_prefix(6);
    if (is_floating(dtype) &&
        (rest.empty() || std::string_view(",>)").find(rest[0]) != std::string_view::npos)) {
      return dtype;
    }
    i = end - 1;
  }
  return {};
}

bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::size_t find_identifier(std::string_view text, std::string_view part) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) {
    if (at == 0 || !is_identifier(text[at - 1])) return at;
  }
  return std::string_view::npos;
}

std::string_view identifier_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_identifier(text[end])) ++end;
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  if (text.empty()) return out;
  while (true) {
    const std::size_t at = text.find(separator);
    if (at != 0) out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
    if (text.empty()) return out;
  }
}

std::vector<std::string_view> arguments_at(std::string_view text, std::size_t begin) {
  std::vector<std::string_view> out;
  std::size_t depth = 0, from = begin;
  const auto push = [&](std::size_t end) {
    std::string_view argument = text.substr(from, end - from);
    while (argument.starts_with(' ')) argument.remove_prefix(1);
    while (argument.ends_with(' ')) argument.remove_suffix(1);
    if (argument.ends_with(" const")) argument.remove_suffix(6);
    out.push_back(argument);
    from = end + 1;
  };
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{') {
      ++depth;
    } else if (c == '>' || c == ')' || c == '}') {
      if (depth == 0) {
        push(i);
        return out;
      }
      --depth;
    } else if (c == ',' && depth == 0) {
      push(i);
    }
  }
  if (from <= text.size()) push(text.size());
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string shorten(std::string_view text, std::size_t columns) {
  if (text.size() <= columns) return std::string(text);
  return std::string(text.substr(0, columns - 1)) + '~';
}

}  // namespace ingot::trace::names
