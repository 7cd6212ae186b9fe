// SPDX-License-Identifier: Apache-2.0
//
// The thread pool sets the GEMM library to one thread around its tasks. This program has no such library:
// its pool runs the reference alone.
#include "cpu/gemm.h"

namespace ingot::cpu {

SingleThreaded::SingleThreaded() : previous_(1) {}
SingleThreaded::~SingleThreaded() {
  previous_ = 0;
}

}  // namespace ingot::cpu
