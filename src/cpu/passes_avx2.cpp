// SPDX-License-Identifier: Apache-2.0
#include "cpu/numbers.h"
#include "cpu/passes.h"

#define INGOT_PASSES_NAMESPACE avx2
#define INGOT_PASSES_ISA Isa::avx2
#include "cpu/passes_loops.h"
