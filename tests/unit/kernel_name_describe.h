// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

#include "ingot/kernel_name.h"

namespace ingot::trace {

/// All that a decoded name says, in one line; what it does not say leaves nothing:
/// "family kind | short name | arch dtype>output layout tile s<stages> a<alignment> c<cluster> splitK bias |
/// fused | flags"
inline std::string describe(const KernelName& name) {
  std::string facts;
  const auto add = [&](const std::string& fact) {
    if (!fact.empty()) facts += " " + fact;
  };
  add(name.arch);
  if (!name.dtype.empty() || !name.out_dtype.empty()) add(name.dtype + ">" + name.out_dtype);
  add(name.layout);
  if (name.tile) add(fmt::format("{}x{}x{}", name.tile->m, name.tile->n, name.tile->k));
  if (name.stages) add(fmt::format("s{}", *name.stages));
  if (name.alignment) add(fmt::format("a{}", *name.alignment));
  if (name.cluster_m || name.cluster_n)
    add(fmt::format("c{}x{}", name.cluster_m.value_or(-1), name.cluster_n.value_or(-1)));
  if (name.split_k) add("splitK");
  if (name.bias) add(*name.bias ? "bias" : "no bias");
  std::string out =
      fmt::format("{} {} | {} |{} | {} | {}", name.family.empty() ? "-" : name.family, to_string(name.kind),
                  name.short_name, facts, fmt::join(name.fused, " "), fmt::join(name.flags, " "));
  // Empty sections as "| |".
  for (std::size_t at = 0; (at = out.find("  ", at)) != std::string::npos;) out.erase(at, 1);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

inline void expect_decodes(const std::string& name, const std::string& description) {
  EXPECT_EQ(describe(decode(name)), description) << name;
}

// PyTorch's elementwise templates around a functor.
inline std::string vectorized(const std::string& functor) {
  return "void at::native::vectorized_elementwise_kernel<8, " + functor + ", std::array<char*, 2ul> >(int, " +
         functor + ", std::array<char*, 2ul>)";
}
inline std::string strided(const std::string& functor) {
  return "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<" + functor +
         " >(at::TensorIteratorBase&, " + functor +
         " const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<" + functor +
         " >(at::TensorIteratorBase&, " + functor + " const&)::{lambda(int)#1})";
}
inline std::string gelu(const std::string& form, const std::string& type = "c10::BFloat16") {
  return "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::" + form +
         "::operator()() const::{lambda()#4}::operator()() const::{lambda(" + type + ")#1}";
}
inline std::string lambda_of(const std::string& function, const std::string& parameters) {
  return "at::native::" + function +
         "(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() "
         "const::{lambda(" +
         parameters + ")#1}";
}

}  // namespace ingot::trace
