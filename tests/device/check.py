# SPDX-License-Identifier: Apache-2.0
"""Checks compiled sm_90a kernels against float64 and against PyTorch's own rounding, on one GPU.

python3 check.py CUBINS [--small] (--small: sizes for compute-sanitizer)

Every case draws fresh inputs, poisons the output, runs twice (the same bits are demanded), and compares
||out - reference|| / ||reference|| and the largest row's with what separate PyTorch kernels give on the same inputs.
"""
import argparse
import math
import os
import sys
import threading
import time

import torch
import torch.nn.functional as F

from driver import Driver, Kernel, Matrix
from cases import CASES

ACT = {"relu": F.relu, "gelu_erf": F.gelu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"), "silu": F.silu,
       "quick_gelu": lambda t: t * torch.sigmoid(1.702 * t), "identity": lambda t: t}


def reference(x, w, b, act, gated, rounded):
    """float64; with `rounded`, PyTorch's separate kernels in the element type."""
    y = F.linear(x, w, b)
    if not gated:
        return ACT[act](y)
    gate, up = y.chunk(2, dim=-1)
    return ACT[act](gate) * up


def run_case(driver, folder, linear, tile, tokens, strided, generator):
    dtype = torch.bfloat16 if linear.element == "bf16" else torch.float16
    dev = "cuda"
    rows_w = linear.n * (2 if linear.gated else 1)
    pad = 24 if strided else 0
    x = torch.randn(tokens, linear.k + pad, device=dev, generator=generator).to(dtype)[:, :linear.k]
    w = (torch.randn(rows_w, linear.k + pad, device=dev, generator=generator) / math.sqrt(linear.k)).to(dtype)[:, :linear.k]
    # One element off the allocation's alignment: biases are read at 2 bytes.
    b = torch.randn(rows_w + 1, device=dev, generator=generator).to(dtype)[1:] if linear.bias else None
    kernel = Kernel(driver, folder, linear, tile)
    if kernel.local_bytes:
        return f"local memory {kernel.local_bytes}"
    # In memory `w` is [gate; up] when the gate comes first, else [up; gate].
    ref_w, ref_b = w, b
    first, second = w[:linear.n], w[linear.n:]
    bias_first = b.data_ptr() if b is not None else 0
    bias_second = b[linear.n:].data_ptr() if b is not None and linear.gated else 0
    if linear.gated and not linear.gate_first:
        ref_w = torch.cat([second, first])
        ref_b = None if b is None else torch.cat([b[linear.n:], b[:linear.n]])
        first, second, bias_first, bias_second = second, first, bias_second, bias_first
    outs = []
    guard = 512
    for _ in range(2):
        buffer = torch.full((tokens * (linear.n + pad) + 2 * guard,), float("nan"), device=dev, dtype=dtype)
        y = buffer[guard:guard + tokens * (linear.n + pad)].view(tokens, linear.n + pad)[:, :linear.n]
        launch = kernel.prepare(Matrix.of(x), Matrix.of(first), Matrix(y.data_ptr(), tokens, linear.n, linear.n + pad),
                                bias_first, Matrix.of(second) if linear.gated else None, bias_second,
                                group_rows=3, early=tokens % 9)
        launch(torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        outside = buffer.clone()
        outside[guard:guard + tokens * (linear.n + pad)].view(tokens, linear.n + pad)[:, :linear.n] = float("nan")
        if not bool(outside.isnan().all()):
            return "wrote outside the output"
        outs.append(y.clone())
    if not torch.equal(outs[0].view(torch.int16), outs[1].view(torch.int16)):
        return "two runs differ"
    out = outs[0].double()
    if not bool(torch.isfinite(out).all()):
        return f"not finite: {int((~torch.isfinite(out)).sum())} of {out.numel()}"
    exact = reference(x.double(), ref_w.double(), None if ref_b is None else ref_b.double(), linear.act, linear.gated, False)
    eager = reference(x, ref_w, ref_b, linear.act, linear.gated, True).double()
    norm = lambda a: float((a - exact).norm() / exact.norm())
    row = lambda a: float(((a - exact).norm(dim=1) / exact.norm(dim=1).clamp_min(1e-30)).max())
    mine, theirs, row_mine, row_theirs = norm(out), norm(eager), row(out), row(eager)
    differ = float((outs[0] != eager.to(dtype)).float().mean())
    text = f"error {mine:.2e} eager {theirs:.2e} ratio {mine / theirs:.3f} worst row {row_mine:.1e}/{row_theirs:.1e} differ {differ:.4f}"
    if not (mine <= 1.1 * theirs and row_mine <= 1.3 * row_theirs):
        return "inaccurate: " + text
    return (True, text)


def main(cases=CASES, run_case=run_case):
    """Runs every case of `cases(small)` by `run_case`; also of other scripts, with theirs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cubins")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--start", type=int, default=0, help="skip the cases before this one")
    args = parser.parse_args()
    torch.manual_seed(torch.seed() % 2**31)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")
    driver, failed, count = Driver(), 0, 0
    generator = torch.Generator(device="cuda")
    generator.manual_seed(torch.seed() % 2**31)
    state = {"since": None, "what": ""}

    def watch():
        while True:
            time.sleep(0.5)
            if state["since"] and time.time() - state["since"] > 5:
                print(f"HANG {state['what']}\nnext {count}", flush=True)
                os._exit(3)
    if not args.small:
        threading.Thread(target=watch, daemon=True).start()
    for linear, tile, tokens_list, strided in cases(args.small):
        for tokens in tokens_list:
            count += 1
            if count <= args.start:
                continue
            state["what"], state["since"] = f"{linear.label()} {tile.label()} tokens {tokens}", time.time()
            try:
                result = run_case(driver, args.cubins, linear, tile, tokens, strided, generator)
            except (RuntimeError, OSError) as e:
                result = f"{e}"[:300]
            good = isinstance(result, tuple)
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {linear.label():48s} {tile.label():18s} tokens {tokens:6d} {'strided ' if strided else ''}"
                  f"{result[1] if good else result}", flush=True)
            if not good and any(t in str(result) for t in ("CUDA", "illegal", "launch failure", "unspecified")):
                print(f"stopping: the context is lost\nnext {count}")
                sys.exit(3)
    print(f"checked {count - args.start}, failed {failed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
