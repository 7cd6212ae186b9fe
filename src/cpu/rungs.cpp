// SPDX-License-Identifier: Apache-2.0
#include "cpu/rungs.h"

#include "cpu/gemm.h"
#include "cpu/run.h"

namespace ingot::cpu {

/// matmul_add and unfused: every step its own pass over memory, as an eager framework runs it.
void Run::separate_passes(bool fold_bias) {
  const std::int64_t width = (mlp_.gated ? 2 : 1) * mlp_.hidden;
  const std::size_t first = call_.layout.first, second = call_.layout.second;
  const CpuWeights& w = call_.weights;
  const bool add_bias = mlp_.bias && fold_bias, own_bias = mlp_.bias && !fold_bias;
  const Passes& passes = call_.passes;

  Rows<void> gate = intermediate(first, width, 0), up = intermediate(first, width, mlp_.hidden);
  if (mlp_.gated && call_.packed) {
    phase(mlp_.hidden, [&](Block block, const Scratch& room) {
      up_task(w.gate, block, room, gate, add_bias);
      up_task(w.up, block, room, up, add_bias);
    });
  } else {
    up_phase(w.gate, gate, add_bias);
    if (mlp_.gated) up_phase(w.up, up, add_bias);
  }

  const auto pass = [&](std::int64_t columns, const auto& body) {
    phase(columns, [&](Block block, const Scratch&) {
      body(Area{block.rows, block.columns.size()}, block.row, block.columns.begin);
    });
  };
  // Out of place, from one intermediate to the other, as frameworks do.
  std::size_t full = first, free = second;
  if (own_bias) {
    const Rows<void> gate_sum = intermediate(free, width, 0), up_sum = intermediate(free, width, mlp_.hidden);
    const auto add = [&](const CpuLinear& linear, Rows<void> in, Rows<void> out, Area size, std::int64_t row,
                         std::int64_t column) {
      passes.add(mlp_.dtype, size, at(read(in), row, column), linear.bias + column, at(out, row, column));
    };
    const bool together = mlp_.gated && call_.packed;
    pass(mlp_.hidden, [&](Area size, std::int64_t row, std::int64_t column) {
      add(w.gate, gate, gate_sum, size, row, column);
      if (together) add(w.up, up, up_sum, size, row, column);
    });
    if (mlp_.gated && !together) {
      pass(mlp_.hidden, [&](Area size, std::int64_t row, std::int64_t column) {
        add(w.up, up, up_sum, size, row, column);
      });
    }
    gate = gate_sum;
    up = up_sum;
    std::swap(full, free);
  }
  Rows<void> hidden = gate;  // in `full`; what follows writes to `free`
  bool moved = false;
  if (mlp_.activation != Activation::identity) {
    hidden = intermediate(free, width, 0);
    moved = true;
    pass(mlp_.hidden, [&](Area size, std::int64_t row, std::int64_t column) {
      passes.activate(mlp_.dtype, mlp_.activation, size, at(read(gate), row, column),
                      at(hidden, row, column));
    });
  }
  if (mlp_.gated) {
    const Rows<void> product = intermediate(free, width, mlp_.hidden);
    pass(mlp_.hidden, [&](Area size, std::int64_t row, std::int64_t column) {
      passes.multiply(mlp_.dtype, size, at(read(hidden), row, column), at(read(up), row, column),
                      at(product, row, column));
    });
    hidden = product;
    moved = true;
  }
  if (!own_bias) {
    down_phase(read(hidden), y_, add_bias);
    return;
  }
  // The matmul's own output, where nothing is needed any more, then y by the addition.
  const Rows<void> product{base_ + (moved ? full : free), mlp_.dim};
  down_phase(read(hidden), product, false);
  pass(mlp_.dim, [&](Area size, std::int64_t row, std::int64_t column) {
    passes.add(mlp_.dtype, size, at(read(product), row, column), w.down.bias + column, at(y_, row, column));
  });
}

void Run::epilogue() {
  const Rows<void> hidden = intermediate(call_.layout.first, mlp_.hidden, 0);
  phase(mlp_.hidden, [&](Block block, const Scratch& room) {
    const Rows<const void> x = x_tile(block, room.x);
    for (std::int64_t c = block.columns.begin; c < block.columns.end; c += call_.tile.hidden) {
      const Range step{c, std::min(block.columns.end, c + call_.tile.hidden)};
      hidden_step(block, step, x, room, at(hidden, block.row, c), false);
    }
  });
  down_phase(read(hidden), y_, mlp_.bias);
}

void Run::one_pass_task(Block block, const Scratch& room) {
  const CpuLinear& down = call_.weights.down;
  const Rows<const void> x = x_tile(block, room.x);
  const Rows<void> to = at(y_, block.row, 0);
  const Rows<float> sums =
      narrow_ ? Rows<float>{room.sums, mlp_.dim} : Rows<float>{static_cast<float*>(to.data), to.stride};
  for (std::int64_t c = 0; c < mlp_.hidden; c += call_.tile.hidden) {
    const Range step{c, std::min(mlp_.hidden, c + call_.tile.hidden)};
    const bool packed = call_.operands == Operands::bf16;
    const Rows<void> hidden{packed ? static_cast<void*>(room.hidden) : room.tile, step.size()};
    hidden_step(block, step, x, room, hidden, !packed);
    multiply(block.rows, {0, mlp_.dim}, step, read(hidden), down, room.weights, c > 0, sums);
  }
  if (!narrow_ && !mlp_.bias) return;
  call_.passes.store(mlp_.dtype, {block.rows, mlp_.dim}, {sums.data, sums.stride}, down.bias, to);
}

void Run::one_pass() {
  phase(mlp_.dim, [&](Block block, const Scratch& room) { one_pass_task(block, room); });
}

Result<void> Run::go() {
  switch (call_.rung) {
    case Rung::matmul_add:
      separate_passes(false);
      break;
    case Rung::unfused:
      separate_passes(true);
      break;
    case Rung::epilogue:
      epilogue();
      break;
    case Rung::one_pass:
      one_pass();
      break;
    case Rung::two_kernel:
    case Rung::one_kernel:
      return Error{ErrorCode::internal, "the CPU has no rung two_kernel"};
  }
  if (failed_.load(std::memory_order_relaxed)) {
    return Error{ErrorCode::out_of_memory, gemm_library() + " ran out of memory"};
  }
  return {};
}

Result<void> run(const Call& call) {
  const SingleThreaded single;
  return Run(call).go();
}

}  // namespace ingot::cpu
