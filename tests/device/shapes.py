# SPDX-License-Identifier: Apache-2.0
"""The shapes of the figures table and, for each of their two linears, the tiles worth measuring.

A tile is ranked by a small model: waves of clusters, tensor time of a K block, bytes from L2 to the multiprocessors, bytes
of memory, partial sums. The best few of each kind are measured.
"""
import re
from dataclasses import replace

from specs import Few, Gemm, Linear, ceil_div

# name, tokens, dim, hidden, activation, bias, gated ("packed": one projection, value first, gate second)
SHAPES = [
    ("seed_relu_64", 64, 256, 1024, "relu", True, ""),
    ("seed_relu_1k", 1024, 256, 1024, "relu", True, ""),
    ("seed_relu_16k", 16384, 256, 1024, "relu", True, ""),
    ("blog_geglu_128", 128, 768, 3072, "gelu_tanh", False, "separate"),
    ("blog_geglu_8k", 8192, 768, 3072, "gelu_tanh", False, "separate"),
    ("clip_l_77", 77, 768, 3072, "gelu_erf", True, ""),
    ("dit_xl_1k", 1024, 1152, 4608, "gelu_tanh", True, ""),
    ("wan1.3b_256", 256, 1536, 8960, "gelu_tanh", True, ""),
    ("t5xxl_512", 512, 4096, 10240, "gelu_tanh", False, "separate"),
    ("ltx2b_5k", 4992, 2048, 8192, "gelu_tanh", True, ""),
    ("svd320_129k", 129024, 320, 1280, "gelu_erf", True, "packed"),
    ("svd640_32k", 32256, 640, 2560, "gelu_erf", True, "packed"),
    ("svd1280_8k", 8064, 1280, 5120, "gelu_erf", True, "packed"),
    ("cogx5b_18k", 17776, 3072, 12288, "gelu_tanh", True, ""),
    ("wan1.3b_33k", 32760, 1536, 8960, "gelu_tanh", True, ""),
    ("wan14b_33k", 32760, 5120, 13824, "gelu_tanh", True, ""),
]
CLUSTERS = {1: 132, 2: 66, 3: 42, 4: 30, 5: 23, 6: 20, 7: 16, 8: 15}


def linears(shape, element="bf16", match=True):
    name, tokens, dim, hidden, act, bias, gated = shape
    # Packed: the first half is the value, the second the gate. Separate: allocated by the scripts with the gate first.
    fc1 = Linear(hidden, dim, act, bool(gated), gated != "packed", bias, element, match)
    return fc1, Linear(dim, hidden, "identity", False, True, bias, element, match)


