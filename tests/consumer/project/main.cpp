// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "ingot/trace.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto trace = ingot::trace::read_file(argv[1]);
  if (!trace)
    return std::fprintf(stderr, "%s\n", trace.error().message.c_str()), ingot::exit_code(trace.error().code);
  const auto kernels = std::ranges::count(trace->gpu.kind, ingot::trace::ActivityKind::kernel);
  std::printf("%td kernels\n", kernels);
  return 0;
}
