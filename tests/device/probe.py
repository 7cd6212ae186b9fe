# SPDX-License-Identifier: Apache-2.0
"""Times single linears, to find what limits a tile.

python3 probe.py CUBINS [--plain] SPEC...   SPEC = TOKENS:K:N:ACT[:gated][:nobias]:TILE[:gROWS][:eSTAGES][:warm]
e: stages with early weights. warm: one set of operands over and over, so that they stay in L2. Interleaved, median of nine.
--plain: three launches of each and no timing, for a profiler.
"""
import math
import statistics
import sys

import torch

from bench import Graph, Watchdog, ptr
from driver import Driver, Kernel, Matrix
from shapes import probe_of

DEV, BF16 = "cuda", torch.bfloat16


def main():
    torch.set_grad_enabled(False)
    torch.zeros(1, device=DEV)
    driver, graphs, flops, keep = Driver(), {}, {}, []
    plain, dog = "--plain" in sys.argv, Watchdog("probe.hung", 6)
    for spec in sys.argv[2:]:
        if spec == "--plain":
            continue
        dog.step(spec)
        tokens, linear, tile, group, early, warm = probe_of(spec)
        rows_w = linear.n * (2 if linear.gated else 1)
        size = 2 * (tokens * linear.k + rows_w * linear.k + tokens * linear.n)
        sets = 1 if warm else max(1, min(48, math.ceil(256e6 / size)))
        kernel = Kernel(driver, sys.argv[1], linear, tile)
        launches = []
        for _ in range(sets):
            x = torch.randn(tokens, linear.k, device=DEV).to(BF16)
            w = (torch.randn(rows_w, linear.k, device=DEV) / math.sqrt(linear.k)).to(BF16)
            b, y = torch.randn(rows_w, device=DEV).to(BF16), torch.empty(tokens, linear.n, device=DEV, dtype=BF16)
            keep.append((x, w, b, y))
            launches.append(kernel.prepare(
                Matrix.of(x), Matrix.of(w[:linear.n]), Matrix.of(y), ptr(b), Matrix.of(w[linear.n:]) if linear.gated else None,
                ptr(b[linear.n:]), group_rows=group, early=early))
        keep.append((kernel, launches))
        if plain:
            for i in range(3):
                launches[i % sets](torch.cuda.current_stream().cuda_stream)
            torch.cuda.synchronize()
            continue
        repeat = max(1, 24 // sets)
        graphs[spec] = Graph(lambda i, n=sets, l=launches: l[i % n](torch.cuda.current_stream().cuda_stream), sets * repeat)
        flops[spec] = 2 * tokens * rows_w * linear.k
    dog.step(None)
    samples = {k: [] for k in graphs}
    for _ in range(9):
        for k, g in graphs.items():
            samples[k].append(g.once())
    for k, v in samples.items():
        us = statistics.median(v)
        print(f"{k:60s} {us:9.2f} us [{min(v):.2f} {max(v):.2f}] {flops[k] / us * 1e-6:5.0f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
