# SPDX-License-Identifier: Apache-2.0
"""What mlp_check.py runs: (MLP, tile, token counts, strided)."""
from mlp_specs import Mlp, Narrow

ACTIVATIONS = ("relu", "gelu_erf", "gelu_tanh", "silu", "quick_gelu", "identity")
# Every dim of a tail of 8, 16 and 24 columns, one and two pieces of y, and hidden that fills no chunk.
WIDTHS = [(64, 256), (64, 8), (72, 200), (80, 328), (96, 384), (104, 64), (120, 136), (128, 512), (136, 72), (160, 640),
          (184, 328), (192, 768), (200, 520), (224, 16), (248, 1000), (256, 1024), (264, 1056), (280, 712), (296, 128),
          (312, 1272), (320, 1280)]
TILES = [Narrow(2, 64, 1, 0), Narrow(2, 64, 1, 1), Narrow(2, 128, 1, 1), Narrow(2, 64, 2, 1), Narrow(2, 64, 3, 0), Narrow(2, 128, 2, 0),
         Narrow(1, 64, 1, 0), Narrow(3, 64, 2, 1), Narrow(3, 64, 16, 0), Narrow(4, 64, 3, 1), Narrow(4, 64, 16, 1)]


def registers(m, tile):
    """Whether y and a chunk's sums leave a thread room for the rest."""
    return m.dim // 2 + tile.chunk * m.matrices // 2 <= {1: 224, 2: 224, 3: 128, 4: 96}[tile.warpgroups]


def legal(m, tile):
    return tile.fits(m) and registers(m, tile)


def cases(small):
    out = []
    for i, (dim, hidden) in enumerate(WIDTHS):
        for gated in (False, True):
            act = ACTIVATIONS[(i + gated) % 5]
            m = Mlp(dim, hidden, act, gated, i % 2 == 0, i % 3 != 1, i % 4 != 3, match=i % 5 != 4)
            tiles = [t for t in TILES if legal(m, t)]
            for tile in tiles[(i + gated) % 4::4] if len(tiles) > 3 else tiles:
                tokens = [1, 65, 200] if small else [1 + (7 * i) % 130, 64 * tile.warpgroups, 301 + i, 2051]
                out.append((m, tile, tokens, i % 2 == 1))
    if small:
        return out[::3]
    for element in ("bf16", "f16"):
        for act in ACTIVATIONS:
            for match in (True, False):
                for gated in (False, True):
                    m = Mlp(128, 320, act, gated, act < "i", act != "silu", act > "h", element, match)
                    out.append((m, Narrow(2, 64, 1, 1), [200], False))
    # The widest at every number of tokens of a tile and one more; more tiles than the device holds at once.
    for gated in (False, True):
        out.append((Mlp(320, 1280, "gelu_erf", gated), Narrow(2, 64, 1, 3), list(range(1, 131, 3)) + [40011], False))
        out.append((Mlp(256, 1024, "relu", gated), Narrow(2, 64 if gated else 128, 1, 2), [40011], True))
        out.append((Mlp(192, 768, "gelu_tanh", gated), Narrow(2, 64, 2, 1), [40011], True))
        out.append((Mlp(128, 512, "silu", gated), Narrow(3, 64, 3, 1), [60011], False))
    out.append((Mlp(64, 256, "relu"), Narrow(4, 64, 16, 1), [100003], False))
    return out


def pairs(small=False):
    return [(m, tile) for m, tile, _, _ in cases(small)]
