// SPDX-License-Identifier: Apache-2.0
#include "cpu/run.h"

#include "cpu/gemm.h"

namespace ingot::cpu {

Run::Scratch Run::scratch(int slot) const {
  const Layout& layout = call_.layout;
  char* const start = base_ + layout.scratch + static_cast<std::size_t>(slot) * layout.scratch_bytes;
  char* const tile = start + round_up(layout.x_elements * sizeof(float));
  char* const sums = tile + round_up(layout.tile_elements * sizeof(float));
  char* const weights = sums + round_up(layout.sum_elements * sizeof(float));
  char* const hidden = weights + round_up(layout.weight_elements * sizeof(float));
  return {reinterpret_cast<float*>(start), reinterpret_cast<float*>(tile), reinterpret_cast<float*>(sums),
          reinterpret_cast<float*>(weights), reinterpret_cast<std::uint16_t*>(hidden)};
}

Rows<const void> Run::at(Rows<const void> in, std::int64_t row, std::int64_t column) const {
  const std::int64_t elements = row * in.stride + column;
  return {static_cast<const char*>(in.data) + elements * static_cast<std::int64_t>(element_), in.stride};
}
Rows<void> Run::at(Rows<void> out, std::int64_t row, std::int64_t column) const {
  const std::int64_t elements = row * out.stride + column;
  return {static_cast<char*>(out.data) + elements * static_cast<std::int64_t>(element_), out.stride};
}
Rows<void> Run::intermediate(std::size_t offset, std::int64_t width, std::int64_t column) const {
  return at(Rows<void>{base_ + offset, width}, 0, column);
}

/// The block's rows of x as the GEMMs read them: in place, or expanded into `room`.
Rows<const void> Run::x_tile(Block block, float* room) const {
  const Rows<const void> from = at(x_, block.row, 0);
  if (call_.operands != Operands::widened) return from;
  call_.passes.widen(mlp_.dtype, {block.rows, mlp_.dim}, from, {room, mlp_.dim});
  return {room, mlp_.dim};
}

/// c = a · Wᵀ for the rows `outputs` of W, columns `inputs`.
void Run::multiply(std::int64_t rows, Range outputs, Range inputs, Rows<const void> a,
                   const CpuLinear& linear, float* room, bool accumulate, Rows<float> c) {
  const std::int64_t first = outputs.begin * linear.stride + inputs.begin;
  switch (call_.operands) {
    case Operands::f32:
      multiply_f32(rows, outputs.size(), inputs.size(), {static_cast<const float*>(a.data), a.stride},
                   static_cast<const float*>(linear.weight) + first, linear.stride, accumulate, c);
      break;
    case Operands::widened:
      multiply_widened(rows, outputs, inputs, {static_cast<const float*>(a.data), a.stride}, linear, room,
                       accumulate, c);
      break;
    case Operands::bf16:
      if (!gemm_bf16(rows, outputs.size(), inputs.size(), static_cast<const std::uint16_t*>(a.data), a.stride,
                     static_cast<const std::uint16_t*>(linear.weight) + first, linear.stride, accumulate,
                     c.data, c.stride)) {
        failed_.store(true, std::memory_order_relaxed);
      }
      break;
  }
}

/// The same with weights expanded to f32 a block at a time, in `room`.
void Run::multiply_widened(std::int64_t rows, Range outputs, Range inputs, Rows<const float> a,
                           const CpuLinear& linear, float* room, bool accumulate, Rows<float> c) {
  const std::int64_t depth = std::min(inputs.size(), weight_block_depth);
  const std::int64_t width = weight_block / depth;
  const Rows<const void> weight{linear.weight, linear.stride};
  for (std::int64_t n = outputs.begin; n < outputs.end; n += width) {
    const std::int64_t columns = std::min(width, outputs.end - n);
    for (std::int64_t k = 0; k < inputs.size(); k += depth) {
      const std::int64_t deep = std::min(depth, inputs.size() - k);
      call_.passes.widen(mlp_.dtype, {columns, deep}, at(weight, n, inputs.begin + k), {room, deep});
      multiply_f32(rows, columns, deep, {a.data + k, a.stride}, room, deep, accumulate || k > 0,
                   {c.data + (n - outputs.begin), c.stride});
    }
  }
}

void Run::multiply_f32(std::int64_t rows, std::int64_t columns, std::int64_t depth, Rows<const float> a,
                       const float* weight, std::int64_t stride, bool accumulate, Rows<float> c) {
  if (!gemm(rows, columns, depth, a.data, a.stride, weight, stride, accumulate, c.data, c.stride)) {
    failed_.store(true, std::memory_order_relaxed);
  }
}

/// Hidden values of columns `step` for the block's rows, into `out`.
void Run::hidden_step(Block block, Range step, Rows<const void> x, const Scratch& room, Rows<void> out,
                      bool out_f32) {
  const CpuWeights& w = call_.weights;
  const Range dim{0, mlp_.dim};
  const Rows<float> gate{room.tile, step.size()};
  multiply(block.rows, step, dim, x, w.gate, room.weights, false, gate);
  HiddenTile hidden{.area = {block.rows, step.size()},
                    .gate = {gate.data, gate.stride},
                    .up = {},
                    .gate_bias = w.gate.bias + step.begin,
                    .up_bias = nullptr,
                    .out = out,
                    .out_f32 = out_f32};
  if (mlp_.gated) {
    const Rows<float> up{room.tile + block.rows * step.size(), step.size()};
    multiply(block.rows, step, dim, x, w.up, room.weights, false, up);
    hidden.up = {up.data, up.stride};
    hidden.up_bias = w.up.bias + step.begin;
  }
  call_.passes.hidden(mlp_.dtype, call_.numerics, mlp_.activation, hidden);
}

/// out = x · Wᵀ (+ bias): one task's share of a linear into the hidden width.
void Run::up_task(const CpuLinear& linear, Block block, const Scratch& room, Rows<void> out, bool add_bias) {
  const Rows<const void> x = x_tile(block, room.x);
  const float* const bias = add_bias ? linear.bias : call_.weights.zeros;
  for (std::int64_t c = block.columns.begin; c < block.columns.end; c += call_.tile.hidden) {
    const Range step{c, std::min(block.columns.end, c + call_.tile.hidden)};
    const Rows<void> to = at(out, block.row, step.begin);
    const Rows<float> sums =
        narrow_ ? Rows<float>{room.tile, step.size()} : Rows<float>{static_cast<float*>(to.data), to.stride};
    multiply(block.rows, step, {0, mlp_.dim}, x, linear, room.weights, false, sums);
    if (!narrow_ && !add_bias) continue;
    call_.passes.store(mlp_.dtype, {block.rows, step.size()}, {sums.data, sums.stride},
                       add_bias ? bias + step.begin : bias, to);
  }
}

void Run::up_phase(const CpuLinear& linear, Rows<void> out, bool add_bias) {
  phase(mlp_.hidden, [&](Block block, const Scratch& room) { up_task(linear, block, room, out, add_bias); });
}

/// out = in · W2ᵀ (+ bias): one task's share of the linear out of the hidden width.
void Run::down_task(Block block, const Scratch& room, Rows<const void> in, Rows<void> out, bool add_bias) {
  const CpuLinear& down = call_.weights.down;
  const Rows<void> to = at(out, block.row, block.columns.begin);
  const Rows<const void> from = at(in, block.row, 0);
  if (!narrow_) {
    const Rows<float> sums{static_cast<float*>(to.data), to.stride};
    multiply(block.rows, block.columns, {0, mlp_.hidden}, from, down, nullptr, false, sums);
    if (add_bias) {
      call_.passes.store(DType::f32, {block.rows, block.columns.size()}, {sums.data, sums.stride},
                         down.bias + block.columns.begin, to);
    }
    return;
  }
  const Rows<float> sums{room.sums, block.columns.size()};
  if (call_.operands == Operands::bf16) {
    multiply(block.rows, block.columns, {0, mlp_.hidden}, from, down, nullptr, false, sums);
  }
  for (std::int64_t k = 0; k < mlp_.hidden && call_.operands == Operands::widened; k += call_.tile.hidden) {
    const std::int64_t depth = std::min(call_.tile.hidden, mlp_.hidden - k);
    call_.passes.widen(mlp_.dtype, {block.rows, depth}, at(from, 0, k), {room.tile, depth});
    multiply(block.rows, block.columns, {k, k + depth}, {room.tile, depth}, down, room.weights, k > 0, sums);
  }
  call_.passes.store(mlp_.dtype, {block.rows, block.columns.size()}, {sums.data, sums.stride},
                     add_bias ? down.bias + block.columns.begin : call_.weights.zeros, to);
}

void Run::down_phase(Rows<const void> in, Rows<void> out, bool add_bias) {
  phase(mlp_.dim, [&](Block block, const Scratch& room) { down_task(block, room, in, out, add_bias); });
}

}  // namespace ingot::cpu
