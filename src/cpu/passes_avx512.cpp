// SPDX-License-Identifier: Apache-2.0
#include "cpu/numbers.h"
#include "cpu/passes.h"

#define INGOT_PASSES_NAMESPACE avx512
#define INGOT_PASSES_ISA Isa::avx512
#include "cpu/passes_loops.h"
