// SPDX-License-Identifier: Apache-2.0
//
// Writes small traces for tests of linking and understanding: operators that nest, each launching the kernels
// it is given, on a clock that moves by itself.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/trace.h"

namespace ingot::test {

struct OpArgs {
  std::string dims;   ///< JSON of "Input Dims"; "" not recorded
  std::string types;  ///< JSON of "Input type"
  std::string concrete;
};

/// Shapes as JSON, all tensors of one type: shapes({{2, 3}, {}}) → dims [[2, 3], []].
inline OpArgs shapes(const std::vector<std::vector<int>>& dims, const std::string& concrete = "",
                     const char* type = "c10::BFloat16") {
  OpArgs args;
  std::string separator;
  for (const std::vector<int>& tensor : dims) {
    args.dims += fmt::format("{}[{}]", separator, fmt::join(tensor, ", "));
    args.types += fmt::format("{}\"{}\"", separator, tensor.empty() ? "" : type);
    separator = ", ";
  }
  args.dims = "[" + args.dims + "]";
  args.types = "[" + args.types + "]";
  args.concrete = concrete;
  return args;
}

class Program {
 public:
  explicit Program(std::string device = "NVIDIA H200") : device_(std::move(device)) {}

  /// An operator around whatever `body` adds.
  Program& op(const std::string& name, const OpArgs& args = {}, const std::function<void()>& body = {}) {
    return span("cpu_op", name, args, body);
  }
  Program& annotation(const std::string& name, const std::function<void()>& body) {
    return span("user_annotation", name, {}, body);
  }

  /// A kernel launched now, by the operator that is open, `us` long.
  Program& kernel(const std::string& name, double us = 10) {
    const int correlation = launch();
    activity("kernel", name, us, fmt::format(", \"stream\": 7, \"correlation\": {}", correlation));
    return *this;
  }
  Program& memset(int bytes) {
    const int correlation = launch();
    activity("gpu_memset", "Memset (Device)", 1,
             fmt::format(", \"stream\": 7, \"correlation\": {}, \"bytes\": {}", correlation, bytes));
    return *this;
  }
  Program& memcpy_dtod(int bytes) {
    const int correlation = launch();
    activity("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1,
             fmt::format(", \"stream\": 7, \"correlation\": {}, \"bytes\": {}", correlation, bytes));
    return *this;
  }
  /// Kernels of one graph launch: they share its correlation and know no operator of their own.
  Program& graph(const std::vector<std::string>& kernels) {
    const int correlation = launch("cudaGraphLaunch");
    for (const std::string& name : kernels)
      activity("kernel", name, 10, fmt::format(", \"stream\": 7, \"correlation\": {}", correlation));
    return *this;
  }
  /// A kernel whose launch was not recorded.
  Program& orphan(const std::string& name) {
    activity("kernel", name, 10,
             fmt::format(", \"stream\": 7, \"correlation\": {}", 900000 + events_.size()));
    return *this;
  }
  Program& wait(double us) {
    now_ += us;
    return *this;
  }
  Program& raw(std::string event) {
    events_.push_back(std::move(event));
    return *this;
  }

  std::string text() const {
    return fmt::format(
        "{{\"schemaVersion\": 1, \"deviceProperties\": [{{\"id\": 0, \"name\": \"{}\", \"numSms\": 132}}], "
        "\"traceEvents\": [{}]}}",
        device_, fmt::join(events_, ",\n"));
  }
  trace::Trace trace() const {
    Result<trace::Trace> read = trace::read_text(text(), "program");
    if (!read) {
      ADD_FAILURE() << read.error().message;
      return {};
    }
    return *std::move(read);
  }

 private:
  Program& span(const char* category, const std::string& name, const OpArgs& args,
                const std::function<void()>& body) {
    const double start = now_ += 1;
    const int id = ++last_id_;
    open_.push_back(id);
    if (body) body();
    open_.pop_back();
    now_ += 1;
    std::string more;
    if (!args.dims.empty()) {
      more = fmt::format(", \"Input Dims\": {}, \"Input type\": {}", args.dims, args.types);
      if (!args.concrete.empty()) more += fmt::format(", \"Concrete Inputs\": {}", args.concrete);
    }
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {:.3f}, "dur": {:.3f}, "args": {{"External id": {}{}}}}})",
        category, name, start, now_ - start, id, more));
    return *this;
  }
  int launch(const char* call = "cudaLaunchKernel") {
    const int correlation = ++last_correlation_;
    now_ += 1;
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 1, "tid": 1, "ts": {:.3f}, "dur": 1, "args": {{"correlation": {}{}}}}})",
        call, now_, correlation, open_.empty() ? "" : fmt::format(", \"External id\": {}", open_.back())));
    now_ += 1;
    return correlation;
  }
  void activity(const char* category, const std::string& name, double us, const std::string& args) {
    device_free_ = std::max(device_free_, now_);
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {:.3f}, "dur": {:.3f}, "args": {{"device": 0{}}}}})",
        category, name, device_free_, us, args));
    device_free_ += us;
  }

  std::string device_;
  std::vector<std::string> events_;
  std::vector<int> open_;
  int last_id_ = 0, last_correlation_ = 100;
  double now_ = 1000, device_free_ = 0;
};

// Kernel names as libraries write them.
inline const std::string gemm_kernel = "nvjet_sm90_tst_128x128_64x6_1x2_h_bz_TNT";
inline const std::string gemm_bias_kernel = "nvjet_sm90_tst_128x128_64x6_1x2_h_bz_bias_TNT";
inline const std::string relu_kernel =
    "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous "
    "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, "
    "c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
    "const::{lambda()#10}::operator()() "
    "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)";
inline const std::string gelu_tanh_kernel =
    "void at::native::vectorized_elementwise_kernel<8, "
    "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() "
    "const::{lambda(c10::BFloat16)#1}, "
    "std::array<char*, 2ul> >(int)";
inline const std::string mul_kernel =
    "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, "
    "c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";
inline const std::string add_kernel =
    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int)";

}  // namespace ingot::test
