// SPDX-License-Identifier: Apache-2.0
#include "trace/stages.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace ingot::trace {

namespace {

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string_view static_dtype(std::string_view word) {  // a kernel name's type, as static text
  for (const std::string_view known : {"bf16", "f16", "f32", "tf32", "f64", "fp8", "i8"}) {
    if (word == known) return known == "tf32" ? "f32" : known;
  }
  return "";
}

/// The one kernel that computes, among the device work of a stage; null when there is none or several.
const KernelName* only_kernel(const Trace& trace, std::span<const std::uint32_t> activities,
                              KernelNames& names) {
  const KernelName* found = nullptr;
  for (const std::uint32_t activity : activities) {
    if (trace.gpu.kind[activity] != ActivityKind::kernel) continue;
    const KernelName& name = names.of(trace.gpu.name[activity]);
    if (name.kind == KernelKind::gemm_helper) continue;
    if (found != nullptr) return nullptr;
    found = &name;
  }
  return found;
}

std::string_view name_of_only_kernel(const Trace& trace, std::span<const std::uint32_t> activities) {
  for (const std::uint32_t activity : activities) {
    if (trace.gpu.kind[activity] == ActivityKind::kernel) return trace.strings[trace.gpu.name[activity]];
  }
  return "";
}

/// A compiler's pointwise kernel as a stage: activation and product by the operators in its name.
Stage fused_stage(const KernelName& name, std::string_view full_name) {
  Stage stage;
  stage.kind = Stage::Kind::other;
  if (name.kind != KernelKind::pointwise) return stage;
  stage.activation = activation_of(name, full_name);
  // A product with a number scales; only one of two tensors can be a gate's.
  const bool multiplies = contains(name.fused, "mul") && !contains(name.flags, "scalar");
  if (stage.activation.empty()) {
    if (name.fused.size() == 1 && multiplies) stage.kind = Stage::Kind::product;
    return stage;
  }
  stage.kind = name.fused.size() == 1 ? Stage::Kind::activation : Stage::Kind::fused;
  stage.has_product = multiplies;
  if (contains(name.fused, "addmm") || contains(name.fused, "add")) stage.has_bias = true;
  return stage;
}

/// Builds the stages of one thread's operators.
class OperatorStages {
 public:
  OperatorStages(const Trace& trace, const Links& links, Signatures& signatures, KernelNames& names)
      : trace_(trace), links_(links), signatures_(signatures), names_(names) {
    const Nesting& nesting = links.ops;
    contains_linear_.assign(trace.ops.size(), false);
    for (const std::uint32_t op : nesting.order) {
      if (role(op).role != Role::linear) continue;
      for (std::uint32_t up = nesting.parent[op]; up != none && !contains_linear_[up];
           up = nesting.parent[up]) {
        contains_linear_[up] = true;
      }
    }
  }

  std::vector<Stage> of_thread(std::uint32_t thread) {
    std::vector<Stage> stages;
    const Nesting& nesting = links_.ops;
    std::uint32_t place = nesting.thread_begin[thread];
    while (place < nesting.thread_begin[thread + 1]) {
      const std::uint32_t op = nesting.order[place];
      const RoleRow row = role(op);
      if (row.role == Role::other && contains_linear_[op]) {
        ++place;  // a container: a module, a compiled region, an autograd node
        continue;
      }
      place = nesting.subtree_end[place];
      Stage stage = make(op, row);
      const bool visible = !stage.activities.empty() || stage.kind == Stage::Kind::split ||
                           stage.kind == Stage::Kind::linear || stage.kind == Stage::Kind::activation ||
                           stage.kind == Stage::Kind::product;
      if (visible) stages.push_back(std::move(stage));
    }
    return stages;
  }

 private:
  RoleRow role(std::uint32_t op) {
    const StringId name = trace_.ops.name[op];
    const auto [at, fresh] = roles_.try_emplace(name);
    if (fresh) at->second = role_of(trace_.strings[name]);
    return at->second;
  }

