// SPDX-License-Identifier: Apache-2.0
#include "cpu/numbers.h"
#include "cpu/passes.h"

#define INGOT_PASSES_NAMESPACE baseline
#define INGOT_PASSES_ISA Isa::baseline
#include "cpu/passes_loops.h"
