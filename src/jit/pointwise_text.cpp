// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "jit/kernel.h"

namespace ingot::jit {

namespace {

constexpr int threads = 256;
constexpr int vector_bytes = 16;  // of a thread

std::int64_t runs_of_a_row(const PointwiseSpec& spec) {
  const auto columns = vector_bytes / static_cast<std::int64_t>(size_of(spec.dtype));
  return (spec.columns + columns - 1) / columns;
}

std::string step_name(const PointwiseSpec& spec) {
  switch (spec.step) {
    case PointwiseSpec::Step::add_bias:
      return "add_bias";
    case PointwiseSpec::Step::multiply:
      return "multiply";
    case PointwiseSpec::Step::activate:
      break;
  }
  return std::string(to_string(spec.activation));
}

std::string step_type(const PointwiseSpec& spec, const std::string& element) {
  switch (spec.step) {
    case PointwiseSpec::Step::add_bias:
      return fmt::format("ingot::device::AddBias<{}>", element);
    case PointwiseSpec::Step::multiply:
      return "ingot::device::Multiply";
    case PointwiseSpec::Step::activate:
      break;
  }
  return fmt::format("ingot::device::Activate<ingot::activation::{}, {}>", to_string(spec.activation),
                     element);
}

}  // namespace

std::int64_t pointwise_blocks(const PointwiseSpec& spec, std::int64_t rows) {
  return (rows * runs_of_a_row(spec) + threads - 1) / threads;
}

KernelText pointwise_text(const PointwiseSpec& spec, const Target& target) {
  const std::string element = fmt::format("ingot::device::{}", to_string(spec.dtype));
  KernelText kernel;
  kernel.name = fmt::format("{}_{}_{}{}", to_string(spec.dtype), step_name(spec), spec.columns,
                            spec.aligned ? "" : "_unaligned");
  kernel.text = fmt::format(
      "#include \"pointwise.cuh\"\n"
      "using Shape = ingot::device::PointwiseShape<{0}, ingot::device::Chain<{1}>, {2}, {3}, {4}>;\n"
      "using Kernel = ingot::device::Pointwise<Shape>;\n"
      "static_assert(Kernel::threads == {5} && Kernel::runs == {6}, \"launch\");\n"
      "INGOT_KERNEL({7}, Kernel)\n",
      element, step_type(spec, element), spec.columns, spec.step == PointwiseSpec::Step::multiply,
      spec.aligned, threads, runs_of_a_row(spec), entry_point);
  kernel.target = target;
  kernel.threads = threads;
  return kernel;
}

}  // namespace ingot::jit
