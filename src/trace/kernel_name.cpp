// SPDX-License-Identifier: Apache-2.0
#include "ingot/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace {
namespace {

using names::Rule;
using names::Signature;

constexpr std::size_t kShortName = 60;

struct Hit {
  const Rule* rule = nullptr;
  std::string_view word;
};

// The whole identifier around `at`.
std::string_view identifier_around(std::string_view text, std::size_t at) {
  while (at > 0 && names::is_identifier(text[at - 1])) --at;
  return names::identifier_at(text, at);
}

// Where the rule's pattern is in the name, as the identifier it was found in; empty when it is not. Function
// names
// ("=", "~") are short and common, so they count only in the namespace of the rule's own family, or in none.
std::string_view find(const Rule& rule, const Signature& signature, std::string_view owner) {
  const std::string_view head = signature.head;
  const std::string_view text = rule.pattern.substr(1);
  const bool foreign = !owner.empty() && owner != rule.family;
  if (foreign && (rule.pattern[0] == '=' || rule.pattern[0] == '~')) return {};
  switch (rule.pattern[0]) {
    case '^':
      return head.starts_with(text) ? names::identifier_at(head, 0) : std::string_view();
    case '=':
      return signature.base == text ? signature.base : std::string_view();
    case '~':
      return signature.base.starts_with(text) ? signature.base : std::string_view();
    case '*': {
      const std::size_t at = signature.full.find(text);
      return at == std::string_view::npos ? std::string_view() : identifier_around(signature.full, at);
    }
    default: {
      const std::size_t at = names::find_identifier(signature.full, rule.pattern);
      return at == std::string_view::npos ? std::string_view() : names::identifier_at(signature.full, at);
    }
  }
}

Hit find_rule(const Signature& signature) {
  const std::string_view owner = names::family_of_namespace(signature.head);
  for (const auto rules : {names::triton_rules(), names::attention_rules(), names::gemm_rules(),
                           names::rocm_rules(), names::cudnn_rules(), names::aten_rules()}) {
    for (const Rule& rule : rules) {
      if (const std::string_view word = find(rule, signature, owner); !word.empty()) return {&rule, word};
    }
  }
  return {};
}

// Wrappers that run any kernel: what it is stands in their arguments.
constexpr std::string_view kWrappers[] = {"cutlass::device_kernel", "cutlass::Kernel", "cutlass::Kernel2",
                                          "ck_tile::kentry"};

Hit find_role(const Signature& signature) {
  std::string_view subject = signature.head;
  if (std::ranges::find(kWrappers, subject) != std::end(kWrappers)) subject = signature.template_args;
  std::string plain = names::lower(subject);
  std::erase(plain, '_');
  for (const Rule& rule : names::role_rules()) {
    if (names::contains(plain, rule.pattern)) return {&rule, signature.base};
  }
  return {};
}

std::string joined_ops(const KernelName& name) {
  std::string out;
  for (const std::string& op : name.fused) {
    if (!out.empty()) out += "\u00b7";
    out += op;
  }
  return out;
}

// "nvjet 256x128x64 bf16", "mul scalar bf16", "rms_norm"; the name itself where nothing better is known.
std::string compose_short_name(const KernelName& name, const Signature& signature) {
  const bool tiled =
      name.tile.has_value() && (name.kind == KernelKind::gemm || name.kind == KernelKind::convolution ||
                                name.kind == KernelKind::gemm_helper);
  std::string out;
  if (tiled) {
    out = fmt::format("{} {}x{}", name.family, name.tile->m, name.tile->n);
    if (name.tile->k > 0) out += fmt::format("x{}", name.tile->k);
    if (!name.dtype.empty()) out += " " + name.dtype;
    if (name.kind == KernelKind::convolution) out += " conv";
    if (name.kind == KernelKind::gemm_helper) out += " reduce";
    if (name.split_k) out += " splitK";
    return out;
  }
  if (!name.fused.empty()) {
    out = joined_ops(name);
    if (names::has_flag(name, "scalar")) out += " scalar";
    if (!name.dtype.empty()) {
      out += " " + name.dtype;
    } else if (!name.out_dtype.empty()) {
      out += " to " + name.out_dtype;
    }
    return out;
  }
  return signature.base.empty() ? std::string(signature.full) : std::string(signature.base);
}

// At most kShortName characters, cut between characters ("·" is two bytes).
std::string cut(std::string text) {
  std::size_t columns = 0, end = 0;
  while (end < text.size()) {
    const std::size_t next = end + (static_cast<unsigned char>(text[end]) >= 0xC0 ? 2 : 1);
    if (++columns == kShortName && next < text.size()) return text.substr(0, end) + "~";
    end = next;
  }
  return text;
}

constexpr std::string_view kActivationOps[] = {"gelu_tanh", "gelu_erf", "gelu", "silu",
                                               "relu",      "sigmoid",  "tanh"};

}  // namespace

std::string_view to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::unknown:
      return "unknown";
    case KernelKind::gemm:
      return "gemm";
    case KernelKind::gemm_helper:
      return "gemm_helper";
    case KernelKind::attention:
      return "attention";
    case KernelKind::convolution:
      return "convolution";
    case KernelKind::norm:
      return "norm";
    case KernelKind::pointwise:
      return "pointwise";
    case KernelKind::reduction:
      return "reduction";
    case KernelKind::copy:
      return "copy";
    case KernelKind::communication:
      return "communication";
    case KernelKind::other:
      return "other";
  }
  return "unknown";
}

KernelName decode(std::string_view name) {
  const std::string text = names::clean(name);
  Signature signature;
  names::parse_signature(text, signature);
  KernelName out;
  Hit hit = find_rule(signature);
  if (hit.rule == nullptr) {
    hit = find_role(signature);
    out.family = names::family_of_namespace(signature.head);
  }
  if (hit.rule != nullptr) {
    if (!hit.rule->family.empty()) out.family = hit.rule->family;
    out.kind = hit.rule->kind;
    names::add_fused(out, hit.rule->ops);
    if (hit.rule->grammar != nullptr) {
      names::Context context{signature, hit.word, out};
      hit.rule->grammar(context);
    } else {
      out.dtype = names::first_floating_argument(signature.template_args);
    }
    if (out.short_name.empty()) out.short_name = hit.rule->label;
  }
  if (out.short_name.empty()) out.short_name = compose_short_name(out, signature);
  out.short_name = cut(std::move(out.short_name));
  return out;
}

std::string activation_of(const KernelName& kernel, std::string_view full_name) {
  if (full_name.starts_with("aten::")) {
    full_name.remove_prefix(6);
    if (full_name.ends_with('_')) full_name.remove_suffix(1);
    for (const std::string_view op : kActivationOps) {
      if (full_name == op) return std::string(op);
    }
    return {};
  }
  // tanh and a power in one fused kernel are somebody's own GELU, not a tanh layer.
  const auto has = [&](std::string_view op) {
    return std::ranges::find(kernel.fused, op) != kernel.fused.end();
  };
  for (const std::string_view op : kActivationOps) {
    if (has(op) && !(op == "tanh" && has("pow"))) return std::string(op);
  }
  return {};
}

}  // namespace ingot::trace
