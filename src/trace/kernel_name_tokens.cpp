// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "trace/kernel_name_rules.h"

namespace ingot::trace::names {
namespace {

constexpr std::string_view kCoreOps[] = {"gemm", "cudnn", "fprop", "dgrad", "wgrad"};

// "s16816gemm", "sgemm", "s64x128x16gemm", "s1688tf32gemm", "s16816fprop", "gemm".
bool is_core(std::string_view token) {
  for (const std::string_view op : kCoreOps) {
    if (!token.ends_with(op)) continue;
    token.remove_suffix(op.size());
    if (token.empty()) return true;
    if (std::string_view("shdicz").find(token[0]) == std::string_view::npos) return false;
    token.remove_prefix(1);
    while (!token.empty() && ((token[0] >= '0' && token[0] <= '9') || token[0] == 'x'))
      token.remove_prefix(1);
    return token.empty() || !dtype_of(token).empty();
  }
  return false;
}

// How many two- and three-number tokens have been placed.
struct Placed {
  int pairs = 0, triples = 0;
};

void set_cluster(KernelName& out, const Numbers& numbers) {
  out.cluster_m = numbers.value[0];
  out.cluster_n = numbers.value[1];
}

void set_tile(KernelName& out, const Numbers& numbers) {
  out.tile = TileShape{numbers.value[0], numbers.value[1], numbers.count > 2 ? numbers.value[2] : 0};
}

void place_pair(KernelName& out, const Numbers& numbers, int index) {
  if (index == 0 && !out.tile) {
    set_tile(out, numbers);
  } else if (index <= 1 && out.tile) {
    out.tile->k = numbers.value[0];
    out.stages = numbers.value[1];
  } else {
    set_cluster(out, numbers);
  }
}

void place(const TokenRule& row, std::string_view token, const Numbers& numbers, Placed& placed,
           KernelName& out) {
  switch (row.meaning) {
    case Meaning::drop:
      break;
    case Meaning::flag:
      out.flags.emplace_back(row.value.empty() ? token : row.value);
      break;
    case Meaning::arch:
      if (row.value.empty()) {
        out.arch = token;
      } else {
        out.arch = fmt::format("{}{}", row.value, token.substr(row.pattern.find_first_of("#%*")));
      }
      break;
    case Meaning::tile:
      set_tile(out, numbers);
      break;
    case Meaning::pair:
      place_pair(out, numbers, placed.pairs++);
      break;
    case Meaning::triple:
      if (placed.triples++ == 0) {
        set_tile(out, numbers);
      } else {
        set_cluster(out, numbers);
      }
      break;
    case Meaning::wide_triple:
      if (placed.triples++ == 0) {
        set_tile(out, numbers);
      } else {
        out.flags.push_back(fmt::format("warp{}", token));
      }
      break;
    case Meaning::cluster:
      set_cluster(out, numbers);
      break;
    case Meaning::stages:
      out.stages = numbers.value[0];
      break;
    case Meaning::alignment:
      out.alignment = numbers.value[0];
      break;
    case Meaning::layout:
      if (out.layout.empty()) out.layout = lower(token.substr(0, 2));
      break;
    case Meaning::split_k:
      out.split_k = true;
      break;
    case Meaning::bias:
      out.bias = true;
      break;
    case Meaning::fused:
      add_fused(out, row.value);
      break;
  }
}

}  // namespace

Tokens read_tokens(std::string_view word, std::span<const TokenRule> table, KernelName& out) {
  Tokens tokens;
  Placed placed;
  for (const std::string_view token : split(word, '_')) {
    auto& types = tokens.core.empty() ? tokens.types_before : tokens.types_after;
    const auto* row = std::find_if(table.data(), table.data() + table.size(), [&](const TokenRule& rule) {
      return rule.pattern != "*" && match(rule.pattern, token).has_value();
    });
    if (row != table.data() + table.size()) {
      place(*row, token, *match(row->pattern, token), placed, out);
    } else if (is_core(token) && tokens.core.empty()) {
      tokens.core = token;
    } else if (const std::string_view dtype = dtype_of(token); !dtype.empty()) {
      types.push_back(dtype);
    } else if (token == "void") {
      types.push_back("void");
    } else if (auto run = dtype_run(token); run.size() > 1) {
      tokens.runs.push_back(std::move(run));
    } else if (!table.empty() && table.back().pattern == "*") {
      place(table.back(), token, Numbers{}, placed, out);
    }
  }
  return tokens;
}

void add_fused(KernelName& out, std::string_view blank_separated_ops) {
  for (const std::string_view op : split(blank_separated_ops, ' ')) out.fused.emplace_back(op);
}

std::string operands(std::string_view a, std::string_view b) {
  return a == b || b.empty() ? std::string(a) : fmt::format("{}*{}", a, b);
}

bool has_flag(const KernelName& name, std::string_view flag) {
  return std::ranges::find(name.flags, flag) != name.flags.end();
}

}  // namespace ingot::trace::names
