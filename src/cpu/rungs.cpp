// SPDX-License-Identifier: Apache-2.0
#include "cpu/rungs.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "cpu/gemm.h"

namespace ingot::cpu {

namespace {

// 16-bit weights become f32 a block at a time, small enough to stay in the second-level cache beside the
// tile: few enough columns that a row of blocks is read along, enough that the GEMM has work.
constexpr std::int64_t weight_block = 32 * 1024;
constexpr std::int64_t weight_block_depth = 512;
constexpr std::int64_t split_grain = 32;  // splits start at whole vectors and cache lines
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

/// Part `i` of `parts` of [0, columns).
struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
std::int64_t split_width(std::int64_t columns, std::int64_t parts) {
  const std::int64_t even = (columns + parts - 1) / parts;
  return parts == 1 ? columns : (even + split_grain - 1) / split_grain * split_grain;
}
Range split(std::int64_t columns, std::int64_t parts, std::int64_t i) {
  const std::int64_t width = split_width(columns, parts);
  return {std::min(columns, i * width), std::min(columns, (i + 1) * width)};
}

/// One call's phases. Every task computes the same numbers whichever thread takes it.
class Run {
 public:
  explicit Run(const Call& call)
      : call_(call),
        mlp_(call.mlp),
        narrow_(call.mlp.dtype != DType::f32),
        element_(size_of(call.mlp.dtype)),
        base_(static_cast<char*>(call.arguments.workspace)),
        x_{call.arguments.x, call.arguments.x_row_stride},
        y_{call.arguments.y, call.arguments.y_row_stride} {}

  Result<void> go();

 private:
  struct Scratch {
    float* x;
    float* tile;
    float* sums;
    float* weights;
  };
  struct Block {
    std::int64_t row, rows;
    Range columns;
  };

  Scratch scratch(int slot) const;
  Rows<const void> at(Rows<const void> in, std::int64_t row, std::int64_t column) const;
  Rows<void> at(Rows<void> out, std::int64_t row, std::int64_t column) const;
  Rows<void> intermediate(std::size_t offset, std::int64_t width, std::int64_t column) const;
  static Rows<const void> read(Rows<void> rows) { return {rows.data, rows.stride}; }

  template <class Body>
  void phase(std::int64_t columns, const Body& body);

  Rows<const float> x_tile(Block block, float* room) const;
  void multiply(std::int64_t rows, Range outputs, Range inputs, Rows<const float> a, const CpuLinear& linear,
                float* room, bool accumulate, Rows<float> c);
  void multiply_f32(std::int64_t rows, std::int64_t columns, std::int64_t depth, Rows<const float> a,
                    const float* weight, std::int64_t stride, bool accumulate, Rows<float> c);

  void hidden_step(Block block, Range step, Rows<const float> x, const Scratch& room, Rows<void> out,
                   bool out_f32);
  void up_phase(const CpuLinear& linear, Rows<void> out, bool add_bias);
  void up_task(const CpuLinear& linear, Block block, const Scratch& room, Rows<void> out, bool add_bias);
  void down_phase(Rows<const void> in, Rows<void> out, bool add_bias);
  void down_task(Block block, const Scratch& room, Rows<const void> in, Rows<void> out, bool add_bias);

  void separate_passes(bool fold_bias);
  void epilogue();
  void one_pass();
  void one_pass_task(Block block, const Scratch& room);

