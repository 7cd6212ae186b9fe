// SPDX-License-Identifier: Apache-2.0
//
// The tables decode() goes through. A Rule recognises a kernel and says what it does; where a name carries
// more (tiles, types, fused operators), the rule names a grammar that reads it, most of them a table of
// TokenRules in turn. A new kernel, token or operator is one row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/kernel_name.h"
#include "trace/kernel_name_text.h"

namespace ingot::trace::names {

struct Context {
  const Signature& signature;
  std::string_view word;  ///< the identifier in which the rule's pattern was found
  KernelName& out;        ///< family, kind, fused already filled from the rule
};
using Grammar = void (*)(Context&);

struct Rule {
  /// "^x": the qualified name begins with x; "=x": its last component is x; "~x": its last component begins
  /// with x;
  /// "*x": an identifier anywhere in the text holds x; else an identifier anywhere in the text begins with
  /// it.
  std::string_view pattern;
  std::string_view family = {};
  KernelKind kind = KernelKind::unknown;
  std::string_view label = {};  ///< short name; "" : built from family, tile, operators and type
  std::string_view ops = {};    ///< fused operators, separated by blanks
  Grammar grammar = nullptr;    ///< null: the element type is the first floating template argument
};

// In the order they are tried; the first row that matches wins.
std::span<const Rule> triton_rules();
std::span<const Rule> gemm_rules();
std::span<const Rule> rocm_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> cudnn_rules();
std::span<const Rule> aten_rules();
/// Library kernels by what their name says they do, whatever the spelling: patterns are matched anywhere in
/// the qualified name, lower-cased and without '_'. Family comes from the namespace.
std::span<const Rule> role_rules();
std::string_view family_of_namespace(std::string_view qualified_name);

/// What a token of a '_'-separated name means.
enum class Meaning {
  drop,         ///< known, and nothing worth showing
  flag,         ///< shown as `value`, or as it is
  arch,         ///< `value` in front of the token behind the pattern's literal part, or the token as it is
  tile,         ///< m, n and perhaps k
  pair,         ///< two numbers: tile, then k and stages, then cluster
  triple,       ///< three numbers: tile, then cluster
  wide_triple,  ///< three numbers: tile, then a flag (warp tile)
  cluster,
  stages,
  alignment,
  layout,
  split_k,
  bias,
  fused,  ///< operator `value`
};
struct TokenRule {
  std::string_view pattern;  ///< as for match()
  Meaning meaning;
  std::string_view value = {};
};

/// What read_tokens() cannot place by itself: types and the math core, whose roles differ by family.
struct Tokens {
  std::vector<std::string_view> types_before, types_after;  ///< element types before and behind the core
  std::vector<std::vector<std::string_view>> runs;          ///< "bf16bf16" → {bf16, bf16}
  std::string_view core;                                    ///< "s16816gemm"; "" none
};
/// Reads the tokens of `word` into `out`; a token no row matches is dropped.
Tokens read_tokens(std::string_view word, std::span<const TokenRule> table, KernelName& out);

void add_fused(KernelName& out, std::string_view blank_separated_ops);
/// One operand type, or "a*b" where the operands differ.
std::string operands(std::string_view a, std::string_view b);
bool has_flag(const KernelName& name, std::string_view flag);

}  // namespace ingot::trace::names
