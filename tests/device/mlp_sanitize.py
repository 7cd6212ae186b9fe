# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of whole-MLP kernel once on small shapes through the driver alone, for compute-sanitizer; checks the results.

compute-sanitizer --tool memcheck python3 mlp_sanitize.py CUBINS [--part I/N]      As sanitize.py for linears.
"""
import argparse
import ctypes as C
import math
import sys

import numpy as np

from driver import Driver, Kernel, Matrix
from mlp_cases import cases
from sanitize import Memory, from_bf16, to_bf16

SIGMOID = lambda x: 1 / (1 + np.exp(-x))
ACT = {"relu": lambda x: np.maximum(x, 0), "identity": lambda x: x, "silu": lambda x: x * SIGMOID(x),
       "quick_gelu": lambda x: x * SIGMOID(1.702 * x),
       "gelu_erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
       "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))}


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


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("cubins")
    ap.add_argument("--part", default="0/1")
    args = ap.parse_args()
    part, parts = map(int, args.part.split("/"))
    driver = Driver()
    device, context = C.c_int(), C.c_void_p()
    driver.check(driver.lib.cuDeviceGet(C.byref(device), 0), "device")
    driver.check(driver.lib.cuDevicePrimaryCtxRetain(C.byref(context), device), "context")
    driver.check(driver.lib.cuCtxSetCurrent(context), "current")
    rng, worst, n = np.random.default_rng(), 0.0, 0
    for i, (m, tile, tokens_list, _) in enumerate(cases(True)):
        if i % parts != part:
            continue
        for tokens in tokens_list:
            e = run(driver, args.cubins, m, tile, tokens, rng)
            worst, n = max(worst, e), n + 1
            if not e < 1e-2:
                print(f"FAIL {m.label()} {tile.label()} tokens {tokens} error {e:.2e}", flush=True)
                sys.exit(1)
    print(f"checked {n}, worst error {worst:.2e}")


if __name__ == "__main__":
    main()
