// SPDX-License-Identifier: Apache-2.0
//
// What the rungs are made of: phases of tasks, and the linears' share of one task.
#pragma once

#include <algorithm>
#include <atomic>

#include "cpu/rungs.h"

namespace ingot::cpu {

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
    std::uint16_t* hidden;
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

  Rows<const void> x_tile(Block block, float* room) const;
  void multiply(std::int64_t rows, Range outputs, Range inputs, Rows<const void> a, const CpuLinear& linear,
                float* room, bool accumulate, Rows<float> c);
  void multiply_widened(std::int64_t rows, Range outputs, Range inputs, Rows<const float> a,
                        const CpuLinear& linear, float* room, bool accumulate, Rows<float> c);
  void multiply_f32(std::int64_t rows, std::int64_t columns, std::int64_t depth, Rows<const float> a,
                    const float* weight, std::int64_t stride, bool accumulate, Rows<float> c);

  void hidden_step(Block block, Range step, Rows<const void> x, const Scratch& room, Rows<void> out,
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
  bool narrow_;  // 16-bit: GEMMs write f32 sums, not into the output
  std::size_t element_;
  char* base_;
  Rows<const void> x_;
  Rows<void> y_;
  std::atomic<bool> failed_{false};
};

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

}  // namespace ingot::cpu