  Stage make(std::uint32_t op, const RoleRow& row) {
    const std::span<const std::uint32_t> activities = links_.launched_by(op);
    const Signature& signature = signatures_.of(op);
    const bool has_shapes = !signature.empty();
    const std::string_view name = trace_.strings[trace_.ops.name[op]];
    Stage stage;
    switch (row.role) {
      case Role::linear:
        stage = linear(op, name, signature);
        break;
      case Role::activation:
        stage.kind = Stage::Kind::activation;
        stage.activation =
            row.activation == "gelu" ? gelu_form(signature, activities) : std::string(row.activation);
        break;
      case Role::product:
        stage.kind = Stage::Kind::product;
        if (has_shapes ? signature.size() > 1 && !is_same_size(signature) : is_scaling(activities)) {
          stage.kind = Stage::Kind::pointwise;
          if (has_shapes) stage.scale = scalar(signature[1].concrete);
        }
        break;
      case Role::sum:
        stage.kind = is_bias_sum(signature) ? Stage::Kind::bias : Stage::Kind::pointwise;
        break;
      case Role::pointwise:
        stage.kind = Stage::Kind::pointwise;
        break;
      case Role::split:
        // A split that launches is a copy of its own (select of an index tensor …), not a view.
        stage.kind = activities.empty() ? Stage::Kind::split : Stage::Kind::other;
        break;
      case Role::pass:
        stage.kind = Stage::Kind::pass;
        break;
      case Role::other:
        if (const KernelName* kernel = only_kernel(trace_, activities, names_)) {
          stage = fused_stage(*kernel, name_of_only_kernel(trace_, activities));
        }
        break;
    }
    stage.op = op;
    stage.op_name = name;
    stage.activities = activities;
    if (stage.kind != Stage::Kind::linear) measure(stage, signature);
    return stage;
  }

  Stage linear(std::uint32_t op, std::string_view name, const Signature& signature) {
    Stage stage;
    stage.matmul = matmul_shape(name, signature);
    // With shapes recorded, a product that is not against a shared matrix (attention's) is not a linear
    // layer.
    if (!signature.empty() && !stage.matmul) return stage;
    stage.kind = Stage::Kind::linear;
    if (stage.matmul) {
      stage.has_bias = stage.matmul->bias;
      stage.dtype = stage.matmul->dtype;
    } else {
      stage.has_bias = calls_addmm(op);
    }
    if (name == "aten::_addmm_activation") {
      stage.activation = "relu";
      for (const Argument& argument : signature) {
        if (argument.concrete == "True")
          stage.activation = "gelu_tanh";  // use_gelu: the library's epilogue is the tanh form
      }
    }
    return stage;
  }

  bool calls_addmm(std::uint32_t op) {
    const Nesting& nesting = links_.ops;
    const std::uint32_t first = nesting.position[op];
    for (std::uint32_t place = first; place < nesting.subtree_end[first]; ++place) {
      const std::string_view name = trace_.strings[trace_.ops.name[nesting.order[place]]];
      if (name == "aten::addmm" || name == "aten::_addmm_activation") return true;
    }
    return false;
  }

  std::string gelu_form(const Signature& signature, std::span<const std::uint32_t> activities) {
    if (signature.size() > 1) {
      const std::string& approximate = signature[1].concrete;
      if (approximate.find("tanh") != std::string::npos) return "gelu_tanh";
      if (approximate.find("none") != std::string::npos) return "gelu_erf";
    }
    const KernelName* kernel = only_kernel(trace_, activities, names_);
    const std::string form =
        kernel == nullptr ? "" : activation_of(*kernel, name_of_only_kernel(trace_, activities));
    return form.starts_with("gelu") ? form : "gelu";
  }

  bool is_scaling(std::span<const std::uint32_t> activities) {
    const KernelName* kernel = only_kernel(trace_, activities, names_);
    return kernel != nullptr && contains(kernel->flags, "scalar");
  }

  static bool is_same_size(const Signature& signature) {
    return signature[0].is_tensor() && signature[1].is_tensor() &&
           signature[0].numel() == signature[1].numel();
  }

  static bool is_bias_sum(const Signature& signature) {
    if (signature.size() < 2 || !signature[0].is_tensor() || !signature[1].is_tensor()) return false;
    const Argument& small = signature[0].numel() < signature[1].numel() ? signature[0] : signature[1];
    const Argument& large = &small == &signature[0] ? signature[1] : signature[0];
    return small.numel() == large.dims.back() && small.dims.back() == large.dims.back() &&
           large.numel() > small.numel();
  }

  static double scalar(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? value : 0;
  }

  static void measure(Stage& stage, const Signature& signature) {
    std::int64_t largest = 0;
    for (const Argument& argument : signature) {
      if (!argument.is_tensor()) continue;
      largest = std::max(largest, argument.numel());
      if (__builtin_add_overflow(stage.elements_moved, argument.numel(), &stage.elements_moved)) return;
      if (stage.dtype.empty()) stage.dtype = argument.dtype;
    }
    if (largest == 0) return;
    stage.numel = largest;
    if (__builtin_add_overflow(stage.elements_moved, largest, &stage.elements_moved))
      stage.elements_moved = 0;
  }

