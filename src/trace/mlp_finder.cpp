// SPDX-License-Identifier: Apache-2.0
#include "trace/mlp_finder.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot::trace {

namespace {

using Kind = Stage::Kind;

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/// Matches one MLP whose first linear is the stage at `first`. Reads stages left to right; every step either
/// advances or gives up.
class Match {
 public:
  Match(const Trace& trace, const StageSequence& sequence, std::size_t first)
      : trace_(trace), stages_(sequence.stages), first_(first), at_(first) {}

  std::optional<MlpCall> run() {
    if (!take_first_linears() || !take_activation() || !take_product() || !take_last_linear())
      return std::nullopt;
    return result();
  }

  std::size_t last() const { return at_ - 1; }  ///< the last linear, after a successful run

 private:
  const Stage* peek() {  // the next stage that changes values
    while (at_ < stages_.size() && stages_[at_].kind == Kind::pass) ++at_;
    return at_ < stages_.size() ? &stages_[at_] : nullptr;
  }
  const Stage& front() const { return stages_[first_]; }
  bool has_shapes() const { return front().matmul.has_value(); }
  std::int64_t outputs() const {
    return times(front().matmul->m, front().matmul->n);
  }  ///< of one first linear

  bool same_projection(const Stage& other) const {
    if (!has_shapes()) return !other.matmul;
    return other.matmul && other.matmul->m == front().matmul->m && other.matmul->k == front().matmul->k &&
           other.matmul->n == front().matmul->n;
  }

  void add_bias(const std::optional<bool>& bias) {
    if (bias.value_or(false)) bias_ = true;
    if (!bias && bias_ != std::optional(true)) bias_.reset();
  }

  /// The up projection, or gate and up one after the other, each perhaps with its bias added apart.
  bool take_first_linears() {
    if (front().kind != Kind::linear) return false;
    bias_ = front().has_bias;
    linears_ = 1;
    ++at_;
    if (!front().activation.empty()) return true;
    for (const Stage* stage = peek(); stage != nullptr; stage = peek()) {
      if (stage->kind == Kind::split) {
        split_ = true;
      } else if (stage->kind == Kind::bias && has_shapes() && stage->numel == outputs()) {
        bias_ = true;
      } else if (stage->kind == Kind::linear && linears_ == 1 && !split_ && same_projection(*stage)) {
        ++linears_;
        add_bias(stage->has_bias);
      } else {
        return true;
      }
      ++at_;
    }
    return false;
  }

  /// Elements an activation must have: all outputs of one linear, or half of them where one projection is
  /// cut.
  bool fits_width(const Stage& stage) {
    if (!has_shapes()) return true;
    if (!stage.numel) return false;
    width_ = *stage.numel;
    return width_ == outputs() || (linears_ == 1 && times(width_, 2) == outputs());
  }

  bool take_activation() {
    if (!front().activation.empty()) {  // the linear applied it itself
      activation_ = front().activation;
      if (has_shapes()) width_ = outputs();
      return true;
    }
    const Stage* stage = peek();
    if (stage == nullptr) return false;
    if (stage->kind == Kind::fused) return take_fused(*stage);
    if (stage->kind == Kind::activation && stage->activation != "sigmoid") {
      if (!fits_width(*stage)) return false;
      activation_ = stage->activation;
      ++at_;
      return true;
    }
    return take_written_out();
  }

  /// A compiler's kernel that activates, and multiplies where the MLP is gated.
  bool take_fused(const Stage& stage) {
    activation_ = stage.activation;
    gated_ = stage.has_product;
    if (stage.has_bias.value_or(false) && bias_ == std::optional(false))
      bias_.reset();  // a sum: of what is not said
    fused_product_ = gated_;
    ++at_;
    const Stage* down = peek();
    if (down == nullptr || down->kind != Kind::linear) return false;
    if (!has_shapes()) {
      packed_gate_ = gated_ && linears_ == 1;
      return true;
    }
    if (!down->matmul || down->matmul->m != front().matmul->m) return false;
    width_ = times(down->matmul->m, down->matmul->k);
    packed_gate_ = gated_ && linears_ == 1;
    return packed_gate_ ? times(width_, 2) == outputs() : width_ == outputs();
  }

