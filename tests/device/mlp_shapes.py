# SPDX-License-Identifier: Apache-2.0
"""The narrow shapes that mlp_bench.py times, and the tiles worth it."""
from mlp_specs import Mlp, tile_of

# name, tokens, dim, hidden, activation, bias, gated ("packed": one projection, value first, gate second)
SHAPES = [
    ("svd320_129k", 129024, 320, 1280, "gelu_erf", True, "packed"),
    ("seed_relu_16k", 16384, 256, 1024, "relu", True, ""),
    ("n192_gated", 131072, 192, 768, "gelu_tanh", True, "packed"),
    ("n192", 131072, 192, 768, "gelu_tanh", True, ""),
    ("n128_gated", 131072, 128, 512, "gelu_tanh", True, "packed"),
    ("n128", 131072, 128, 512, "gelu_tanh", True, ""),
    ("n64_gated", 131072, 64, 256, "gelu_tanh", True, "packed"),
    ("n320", 131072, 320, 1280, "gelu_tanh", True, ""),
]
TILES = {
    "svd320_129k": "n2x64x1x0 n2x64x1x2",
    "seed_relu_16k": "n2x128x1x0 n2x128x1x2",
    "n192_gated": "n2x64x2x0 n2x64x2x2",
    "n192": "n2x128x1x0 n2x128x1x2",
    "n128_gated": "n2x128x1x0 n2x128x1x2 n3x64x3x0",
    "n128": "n4x64x4x0 n4x64x5x0 n2x128x2x0 n3x128x2x0",
    "n64_gated": "n2x128x2x0 n2x128x2x1 n3x64x4x0",
    "n320": "n2x64x1x0 n2x64x1x3",
}
FAST = {"svd320_129k": "n2x64x1x0", "n192_gated": "n2x64x2x2", "n128": "n4x64x4x0", "n128_gated": "n2x128x1x0"}


def mlp_of(shape, match=True):
    _, _, dim, hidden, act, bias, gated = shape
    return Mlp(dim, hidden, act, bool(gated), gated != "packed", bias, bias, match=match)


def tiles_of(shape):
    """(match, tile), measured beside one another."""
    return [(True, tile_of(t)) for t in TILES[shape[0]].split()] + [(False, tile_of(t)) for t in FAST.get(shape[0], "").split()]


def pairs():
    return [(mlp_of(s, match), tile) for s in SHAPES for match, tile in tiles_of(s)]
