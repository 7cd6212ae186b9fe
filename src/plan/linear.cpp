// SPDX-License-Identifier: Apache-2.0
#include "plan/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "plan/label_reader.h"

namespace ingot {

namespace {

bool whole_rows(std::int64_t width, DType dtype) {
  return width % static_cast<std::int64_t>(16 / size_of(dtype)) == 0;
}

LinearSpec spec(const Mlp& mlp, std::int64_t out, std::int64_t in, Numerics numerics, bool aligned) {
  LinearSpec linear;
  linear.out = out;
  linear.in = in;
  linear.bias = mlp.bias;
  linear.dtype = mlp.dtype;
  linear.numerics = numerics;
  linear.aligned = aligned && whole_rows(in, mlp.dtype) && whole_rows(out, mlp.dtype);
  return linear;
}

std::string text(const sm90::GemmTile& t) {
  std::string out = fmt::format("g{}x{}x{}s{}c{}{}", t.consumers, t.subtiles, t.cols, t.stages,
                                t.cluster_rows, t.cluster_cols);
  if (t.splits > 1) out += fmt::format("k{}", t.splits);
  if (t.epilogue_warps) out += 'e';
  if (t.lag > 0) out += fmt::format("l{}", t.lag);
  return out;
}
std::string text(const sm90::FewTile& t) {
  std::string out = fmt::format("f{}x{}x{}s{}", t.feature_warpgroups, t.k_warpgroups, t.tokens, t.stages);
  if (t.share > 1) out += fmt::format("h{}", t.share);
  if (t.splits > 1) out += fmt::format("k{}", t.splits);
  return out;
}
std::string text(const sm80::Tile& t) {
  return fmt::format("p{}x{}x{}s{}w{}x{}", t.rows, t.cols, t.block_k, t.stages, t.warp_rows, t.warp_cols);
}

sm90::GemmTile read_gemm(LabelReader& in) {
  sm90::GemmTile t{};
  t.consumers = in.number();
  t.subtiles = in.number_after('x');
  t.cols = in.number_after('x');
  t.stages = in.number_after('s');
  in.expect('c');
  t.cluster_rows = in.number(1);  // one digit each, nothing between them
  t.cluster_cols = in.number(1);
  t.splits = in.next_is('k') ? in.number() : 1;
  t.epilogue_warps = in.next_is('e');
  t.lag = in.next_is('l') ? in.number() : 0;
  return t;
}
sm90::FewTile read_few(LabelReader& in) {
  sm90::FewTile t{};
  t.feature_warpgroups = in.number();
  t.k_warpgroups = in.number_after('x');
  t.tokens = in.number_after('x');
  t.stages = in.number_after('s');
  t.share = in.next_is('h') ? in.number() : 1;
  t.splits = in.next_is('k') ? in.number() : 1;
  return t;
}
sm80::Tile read_portable(LabelReader& in) {
  sm80::Tile t{};
  t.rows = in.number();
  t.cols = in.number_after('x');
  t.block_k = in.number_after('x');
  t.stages = in.number_after('s');
  t.warp_rows = in.number_after('w');
  t.warp_cols = in.number_after('x');
  return t;
}

}  // namespace

LinearSpec first_linear(const Mlp& mlp, bool gate_first, Numerics numerics, bool aligned) {
  LinearSpec linear = spec(mlp, mlp.hidden, mlp.dim, numerics, aligned);
  linear.activation = mlp.activation;
  linear.gated = mlp.gated;
  linear.gate_first = gate_first || !mlp.gated;  // one text for what makes no difference
  return linear;
}

LinearSpec second_linear(const Mlp& mlp, Numerics numerics, bool aligned) {
  return spec(mlp, mlp.dim, mlp.hidden, numerics, aligned);
}

std::string label(const KernelTile& tile) {
  return std::visit([](const auto& t) { return text(t); }, tile);
}

Result<KernelTile> parse_tile(std::string_view label) {
  LabelReader in(label.substr(label.empty() ? 0 : 1));
  KernelTile tile;
  const char kind = label.empty() ? ' ' : label.front();
  if (kind == 'g') tile = read_gemm(in);
  if (kind == 'f') tile = read_few(in);
  if (kind == 'p') tile = read_portable(in);
  if ((kind != 'g' && kind != 'f' && kind != 'p') || !in.done()) {
    return Error{ErrorCode::invalid_argument, fmt::format("tile: '{}' is no label of a tile", label)};
  }
  return tile;
}

TokenClass token_class(std::int64_t tokens) {
  constexpr std::int64_t most = std::int64_t{1} << 62U;  // no tensor has more rows
  tokens = std::clamp<std::int64_t>(tokens, 1, most);
  const auto below = static_cast<std::uint64_t>(tokens - 1);
  if (below < 64) return {tokens, tokens + 1, static_cast<int>(below)};
  // 2^e <= below < 2^(e+1): steps of 2^(e-5), 32 of them.
  const int shift = static_cast<int>(std::bit_width(below)) - 6;
  const std::uint64_t step = below >> static_cast<unsigned>(shift);  // 32 to 63
  const auto last = static_cast<std::int64_t>((step + 1) << static_cast<unsigned>(shift));
  return {last, last + 1, 64 + 32 * (shift - 1) + static_cast<int>(step - 32)};
}

}  // namespace ingot