  const Trace& trace_;
  const Links& links_;
  Signatures& signatures_;
  KernelNames& names_;
  std::vector<bool> contains_linear_;
  std::unordered_map<StringId, RoleRow> roles_;
};

Stage kernel_stage(const Trace& trace, std::uint32_t activity, KernelNames& names) {
  Stage stage;
  if (trace.gpu.kind[activity] != ActivityKind::kernel) {
    stage.kind = Stage::Kind::pass;
    return stage;
  }
  const KernelName& name = names.of(trace.gpu.name[activity]);
  const std::string_view full_name = trace.strings[trace.gpu.name[activity]];
  switch (name.kind) {
    case KernelKind::gemm:
      stage.kind = Stage::Kind::linear;
      stage.has_bias = name.bias;
      break;
    case KernelKind::pointwise:
      stage = fused_stage(name, full_name);
      break;
    case KernelKind::copy:
      stage.kind = Stage::Kind::pass;
      break;
    default:
      break;
  }
  stage.dtype = static_dtype(name.dtype);
  return stage;
}

/// Turns a sequence's activities into stages: a split-K reduction belongs to the GEMM before it, a memset of
/// a tile counter to the GEMM after it.
void add_kernel_stages(const Trace& trace, KernelNames& names, StageSequence& sequence) {
  const std::vector<std::uint32_t>& all = sequence.activity_storage;
  std::size_t held = 0;  // memsets waiting for their GEMM
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_kernel = trace.gpu.kind[all[i]] == ActivityKind::kernel;
    if (trace.gpu.kind[all[i]] == ActivityKind::memset) {
      ++held;
      continue;
    }
    if (is_kernel && names.of(trace.gpu.name[all[i]]).kind == KernelKind::gemm_helper &&
        !sequence.stages.empty() && sequence.stages.back().kind == Stage::Kind::linear && held == 0) {
      std::span<const std::uint32_t>& gemm = sequence.stages.back().activities;
      gemm = std::span(gemm.data(), gemm.size() + 1);
      continue;
    }
    Stage stage = kernel_stage(trace, all[i], names);
    const std::size_t before = stage.kind == Stage::Kind::linear ? held : 0;
    stage.activities = std::span(all).subspan(i - before, before + 1);
    held = 0;
    sequence.stages.push_back(std::move(stage));
  }
}

}  // namespace

const KernelName& KernelNames::of(StringId name) {
  const auto [at, fresh] = decoded_.try_emplace(name);
  if (fresh) at->second = decode(trace_.strings[name]);
  return at->second;
}

std::vector<StageSequence> stage_sequences(const Trace& trace, const Links& links, Signatures& signatures,
                                           KernelNames& names) {
  std::vector<StageSequence> sequences;
  OperatorStages operators(trace, links, signatures, names);
  for (std::uint32_t thread = 0; thread < trace.threads.size(); ++thread) {
    if (links.ops.thread_begin[thread] == links.ops.thread_begin[thread + 1]) continue;
    StageSequence sequence;
    sequence.stages = operators.of_thread(thread);
    sequences.push_back(std::move(sequence));
  }

  // A launch call that owns several activities is a graph replay; work without an operator has nothing but
  // its order.
  std::vector<std::uint32_t> per_call(trace.calls.size(), 0);
  for (const std::uint32_t call : links.activity_call) {
    if (call != none) ++per_call[call];
  }
  std::map<std::pair<std::uint32_t, std::int32_t>, StageSequence>
      by_source;  // (graph launch or none, stream)
  for (const std::uint32_t activity : links.by_start) {
    const std::uint32_t call = links.activity_call[activity];
    const bool in_graph = call != none && per_call[call] > 1;
    if (!in_graph && links.activity_op[activity] != none) continue;
    StageSequence& sequence = by_source[{in_graph ? call : none, trace.gpu.stream[activity]}];
    sequence.from_operators = false;
    sequence.activity_storage.push_back(activity);
  }
  for (auto& [source, sequence] : by_source) {
    sequences.push_back(std::move(sequence));
    add_kernel_stages(trace, names, sequences.back());
  }
  return sequences;
}

}  // namespace ingot::trace
