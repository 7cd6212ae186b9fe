# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of whole-MLP kernel once on small shapes through the driver alone, for compute-sanitizer; checks the results.

compute-sanitizer --tool memcheck python3 mlp_sanitize.py CUBINS [--part I/N]      As sanitize.py for linears.
"""
import math

import numpy as np

from driver import Kernel, Matrix
from mlp_cases import cases
from sanitize import ACT, Memory, from_bf16, main, to_bf16


def run(driver, folder, m, tile, tokens, rng):
    memory = Memory(driver)
    x = to_bf16(rng.standard_normal((tokens, m.dim)))
    w = to_bf16(rng.standard_normal((m.matrices * m.hidden, m.dim)) / math.sqrt(m.dim))
    d = to_bf16(rng.standard_normal((m.dim, m.hidden)) / math.sqrt(m.hidden))
    b, bd = to_bf16(rng.standard_normal(m.matrices * m.hidden)), to_bf16(rng.standard_normal(m.dim))
    px, pw, pd, pb, pbd = map(memory.put, (x, w, d, b, bd))
    py = memory.put(np.zeros((tokens, m.dim), np.uint16))
    kernel = Kernel(driver, folder, m, tile)
    halves = [(Matrix(pw + i * m.hidden * m.dim * 2, m.hidden, m.dim), pb + i * m.hidden * 2) for i in range(m.matrices)]
    up, gate = (halves[1], halves[0]) if m.gated and m.gate_first else (halves[0], halves[-1])
    args, grid = tile.arguments(driver, m, Matrix(px, tokens, m.dim), up[0], gate[0] if m.gated else None,
                                Matrix(pd, m.dim, m.hidden), Matrix(py, tokens, m.dim),
                                (up[1] if m.up_bias else 0, gate[1] if m.up_bias and m.gated else 0, pbd if m.down_bias else 0), tokens % 2)
    kernel._launch(args, grid)(None)
    driver.check(driver.lib.cuCtxSynchronize(), f"{m.label()} {tile.label()} {tokens}")
    y = np.empty((tokens, m.dim), np.uint16)
    memory.get(py, y)
    memory.free()
    driver.lib.cuModuleUnload(kernel.module)
    z = from_bf16(x) @ from_bf16(w).T + (from_bf16(b) if m.up_bias else 0)
    one, two = z[:, :m.hidden], z[:, m.hidden:]
    h = ACT[m.act](one) if not m.gated else ACT[m.act](one) * two if m.gate_first else ACT[m.act](two) * one
    z = h @ from_bf16(d).T + (from_bf16(bd) if m.down_bias else 0)
    return float(np.linalg.norm(from_bf16(y) - z) / np.linalg.norm(z))


if __name__ == "__main__":
    main(cases, run, 1e-2)
