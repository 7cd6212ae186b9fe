// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "ingot/trace.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ingot::trace::StringPool pool;
  pool.intern(argv[1]);
  std::printf("%zu strings\n", pool.size());
  return 0;
}