  /// x·σ(x), x·σ(1.702x) and the long form of the tanh GELU, each operator its own kernel.
  bool take_written_out() {
    if (!has_shapes()) return false;
    const std::size_t start = at_;
    std::int64_t width = 0;
    std::array<int, 4> count{};  // product by a scalar, product of tensors, pow, tanh
    int sums = 0;
    double scale = 0;
    bool sigmoid = false;
    for (const Stage* stage = peek(); stage != nullptr; stage = peek()) {
      if (stage->numel.value_or(0) != (width == 0 ? stage->numel.value_or(0) : width)) break;
      if (stage->kind == Kind::pointwise && stage->op_name.starts_with("aten::mul")) {
        ++count[0];
        scale = stage->scale;
      } else if (stage->kind == Kind::product) {
        ++count[1];
      } else if (stage->kind == Kind::pointwise && stage->op_name.starts_with("aten::pow")) {
        ++count[2];
      } else if (stage->kind == Kind::activation && stage->activation == "tanh") {
        ++count[3];
      } else if (stage->kind == Kind::activation && stage->activation == "sigmoid") {
        sigmoid = true;
      } else if (stage->kind == Kind::pointwise && stage->op_name.starts_with("aten::add")) {
        ++sums;
      } else {
        break;
      }
      if (width == 0) width = stage->numel.value_or(0);
      ++at_;
      if (sigmoid && count[1] == 1) break;  // closes x·σ(…); a product after it is the gate's
      if (count[3] == 1 && count[0] + count[1] == 4 && sums == 2) break;
    }
    width_ = width;
    const bool whole = width == outputs();
    if (sigmoid && whole && count[1] == 1 && count[2] + count[3] + sums == 0) {
      if (count[0] == 0) activation_ = "silu";
      if (count[0] == 1 && std::abs(scale - 1.702) < 1e-3) activation_ = "quick_gelu";
    } else if (sigmoid && !whole && split_ && count[1] == 1 && count[0] + count[2] + count[3] + sums == 0) {
      activation_ = "sigmoid";  // a GLU: the product is its gate, taken here
      gated_ = packed_gate_ = product_taken_ = true;
    } else if (count[2] == 1 && count[3] == 1 && count[0] + count[1] == 4 && sums == 2 && whole) {
      activation_ = "gelu_tanh";
    }
    if (activation_.empty()) at_ = start;
    return !activation_.empty();
  }

  bool is_gate_product(const Stage& stage) const {
    return stage.kind == Kind::product && (!has_shapes() || stage.numel == width_);
  }

  bool take_product() {
    if (fused_product_ || product_taken_) return true;
    const bool half = has_shapes() && width_ != outputs();
    for (const Stage* stage = peek(); stage != nullptr; stage = peek()) {
      if (stage->kind == Kind::split) {
        split_ = true;
        ++at_;
        continue;
      }
      if (is_gate_product(*stage) && (linears_ == 2 || half || (!has_shapes() && split_))) {
        gated_ = true;
        packed_gate_ = linears_ == 1;
        ++at_;
        return true;
      }
      // The up projection after the gate's activation: a linear of the same size whose result is multiplied.
      if (stage->kind == Kind::linear && linears_ == 1 && !half && same_projection(*stage) &&
          product_follows()) {
        ++linears_;
        add_bias(stage->has_bias);
        ++at_;
        continue;
      }
      break;
    }
    return linears_ == 1 && !half && !(split_ && !has_shapes());
  }

  /// Whether the linear at hand is followed by the gate's product (and perhaps its own bias before that).
  bool product_follows() {
    std::size_t next = at_ + 1;
    while (next < stages_.size() && (stages_[next].kind == Kind::pass || stages_[next].kind == Kind::bias))
      ++next;
    return next < stages_.size() && is_gate_product(stages_[next]);
  }

