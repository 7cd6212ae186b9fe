# SPDX-License-Identifier: Apache-2.0
"""Checks compiled whole-MLP kernels against float64 and against PyTorch's own rounding, on one GPU. As check.py for linears.

python3 mlp_check.py CUBINS [--small]
"""
import math

import torch
import torch.nn.functional as F

from check import ACT, main
from driver import Kernel, Matrix
from mlp_cases import cases


class MlpKernel(Kernel):
    """A compiled (MLP, tile) on the current context."""

    def prepare_mlp(self, x, up, gate, down, y, biases=(0, 0, 0), early=0):
        """A callable launch(stream, programmatic). Matrices; biases: addresses of up's, gate's and down's."""
        args, grid = self.tile.arguments(self.driver, self.linear, x, up, gate, down, y, biases, early)
        return self._launch(args, grid)


def mlp(x, up, gate, down, act):
    """Each weight and bias a pair; gate None: not gated. Separate kernels in the tensors' type."""
    h = F.linear(x, *up)
    h = ACT[act](h) if gate is None else ACT[act](F.linear(x, *gate)) * h
    return F.linear(h, *down)


def address(t):
    return 0 if t is None else t.data_ptr()


def run_case(driver, folder, m, tile, tokens, strided, generator):
    dtype, dev, pad = torch.bfloat16 if m.element == "bf16" else torch.float16, "cuda", 24 if strided else 0

    def random(rows, cols, scale):
        return (torch.randn(rows, cols + pad, device=dev, generator=generator) * scale).to(dtype)[:, :cols]

    def bias(n, there):
        # One element off the allocation's alignment: biases are read at 2 bytes.
        return torch.randn(n + 1, device=dev, generator=generator).to(dtype)[1:] if there else None

    x, down = random(tokens, m.dim, 1), random(m.dim, m.hidden, 1 / math.sqrt(m.hidden))
    if m.gated and strided:  # two tensors, a map whose third stride is their distance
        both = [random(m.hidden, m.dim, 1 / math.sqrt(m.dim)) for _ in range(2)]
        both.sort(key=lambda t: t.data_ptr())
        one, two = both
    else:
        w = random(m.hidden * m.matrices, m.dim, 1 / math.sqrt(m.dim))
        one, two = w[:m.hidden], w[m.hidden:] if m.gated else None
    up, gate = (two, one) if m.gated and m.gate_first else (one, two)
    bu, bg, bd = bias(m.hidden, m.up_bias), bias(m.hidden, m.up_bias and m.gated), bias(m.dim, m.down_bias)
    kernel = MlpKernel(driver, folder, m, tile)
    if kernel.local_bytes:
        return f"local memory {kernel.local_bytes}"
    outs, guard = [], 512
    for early in (0, 1):
        buffer = torch.full((tokens * (m.dim + pad) + 2 * guard,), float("nan"), device=dev, dtype=dtype)
        inside = lambda b: b[guard:guard + tokens * (m.dim + pad)].view(tokens, m.dim + pad)[:, :m.dim]
        y = inside(buffer)
        launch = kernel.prepare_mlp(Matrix.of(x), Matrix.of(up), Matrix.of(gate) if m.gated else None, Matrix.of(down),
                                    Matrix(y.data_ptr(), tokens, m.dim, m.dim + pad), (address(bu), address(bg), address(bd)), early)
        launch(torch.cuda.current_stream().cuda_stream, early == 1)
        torch.cuda.synchronize()
        outside = buffer.clone()
        inside(outside)[:] = float("nan")
        if not bool(outside.isnan().all()):
            return "wrote outside the output"
        outs.append(y.clone())
    if not torch.equal(outs[0].view(torch.int16), outs[1].view(torch.int16)):
        return "two runs differ"
    out = outs[0].double()
    if not bool(torch.isfinite(out).all()):
        return f"not finite: {int((~torch.isfinite(out)).sum())} of {out.numel()}"
    as64 = lambda *ts: tuple(None if t is None else t.double() for t in ts)
    exact = mlp(x.double(), as64(up, bu), as64(gate, bg) if m.gated else None, as64(down, bd), m.act)
    eager = mlp(x, (up, bu), (gate, bg) if m.gated else None, (down, bd), m.act).double()
    norm = lambda a: float((a - exact).norm() / exact.norm())
    row = lambda a: float(((a - exact).norm(dim=1) / exact.norm(dim=1).clamp_min(1e-30)).max())
    mine, theirs, row_mine, row_theirs = norm(out), norm(eager), row(out), row(eager)
    text = f"error {mine:.2e} eager {theirs:.2e} ratio {mine / theirs:.3f} worst row {row_mine:.1e}/{row_theirs:.1e}"
    if not (mine <= 1.1 * theirs and row_mine <= 1.3 * row_theirs):
        return "inaccurate: " + text
    return (True, text)


if __name__ == "__main__":
    main(cases, run_case)