  const Call& call_;
  const Mlp& mlp_;
  bool narrow_;  // 16-bit: GEMMs read f32 copies and write f32 sums
  std::size_t element_;
  char* base_;
  Rows<const void> x_;
  Rows<void> y_;
  std::atomic<bool> failed_{false};
};

Run::Scratch Run::scratch(int slot) const {
  const Layout& layout = call_.layout;
  char* const start = base_ + layout.scratch + static_cast<std::size_t>(slot) * layout.scratch_bytes;
  char* const tile = start + round_up(layout.x_elements * sizeof(float));
  char* const sums = tile + round_up(layout.tile_elements * sizeof(float));
  char* const weights = sums + round_up(layout.sum_elements * sizeof(float));
  return {reinterpret_cast<float*>(start), reinterpret_cast<float*>(tile), reinterpret_cast<float*>(sums),
          reinterpret_cast<float*>(weights)};
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

/// Runs body(block, scratch) for every tile of tokens and every split of `columns`.
template <class Body>
void Run::phase(std::int64_t columns, const Body& body) {
  const std::int64_t rows = call_.tile.tokens, splits = call_.tile.splits, tokens = call_.arguments.tokens;
  const std::int64_t tiles = (tokens + rows - 1) / rows;
  call_.pool.run(tiles * splits, [&](std::int64_t task, int slot) {
    const std::int64_t row = task / splits * rows;
    const Block block{row, std::min(rows, tokens - row), split(columns, splits, task % splits)};
    if (block.columns.size() > 0) body(block, scratch(slot));
  });
}

/// The block's rows of x in f32: in place, or expanded into `room`.
Rows<const float> Run::x_tile(Block block, float* room) const {
  const Rows<const void> from = at(x_, block.row, 0);
  if (!narrow_) return {static_cast<const float*>(from.data), from.stride};
  call_.passes.widen(mlp_.dtype, {block.rows, mlp_.dim}, from, {room, mlp_.dim});
  return {room, mlp_.dim};
}

/// c = a · Wᵀ for the rows `outputs` of W, columns `inputs`.
void Run::multiply(std::int64_t rows, Range outputs, Range inputs, Rows<const float> a,
                   const CpuLinear& linear, float* room, bool accumulate, Rows<float> c) {
  if (!narrow_) {
    const float* const weight =
        static_cast<const float*>(linear.weight) + outputs.begin * linear.stride + inputs.begin;
    multiply_f32(rows, outputs.size(), inputs.size(), a, weight, linear.stride, accumulate, c);
    return;
  }
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
void Run::hidden_step(Block block, Range step, Rows<const float> x, const Scratch& room, Rows<void> out,
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
  const Rows<const float> x = x_tile(block, room.x);
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
    multiply(block.rows, block.columns, {0, mlp_.hidden}, {static_cast<const float*>(from.data), from.stride},
             down, nullptr, false, sums);
    if (add_bias) {
      call_.passes.store(DType::f32, {block.rows, block.columns.size()}, {sums.data, sums.stride},
                         down.bias + block.columns.begin, to);
    }
    return;
  }
  const Rows<float> sums{room.sums, block.columns.size()};
  for (std::int64_t k = 0; k < mlp_.hidden; k += call_.tile.hidden) {
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
    const Rows<const float> x = x_tile(block, room.x);
    for (std::int64_t c = block.columns.begin; c < block.columns.end; c += call_.tile.hidden) {
      const Range step{c, std::min(block.columns.end, c + call_.tile.hidden)};
      hidden_step(block, step, x, room, at(hidden, block.row, c), false);
    }
  });
  down_phase(read(hidden), y_, mlp_.bias);
}

void Run::one_pass_task(Block block, const Scratch& room) {
  const CpuLinear& down = call_.weights.down;
  const Rows<const float> x = x_tile(block, room.x);
  const Rows<void> to = at(y_, block.row, 0);
  const Rows<float> sums =
      narrow_ ? Rows<float>{room.sums, mlp_.dim} : Rows<float>{static_cast<float*>(to.data), to.stride};
  for (std::int64_t c = 0; c < mlp_.hidden; c += call_.tile.hidden) {
    const Range step{c, std::min(mlp_.hidden, c + call_.tile.hidden)};
    hidden_step(block, step, x, room, {room.tile, step.size()}, true);
    multiply(block.rows, {0, mlp_.dim}, step, {room.tile, step.size()}, down, room.weights, c > 0, sums);
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
  }
  if (failed_.load(std::memory_order_relaxed)) {
    return Error{ErrorCode::out_of_memory, gemm_library() + " ran out of memory"};
  }
  return {};
}

}  // namespace

Layout layout(const Mlp& mlp, std::int64_t tokens, Rung rung, const Tile& tile, int threads) {
  const bool narrow = mlp.dtype != DType::f32;
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
  out.x_elements = narrow ? times(rows, size(mlp.dim)) : 0;
  out.tile_elements = tiles_sums ? times(rows, times(size(tile.hidden), separate ? 1 : linears)) : 0;
  out.sum_elements = narrow ? times(rows, size(split_width(mlp.dim, tile.splits))) : 0;
  out.weight_elements = narrow ? static_cast<std::size_t>(weight_block) : 0;
  const auto room = [](std::size_t elements) { return lines(times(elements, sizeof(float))); };
  out.scratch_bytes = plus(plus(room(out.x_elements), room(out.tile_elements)),
                           plus(room(out.sum_elements), room(out.weight_elements)));
  out.bytes = plus(out.scratch, times(out.scratch_bytes, size(threads)));
  return out;
}

Result<void> run(const Call& call) {
  const SingleThreaded single;
  return Run(call).go();
}

}  // namespace ingot::cpu