  bool take_last_linear() {
    const Stage* stage = peek();
    if (stage == nullptr || stage->kind != Kind::linear) return false;
    if (has_shapes()) {
      if (!stage->matmul || stage->matmul->m != front().matmul->m || stage->matmul->n != front().matmul->k)
        return false;
      if (times(stage->matmul->m, stage->matmul->k) != width_) return false;
    } else if (stage->matmul) {
      return false;
    }
    add_bias(stage->has_bias);
    down_ = at_;
    ++at_;
    return true;
  }

  MlpCall result() const {
    MlpCall call;
    call.activation = activation_;
    call.gated = gated_;
    if (gated_) call.packed = packed_gate_;
    call.bias = bias_;
    call.dtype = front().dtype;
    call.shapes = has_shapes();
    if (has_shapes()) {
      call.tokens = front().matmul->m;
      call.dim = front().matmul->k;
      call.hidden = stages_[down_].matmul->k;
    }
    for (std::size_t i = first_; i <= down_; ++i) {
      call.activities.insert(call.activities.end(), stages_[i].activities.begin(),
                             stages_[i].activities.end());
    }
    call.bytes = bytes_now();
    return call;
  }

  std::optional<std::uint64_t> bytes_now() const {
    const int element = dtype_bytes(front().dtype);
    if (!has_shapes() || element == 0) return std::nullopt;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = first_; i <= down_; ++i) {
      const Stage& stage = stages_[i];
      if (stage.matmul) {
        const MatmulShape& s = *stage.matmul;
        elements += static_cast<std::uint64_t>(times(s.m, s.k) + times(s.k, s.n) + times(s.m, s.n) +
                                               (s.bias ? s.n : 0));
      } else if (stage.kind == Kind::fused) {
        elements += static_cast<std::uint64_t>(width_) * (stage.has_product ? 3 : 2);
      } else if (stage.op_name.starts_with("triton_")) {
        // A compiler's activation lists its in-out buffer once.
        elements += static_cast<std::uint64_t>(width_) * 2;
      } else if (!stage.activities.empty() || trace_.gpu.size() == 0) {
        elements += static_cast<std::uint64_t>(stage.elements_moved);
      }
      for (const std::uint32_t activity : stage.activities) {
        if (trace_.gpu.kind[activity] == ActivityKind::memset) bytes += trace_.gpu.bytes[activity];
        if (trace_.gpu.kind[activity] == ActivityKind::memcpy && stage.kind == Kind::linear) {
          bytes += 2 * trace_.gpu.bytes[activity];
        }
      }
    }
    return bytes + elements * static_cast<std::uint64_t>(element);
  }

  const Trace& trace_;
  const std::vector<Stage>& stages_;
  std::size_t first_;
  std::size_t at_;
  std::size_t down_ = 0;
  int linears_ = 0;
  bool split_ = false, gated_ = false, packed_gate_ = false, fused_product_ = false, product_taken_ = false;
  std::int64_t width_ = 0;  ///< elements of the hidden tensor
  std::string activation_;
  std::optional<bool> bias_;
};

}  // namespace

std::optional<std::uint64_t> fused_bytes(const MlpCall& mlp) {
  const auto element = static_cast<std::uint64_t>(dtype_bytes(mlp.dtype));
  if (!mlp.tokens || !mlp.dim || !mlp.hidden || element == 0) return std::nullopt;
  const auto tokens = static_cast<std::uint64_t>(*mlp.tokens);
  const auto dim = static_cast<std::uint64_t>(*mlp.dim);
  const auto hidden = static_cast<std::uint64_t>(*mlp.hidden);
  const std::uint64_t matrices = mlp.gated ? 3 : 2;
  const std::uint64_t biases = mlp.bias.value_or(false) ? hidden * (matrices - 1) + dim : 0;
  return element * (2 * tokens * dim + matrices * dim * hidden + biases);
}

std::vector<MlpCall> find_mlps(const Trace& trace, const StageSequence& sequence) {
  std::vector<MlpCall> calls;
  for (std::size_t first = 0; first < sequence.stages.size(); ++first) {
    if (sequence.stages[first].kind != Kind::linear) continue;
    Match match(trace, sequence, first);
    if (std::optional<MlpCall> call = match.run()) {
      calls.push_back(*std::move(call));
      first = match.last();
    }
  }
  return calls;
}

}  // namespace ingot::trace
