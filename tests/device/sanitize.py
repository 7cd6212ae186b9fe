# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of tile once on small shapes through the driver alone, for compute-sanitizer; checks the results.

compute-sanitizer --tool memcheck python3 sanitize.py CUBINS [--part I/N]

No framework: buffers have exactly their size, so an access beyond one is an error the tool sees.
"""
import argparse
import ctypes as C
import math
import sys

import numpy as np

from cases import CASES
from driver import Driver, Kernel, Matrix


def to_bf16(a):
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(a):
    return (a.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


SIGMOID = lambda x: 1 / (1 + np.exp(-x))
ACT = {"relu": lambda x: np.maximum(x, 0), "identity": lambda x: x, "silu": lambda x: x * SIGMOID(x),
       "quick_gelu": lambda x: x * SIGMOID(1.702 * x),
       "gelu_erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
       "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))}


class Memory:
    """Allocations of one case, freed together."""

    def __init__(self, driver):
        self.driver, self.list = driver, []

    def alloc(self, size):
        p = C.c_uint64()
        self.driver.check(self.driver.lib.cuMemAlloc_v2(C.byref(p), C.c_size_t(max(16, size))), "alloc")
        self.list.append(p.value)
        return p.value

    def put(self, array):
        p = self.alloc(array.nbytes)
        self.driver.check(self.driver.lib.cuMemcpyHtoD_v2(C.c_uint64(p), array.ctypes.data_as(C.c_void_p), C.c_size_t(array.nbytes)), "put")
        return p

    def get(self, p, array):
        self.driver.check(self.driver.lib.cuMemcpyDtoH_v2(array.ctypes.data_as(C.c_void_p), C.c_uint64(p), C.c_size_t(array.nbytes)), "get")

    def free(self):
        for p in self.list:
            self.driver.lib.cuMemFree_v2(C.c_uint64(p))


def run(driver, folder, linear, tile, tokens, rng):
    memory = Memory(driver)
    rows_w = linear.n * (2 if linear.gated else 1)
    x = to_bf16(rng.standard_normal((tokens, linear.k)))
    w = to_bf16(rng.standard_normal((rows_w, linear.k)) / math.sqrt(linear.k))
    b = to_bf16(rng.standard_normal(rows_w))
    px, pw, pb = memory.put(x), memory.put(w), memory.put(b)
    py = memory.put(np.zeros((tokens, linear.n), np.uint16))
    kernel = Kernel(driver, folder, linear, tile)
    launch = kernel.prepare(Matrix(px, tokens, linear.k), Matrix(pw, linear.n, linear.k), Matrix(py, tokens, linear.n),
                            pb if linear.bias else 0, Matrix(pw + linear.n * linear.k * 2, linear.n, linear.k),
                            pb + linear.n * 2 if linear.bias and linear.gated else 0, group_rows=2, early=tokens % 5)
    launch(None)
    driver.check(driver.lib.cuCtxSynchronize(), f"{linear.label()} {tile.label()} {tokens}")
    y = np.empty((tokens, linear.n), np.uint16)
    memory.get(py, y)
    memory.free()
    driver.lib.cuModuleUnload(kernel.module)
    z = from_bf16(x) @ from_bf16(w).T + (from_bf16(b) if linear.bias else 0)
    if linear.gated:
        z = ACT[linear.act](z[:, :linear.n]) * z[:, linear.n:]
    else:
        z = ACT[linear.act](z)
    return float(np.linalg.norm(from_bf16(y) - z) / np.linalg.norm(z))


def main(cases=CASES, run=run, worst_error=8e-3):
    """Runs `cases(True)` by `run` and checks each error; also of other scripts, with theirs."""
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
    for i, (linear, tile, tokens_list, _) in enumerate(cases(True)):
        if i % parts != part:
            continue
        for tokens in tokens_list:
            e = run(driver, args.cubins, linear, tile, tokens, rng)
            worst, n = max(worst, e), n + 1
            if not e < worst_error:
                print(f"FAIL {linear.label()} {tile.label()} tokens {tokens} error {e:.2e}", flush=True)
                sys.exit(1)
    print(f"checked {n}, worst error {worst:.2e}")


if __name__ == "__main__":
    main()
