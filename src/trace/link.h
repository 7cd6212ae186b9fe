// SPDX-License-Identifier: Apache-2.0
//
// Who made what: operator trees, launch calls and the operators behind them, device work and its launch call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/trace.h"

namespace ingot::trace {

/// Intervals of many threads arranged as one forest per thread, in preorder.
struct Nesting {
  std::vector<std::uint32_t> order;         ///< rows in preorder: by thread, then start, longer first
  std::vector<std::uint32_t> position;      ///< row → its place in `order`
  std::vector<std::uint32_t> subtree_end;   ///< place → one past the last place of its subtree
  std::vector<std::uint32_t> parent;        ///< row → enclosing row, `none` at the top
  std::vector<std::uint32_t> thread_begin;  ///< thread → first place in `order`; one more entry than threads

  /// Innermost row of `thread` whose interval holds `time_ns`, or `none`.
  std::uint32_t innermost(std::uint32_t thread, std::int64_t time_ns, std::span<const std::int64_t> ts_ns,
                          std::span<const std::int64_t> dur_ns) const;
};

/// Arranges intervals. A row is the child of the innermost open row that encloses it; rows that overlap
/// without one enclosing the other (seen with Python stacks recorded) become siblings. `slack_ns` forgives
/// clocks that round differently at both ends.
Nesting nest(std::span<const std::uint32_t> thread, std::span<const std::int64_t> ts_ns,
             std::span<const std::int64_t> dur_ns, std::size_t threads, std::int64_t slack_ns = 1000);

struct Links {
  Nesting ops;                                     ///< over Trace::ops
  Nesting annotations;                             ///< over Trace::annotations
  std::vector<std::uint32_t> call_op;              ///< API call → innermost operator that made it
  std::vector<std::uint32_t> activity_call;        ///< device activity → API call
  std::vector<std::uint32_t> activity_op;          ///< device activity → operator
  std::vector<std::uint32_t> activity_annotation;  ///< device activity → innermost CPU annotation
  std::vector<std::uint32_t> by_start;             ///< activities by start time
  std::vector<std::uint32_t>
      by_operator;  ///< activities that have an operator, by its place in `ops.order`, then start
  std::uint64_t late_activities = 0;      ///< start before their launch call did
  std::uint64_t unlinked_activities = 0;  ///< have a correlation and no call with it

  /// Device activities launched by an operator or anything it called.
  std::span<const std::uint32_t> launched_by(std::uint32_t op) const;

 private:
  friend Links link(const Trace& trace);
  std::vector<std::uint32_t> operator_places_;  ///< place of each entry of by_operator
};

Links link(const Trace& trace);

}  // namespace ingot::trace
