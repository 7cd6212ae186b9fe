// SPDX-License-Identifier: Apache-2.0
#include "cpu/layout.h"

#include <limits>

#include "cpu/buffer.h"

namespace ingot::cpu {

namespace {

// Sizes that do not fit saturate: no buffer is that large, so that run() refuses.
constexpr std::size_t too_much = std::numeric_limits<std::size_t>::max();

std::size_t times(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? too_much : product;
}
std::size_t plus(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? too_much : sum;
}
std::size_t lines(std::size_t bytes) {
  return bytes > too_much - cache_line ? too_much : round_up(bytes);
}

}  // namespace

Operands operands(DType dtype, bool native_bf16) {
  if (dtype == DType::f32) return Operands::f32;
  return native_bf16 && dtype == DType::bf16 ? Operands::bf16 : Operands::widened;
}

Layout layout(const Mlp& mlp, std::int64_t tokens, Rung rung, const Tile& tile, const CpuDescription& cpu) {
  const bool narrow = mlp.dtype != DType::f32;
  const Operands read = operands(mlp.dtype, cpu.native_bf16);
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t linears = mlp.gated ? 2 : 1;
  const std::size_t rows = size(std::min(tokens, tile.tokens));
  const std::size_t element = size_of(mlp.dtype);

  Layout out;
  std::size_t held = 0;  // bytes of one intermediate
  std::size_t intermediates = 0;
  const bool separate = rung == Rung::matmul_add || rung == Rung::unfused;
  if (separate) {
    // `first` also takes the second matmul's output (matmul_add).
    const std::size_t width =
        std::max(linears * size(mlp.hidden), rung == Rung::matmul_add ? size(mlp.dim) : 0);
    held = lines(times(times(size(tokens), width), element));
    intermediates = 2;
  } else if (rung == Rung::epilogue) {
    held = lines(times(times(size(tokens), size(mlp.hidden)), element));
    intermediates = 1;
  }
  out.second = intermediates == 2 ? held : 0;
  out.scratch = times(held, intermediates);

  const bool tiles_sums = narrow || !separate;  // f32 sums of separate passes go straight to the intermediate
  out.x_elements = read == Operands::widened ? times(rows, size(mlp.dim)) : 0;
  out.tile_elements = tiles_sums ? times(rows, times(size(tile.hidden), separate ? 1 : linears)) : 0;
  out.sum_elements = narrow ? times(rows, size(split_width(mlp.dim, tile.splits))) : 0;
  out.weight_elements = read == Operands::widened ? static_cast<std::size_t>(weight_block) : 0;
  out.hidden_elements = read == Operands::bf16 && rung == Rung::one_pass ? times(rows, size(tile.hidden)) : 0;
  const auto room = [](std::size_t elements) { return lines(times(elements, sizeof(float))); };
  out.scratch_bytes = plus(plus(plus(room(out.x_elements), room(out.tile_elements)),
                                plus(room(out.sum_elements), room(out.weight_elements))),
                           lines(times(out.hidden_elements, element)));
  out.bytes = plus(out.scratch, times(out.scratch_bytes, size(cpu.threads)));
  return out;
}

}  // namespace ingot::cpu