def gemm_us(tile, linear, tokens):
    clusters = CLUSTERS[tile.cluster]
    work = tile.work(linear, tokens)
    waves = ceil_div(work, clusters)
    k_blocks = ceil_div(ceil_div(linear.k, 64), tile.splits)
    cycles = tile.rows * tile.cols * 64 / 2048 / 0.97
    fill = 128 * (tile.rows + tile.cols) / 58  # bytes a cycle that reach a multiprocessor
    tile_us = k_blocks * max(cycles, fill, 200) / 1755
    units = tile.subtiles * ceil_div(tile.cols // 2 if linear.gated else tile.cols, 64)
    epilogue = units * 350 / 1755
    us = 3.6 + 0.3 * (tile.cluster > 1) + waves * (tile_us + (0.3 if tile.epilogue_warps else epilogue)) + 0.8 * tile.epilogue_warps
    if tile.splits > 1:
        us += 1.8 + tile.rows * tile.cols * 4 / 90e3 - epilogue * (1 - 1 / tile.splits)
    factor = 2 if linear.gated else 1
    memory = (tokens * linear.k * 2 + linear.n * linear.k * 2 * factor + tokens * linear.n * 2) / 4.0e6
    return max(us, memory + 2)


def few_us(tile, linear, tokens):
    blocks = tile.blocks(linear, tokens)
    waves = ceil_div(blocks // tile.cluster, CLUSTERS[tile.cluster])
    k_blocks = ceil_div(ceil_div(linear.k, 64), tile.splits)
    active = min(blocks, 132)
    l2 = 128 * (tile.rows + min(tile.tokens, tokens)) / 58
    mma = max(tile.tokens / 2, 16 + tile.tokens / 4 + 4) * 4 * tile.feature_warpgroups
    us = 2.2 + waves * k_blocks * max(mma, l2) / 1755 + 0.8 * (tile.splits > 1)
    us += tile.tokens * tile.rows * 4 / 1e3 / 40 * (1 if tile.splits > 1 else 0.5)
    return us + 0.3


def gemm_tiles(linear, tokens):
    tiles = []
    for consumers, subtiles in ((1, 1), (2, 1), (2, 2), (3, 1)):
        for cols in range(32, 257, 16):
            if cols > (192 if subtiles == 2 else 256) or (linear.gated and cols % 32):
                continue
            if linear.gated and ((subtiles == 2 and cols > 160) or (consumers == 3 and cols > 208)):
                continue
            for cluster in ((1, 1), (2, 1), (1, 2), (2, 2), (1, 4), (4, 1)):
                for splits in (1, 2, 3, 4, 5, 6):
                    for offload in (False, True):
                        t = Gemm(consumers, subtiles, cols, 8, *cluster, splits, offload)
                        while t.stages > 2 and t.shared(linear) > 232448:
                            t = replace(t, stages=t.stages - 1)
                        if t.stages < 3 or consumers * subtiles * ceil_div(cols // 2 if linear.gated else cols, 64) % splits or t.cluster > 8:
                            continue
                        out = cols // 2 if linear.gated else cols
                        if offload and (consumers != 2 or subtiles != 1 or splits > 1 or out % 64 or not linear.match):
                            continue
                        if t.rows // cluster[1] % 8 or cols % cluster[0] or cols // cluster[0] % (16 if linear.gated else 8):
                            continue
                        if splits > 1 and t.work(linear, tokens) > CLUSTERS[t.cluster]:
                            continue
                        if splits > ceil_div(linear.k, 256) or out % 16:
                            continue
                        if consumers == 3 and cols > 240 and cluster == (1, 1):
                            continue
                        tiles.append(t)
    return tiles


def few_tiles(linear, tokens):
    tiles = []
    if tokens > 1100:
        return tiles
    pieces = sorted({ceil_div(ceil_div(tokens, p), 8) * 8 for p in range(1, 40)})
    for n in pieces:
        if n > 256:
            continue
        for features, kw in ((1, 1), (2, 1), (1, 2)):
            for share, splits in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8)):
                t = Few(features, kw, n, kw, share, splits)
                if n % share or n // share % 8 or 64 * features // splits % (16 if linear.gated else 8):
                    continue
                k_blocks = ceil_div(linear.k, 64) // splits
                if k_blocks < kw:
                    continue
                stage = (64 * features + n) * 128
                need = ceil_div(ceil_div(linear.k, 64), splits)
                fixed = replace(t, stages=kw).shared(linear) - kw * stage if splits > 1 else 2048
                stages = min(need, (232448 - fixed - 512) // (stage + 16), 12)
                if stages < max(2, kw) and stages < need:
                    continue
                t = replace(t, stages=max(kw, stages))
                if t.shared(linear) > 232448:
                    continue
                tiles.append(t)
    return tiles


def candidates(linear, tokens, count):
    """The best `count` tiles by the model, at most two of each cluster-free shape."""
    ranked = sorted([(gemm_us(t, linear, tokens), t) for t in gemm_tiles(linear, tokens)] +
                    [(few_us(t, linear, tokens), t) for t in few_tiles(linear, tokens)], key=lambda p: p[0])
    seen, out = {}, []
    for us, t in ranked:
        key = (t.consumers, t.subtiles, t.cols, t.epilogue_warps) if isinstance(t, Gemm) else (t.feature_warpgroups, t.tokens)
        if seen.get(key, 0) >= 2:
            continue
        seen[key] = seen.get(key, 0) + 1
        out.append((us, t))
        if len(out) == count:
            break
    return out


def tile_of(label):
    """The tile of a label, as tile.label() writes it."""
    if m := re.fullmatch(r"g(\d)x(\d)x(\d+)s(\d+)c(\d)(\d)(?:k(\d+))?(e?)(?:l(\d))?", label):
        a, b, c, d, e, f, k, o, lag = m.groups()
        return Gemm(int(a), int(b), int(c), int(d), int(e), int(f), int(k or 1), o == "e", int(lag or 0))
    if m := re.fullmatch(r"f(\d)x(\d)x(\d+)s(\d+)(?:h(\d))?(?:k(\d))?", label):
        a, b, c, d, h, k = m.groups()
        return Few(int(a), int(b), int(c), int(d), int(h or 1), int(k or 1))
    raise ValueError(label)


# Measured beside the model's choice.
WIDE = "g2x1x256s3c21e g2x1x256s3c12e g2x2x192s3c12 g3x1x256s3c12"
EXTRA = {
    ("seed_relu_64", "fc1"): "f1x1x8s4 f1x1x16s4 f1x1x32s4",
    ("seed_relu_64", "fc2"): "f1x1x16s4k4 f1x2x8s8 f1x1x32s4k4 f1x1x8s12 f1x1x8s16",
    ("seed_relu_1k", "fc1"): "f2x1x64s4 f1x1x128s4 g2x1x64s4c11",
    ("seed_relu_1k", "fc2"): "f1x2x32s8 f1x2x32s14 f1x1x32s8 f1x1x32s10 f1x1x32s16",
    ("seed_relu_16k", "fc1"): "g2x1x256s4c11 g2x1x256s3c11 g2x1x256s4c11l2 g2x1x256s3c11l2 g2x2x128s4c11 g2x1x256s3c21e g2x1x128s6c11",
    ("seed_relu_16k", "fc2"): "g2x1x256s4c11 g2x1x256s4c21 g2x2x128s4c11 g2x2x128s3c11 g2x1x256s3c11",
    ("blog_geglu_128", "fc1"): "f1x1x128s9h2 f1x1x128s9 f2x1x64s8 f1x1x128s6 g1x1x96s8c11 g1x1x96s6c11",
    ("blog_geglu_128", "fc2"): "f1x1x64s12k4 f1x2x64s10k4 f1x1x64s8k4 f1x1x128s6k8",
    ("blog_geglu_8k", "fc1"): "g2x1x256s3c21e g2x1x256s3c12e g2x2x160s3c12 g2x1x256s3c11e g2x1x256s3c21",
    ("blog_geglu_8k", "fc2"): "g2x2x192s3c12 g2x1x192s4c21 g2x2x192s3c11",
    ("clip_l_77", "fc1"): "f1x1x80s12 f1x1x40s12 f1x2x40s12 f1x1x40s8",
    ("clip_l_77", "fc2"): "f1x1x40s12k4 f1x2x40s12k4 f1x1x80s6k8 f1x1x40s8k4",
    ("dit_xl_1k", "fc1"): "g2x2x144s4c11 g2x1x144s5c21 g2x1x144s6c11 g2x1x144s6c21",
    ("dit_xl_1k", "fc2"): "g2x1x144s5c11k2 g2x1x144s6c11k2 g1x1x144s7c21 g1x1x144s7c11 g2x1x128s6c21",
    ("wan1.3b_256", "fc1"): "g2x1x144s5c21 g2x1x144s6c11 g2x2x80s4c11",
    ("wan1.3b_256", "fc2"): "g2x1x112s7c21k4 g2x1x112s7c11k4 g2x1x128s6c21k4 g2x1x128s6c11k4",
    ("t5xxl_512", "fc1"): "g2x2x160s3c12 g2x2x160s3c21 g2x2x160s3c11",
    ("t5xxl_512", "fc2"): "g2x1x128s6c21 g2x1x128s6c11 g2x2x128s3c11k2 g2x1x128s6c12",
    ("ltx2b_5k", "fc1"): WIDE + " g3x1x208s3c12 g3x1x240s3c21",
    ("ltx2b_5k", "fc2"): WIDE + " g3x1x208s3c12 g2x2x176s3c12 g3x1x208s3c21",
    ("svd320_129k", "fc1"): "g2x1x256s4c21 g2x1x256s4c11 g2x1x256s3c11 g2x1x256s3c11l2 g2x1x256s3c21 g2x1x256s3c21e g2x2x128s4c11",
    ("svd320_129k", "fc2"): "g2x2x160s3c12 g2x2x160s3c11 g2x1x160s5c21 g2x1x160s5c12 g3x1x160s4c12",
    ("svd640_32k", "fc1"): "g2x1x256s3c21e g2x1x256s3c12e g2x1x256s3c11e g2x2x160s3c12 g2x1x256s3c21 g2x1x256s3c11 g2x1x256s4c21",
    ("svd640_32k", "fc2"): "g2x2x160s3c12 g2x2x160s3c21 g2x2x160s3c11",
    ("svd1280_8k", "fc1"): "g2x1x256s3c21e g2x1x256s3c12e g2x2x160s3c12",
    ("svd1280_8k", "fc2"): "g2x2x160s3c12 g2x2x160s3c21 g2x2x160s3c11",
    ("cogx5b_18k", "fc1"): WIDE, ("cogx5b_18k", "fc2"): WIDE,
    ("wan1.3b_33k", "fc1"): WIDE, ("wan1.3b_33k", "fc2"): WIDE,
    ("wan14b_33k", "fc1"): WIDE, ("wan14b_33k", "fc2"): WIDE + " g3x1x256s3c21",
}


# Pairs measured as a whole beside the best of each linear: what a launch gives up can be the next one's head start.
PAIRS = {
    "seed_relu_1k": [("f2x1x64s4", "f1x1x32s10"), ("f1x1x128s4", "f1x1x32s10"), ("f1x1x128s4", "f1x1x32s12")],
    "seed_relu_64": [("f1x1x16s4", "f1x1x16s4k4"), ("f1x1x32s4", "f1x1x16s4k4")],
    "dit_xl_1k": [("g2x1x144s5c21", "g1x1x144s7c11"), ("g2x2x144s4c11", "g1x1x144s7c11")],
    "wan1.3b_256": [("g2x1x144s6c11", "g2x1x112s7c21k4"), ("g2x1x144s6c11", "g2x1x128s6c21k4")],
}


def measured(shape, which, count):
    linear = linears(shape)[0 if which == "fc1" else 1]
    tiles = [tile_of(t) for t in EXTRA.get((shape[0], which), "").split()] + \
            [t for _, t in candidates(linear, shape[1], count)]
    return linear, list(dict.fromkeys(tiles))


def pairs(count=3):
    """All (linear, tile) of the table that can be compiled."""
    out = []
    for shape in SHAPES:
        for which in ("fc1", "fc2"):
            linear, tiles = measured(shape, which, count)
            extra = [tile_of(p[which == "fc2"]) for p in PAIRS.get(shape[0], [])]
            out += [(linear, t) for t in tiles + extra if t.shared(linear) <= 232448]
    return out


def probe_of(spec):
    """TOKENS:K:N:ACT[:gated][:nobias]:TILE[:gROWS][:eSTAGES][:warm] as (tokens, linear, tile, group_rows, early, warm)."""
    f = spec.split(":")
    linear = Linear(int(f[2]), int(f[1]), f[3], "gated" in f, True, "nobias" not in f, match="fast" not in f)
    tile = tile_of(next(t for t in f[4:] if "x" in t))
    group = next((int(t[1:]) for t in f[4:] if t[0] == "g" and t[1:].isdigit()), 16)
    early = next((int(t[1:]) for t in f[4:] if t[0] == "e" and t[1:].isdigit()), 0)
    return int(f[0]), linear, tile, group, early, "warm" in f[4:]


if __name__ == "__main__":
    for s in SHAPES:
        for which, linear in zip(("fc1", "fc2"), linears(s)):
            print(s[0], which, " ".join(f"{t.label()}={us:.1f}" for us, t in candidates(linear, s[1], 9)))
