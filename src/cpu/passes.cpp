// SPDX-License-Identifier: Apache-2.0
#include "cpu/passes.h"

namespace ingot::cpu {

namespace baseline {
extern const Passes table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Passes table;
}
namespace avx512 {
extern const Passes table;
}
#endif

const Passes* passes(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return &baseline::table;
#if defined(__x86_64__)
    case Isa::avx2:
      return &avx2::table;
    case Isa::avx512:
      return &avx512::table;
#else
    default:
      break;
#endif
  }
  return nullptr;
}

}  // namespace ingot::cpu
