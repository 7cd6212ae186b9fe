# SPDX-License-Identifier: Apache-2.0
"""What check.py runs: (linear, tile, token counts, strided)."""
from dataclasses import replace

from specs import Few, Gemm, Linear

# (tile, plain only: wide tiles with a gated epilogue of their own are not offered)
TILES = [
    (Gemm(1, 1, 64, 4), False), (Gemm(2, 1, 128, 4, 2, 1), False), (Gemm(2, 1, 256, 4, 2, 1), False),
    (Gemm(2, 2, 192, 3, 1, 2), True), (Gemm(2, 2, 160, 3, 1, 2), False), (Gemm(2, 2, 144, 3, 2, 1), True),
    (Gemm(2, 2, 80, 4, 1, 4), True), (Gemm(3, 1, 256, 3, 1, 2), True), (Gemm(3, 1, 208, 3, 1, 2), True),
    (Gemm(2, 1, 256, 3, 2, 1, 1, True), False), (Gemm(2, 1, 128, 4, 2, 2, 1, True), False),
    (Gemm(2, 1, 128, 4, 1, 1, 2), False), (Gemm(2, 2, 128, 3, 1, 2, 2), False), (Gemm(2, 2, 144, 3, 1, 1, 4), True),
    (Gemm(3, 1, 128, 3, 1, 1, 3), True), (Gemm(2, 1, 256, 4, 1, 1, 1, False, 2), False),
]
# More tiles than the device holds at once.
MANY = [Gemm(2, 1, 256, 4, 2, 1), Gemm(2, 1, 256, 4, 1, 1, 1, False, 2), Gemm(2, 1, 256, 3, 2, 1, 1, True),
        Gemm(2, 2, 160, 3, 1, 2), Gemm(2, 1, 128, 4, 2, 1)]
FEW = [Few(1, 1, 8, 4), Few(1, 2, 32, 8), Few(2, 1, 64, 4), Few(1, 1, 128, 6, 4, 1), Few(1, 1, 64, 4, 1, 4),
       Few(1, 2, 16, 8, 1, 2)]
FEW_PLAIN = [Few(1, 1, 64, 4, 1, 8), Few(1, 1, 80, 4, 1, 8), Few(2, 2, 40, 6, 1, 4)]


def CASES(small):
    gelu = Linear(1032, 520, "gelu_tanh")   # neither dimension a multiple of any tile
    gated = Linear(520, 328, "gelu_erf", gated=True)
    cases = []
    tokens = [1, 77, 300] if small else [1, 77, 300, 2051]
    for tile, plain_only in TILES:
        cases.append((gelu, tile, tokens, False))
        if not plain_only:
            cases.append((gated, tile, tokens, True))
    for tile in FEW + FEW_PLAIN:
        cases.append((gelu, tile, [1, 9, 77] if small else [1, 9, 64, 77, 300], True))
        if tile in FEW:
            cases.append((gated, tile, [1, 9, 77] if small else [1, 9, 64, 77, 300], False))
    # K of whole pairs of blocks: copies bring two.
    deep, deep_gated = Linear(392, 512, "gelu_tanh"), Linear(264, 512, "gelu_erf", gated=True)
    for tile in FEW[1:3] + FEW[4:]:
        cases += [(deep, tile, [1, 77], True), (deep_gated, tile, [9, 300], False)]
    if small:
        return cases
    for tile in MANY:
        cases += [(gelu, tile, [20011], False), (gated, tile, [40011], False)]
    offload, direct, few = Gemm(2, 1, 256, 3, 2, 1, 1, True), Gemm(2, 1, 256, 3, 2, 1), Few(1, 1, 64, 4)
    for element in ("bf16", "f16"):
        for act in ("relu", "gelu_erf", "gelu_tanh", "silu", "quick_gelu", "identity"):
            for match in (True, False):
                one = Linear(768, 512, act, element=element, match=match)
                two = Linear(384, 512, act, gated=True, gate_first=act < "i", bias=act > "q", element=element, match=match)
                for linear in (one, two):
                    tiles = [direct, few] + ([offload] if match else [])
                    for tile in tiles:
                        cases.append((linear, tile, [200], False))
    return cases


def pairs(small=False):
    return [(linear, tile) for linear, tile, _, _ in CASES(small)]
