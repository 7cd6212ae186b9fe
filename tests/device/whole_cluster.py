# SPDX-License-Identifier: Apache-2.0
"""The whole MLP in one launch for few tokens (sm90/cluster.cuh) on one GPU: checks against float64, times.

python3 whole_cluster.py CUBINS compile [small|all|time]   no GPU needed
python3 whole_cluster.py CUBINS check [I/N]                the numeric sweep, or a part of it; needs NumPy and the driver only
python3 whole_cluster.py CUBINS small                      sizes for compute-sanitizer
python3 whole_cluster.py CUBINS time [SHAPE,...]           tiles beside two launches and PyTorch; needs PyTorch

Every check draws fresh inputs, poisons what lies around and under the output, runs twice (the same bits are demanded),
and judges every output by what the roundings of the contract make likely: 12 standard deviations, and the norm of the
error against an unfused framework's.
"""
import ctypes as C
import math
import os
import sys
import time
from dataclasses import dataclass

from mlp_specs import Mlp
from portable import Memory, Numbers, activated, laid_out, open_driver
from specs import Few, Linear, ceil_div, compile_all, flag

ACTIVATIONS = ("relu", "gelu_erf", "gelu_tanh", "quick_gelu", "silu", "identity")


@dataclass(frozen=True)
class Cluster:
    """A tile of cluster.cuh."""
    blocks: int
    tokens: int
    warps: int = 8
    depth: int = 16

    @property
    def cluster(self):
        return self.blocks

    @property
    def threads(self):
        return 32 * self.warps

    def label(self):
        return f"c{self.blocks}x{self.tokens}x{self.warps}x{self.depth}"

    def walk(self, pieces, units, chunks):
        """(units, chunks) of a batch of weights, batches until K is done."""
        per_warp, flight, most = ceil_div(units, self.warps), max(1, self.depth // pieces), 2 if self.tokens > 8 else 4
        both = 2 if self.tokens > 16 and pieces == 2 and flight > 1 and per_warp > 1 else 1
        rounds = ceil_div(chunks, flight // both)
        chunks = ceil_div(chunks, rounds)
        return (both if rounds > 1 else min(flight // chunks, most, per_warp)), chunks, rounds

    def shared(self, mlp):
        out_units = ceil_div(mlp.dim, 32)
        owned, slice_chunks = ceil_div(out_units, self.blocks), ceil_div(ceil_div(mlp.hidden, 32), self.blocks)
        _, chunks, rounds = self.walk(4, out_units, slice_chunks)
        slice_chunks = chunks * rounds
        _, chunks, rounds = self.walk(4 if mlp.gated else 2, 2 * slice_chunks, ceil_div(mlp.dim, 32))
        pitch = 64 * (chunks * rounds | 1)
        floats = slice_chunks * 32 * (2 if mlp.gated else 1) + owned * 32
        return self.tokens * pitch + slice_chunks * self.tokens * 64 + self.blocks * owned * self.tokens * 128 + floats * 4 + 8

    def text(self, mlp):
        args = f"ingot::device::{mlp.element}, {mlp.chain()}, {flag(mlp.rounds)}, {mlp.dim}, {mlp.hidden}, {flag(mlp.gated)}, " \
               f"{flag(mlp.up_bias)}, {flag(mlp.down_bias)}, {self.blocks}, {self.tokens}, {self.warps}, {self.depth}"
        return f"""#include "sm90/cluster.cuh"
using Shape = ingot::sm90::ClusterShape<{args}>;
using Kernel = ingot::sm90::Cluster<Shape>;
static_assert(Kernel::threads == {self.threads} && Shape::shared.total == {self.shared(mlp)}, "launch");
INGOT_KERNEL(ingot_kernel, Kernel)
"""


class Args(C.Structure):
    _fields_ = [(n, C.c_void_p) for n in "x up gate down up_bias gate_bias down_bias y".split()] + \
               [(n, C.c_longlong) for n in ("y_stride", "x_stride")] + \
               [(n, C.c_int) for n in "up_stride gate_stride down_stride tokens".split()]


def kernel_of(driver, folder, mlp, tile):
    from driver import Kernel

    class ClusterKernel(Kernel):
        def _clusters(self):
            # Weights on their way to registers take room in L1: shared memory as small as may be.
            driver.check(driver.lib.cuFuncSetAttribute(self.function, 9, -1), "carveout")
            return super()._clusters()
    return ClusterKernel(driver, folder, mlp, tile)


def prepare(kernel, x, up, gate, down, y, up_bias=0, gate_bias=0, down_bias=0):
    """A callable launch(stream, programmatic)."""
    gate_at, gate_stride = (gate.address, gate.stride) if gate else (0, 0)
    args = Args(x.address, up.address, gate_at, down.address, up_bias, gate_bias, down_bias, y.address, y.stride, x.stride,
                up.stride, gate_stride, down.stride, x.rows)
    return kernel._launch(args, ceil_div(x.rows, kernel.tile.tokens) * kernel.tile.blocks)


# --- cases ----------------------------------------------------------------------------------------------------
def cases(small):
    """(mlp, tile, token counts)."""
    seed, odd = Mlp(256, 1024), Mlp(264, 520, "gelu_tanh")
    gated = Mlp(200, 328, "gelu_erf", True)
    sizes = [Cluster(b, t) for b in (1, 2, 4, 8) for t in (8, 16)]
    if small:
        return [(m, t, [1, 19]) for m in (odd, gated) for t in sizes] + [(seed, Cluster(8, 8), [64]), (seed, Cluster(4, 40), [77])]
    out = [(seed, Cluster(8, 8), list(range(1, 131))), (seed, Cluster(8, 16), list(range(1, 131, 7))),
           (seed, Cluster(4, 40), [1, 40, 41, 130, 1024]), (seed, Cluster(8, 72), [1, 72, 73, 1024]), (seed, Cluster(8, 24), [1, 24, 130])]
    for m in (seed, odd, gated):
        out += [(m, t, [1, 8, 15, 77]) for t in sizes + [Cluster(3, 8), Cluster(5, 8), Cluster(6, 16), Cluster(7, 8), Cluster(8, 8, 4),
                                                         Cluster(8, 8, 16, 8), Cluster(4, 24), Cluster(8, 8, 8, 8), Cluster(8, 32, 8, 32)]]
    for element in ("bf16", "f16"):
        for act in ACTIVATIONS:
            for match in (True, False):
                for is_gated in (False, True):
                    bias = (act != "silu", act != "relu") if match else (act == "silu", act == "quick_gelu")
                    out.append((Mlp(256, 1024, act, is_gated, True, *bias, element, match), Cluster(8, 8), [9, 64]))
    for i, dim in enumerate((8, 40, 64, 96, 320, 520)):
        for j, hidden in enumerate((8, 72, 256, 1000)):
            out.append((Mlp(dim, hidden, "quick_gelu", (i + j) % 2 == 1, True, i % 2 == 0, j % 2 == 0), Cluster((1, 2, 8, 8)[j], 16 if i % 2 and j % 2 else 8), [1, 17]))
    wider = Mlp(768, 3072, "quick_gelu")
    out += [(wider, Cluster(8, 8), [77, 128]), (wider, Cluster(8, 16), [77, 128]), (wider, Cluster(8, 32), [77]),
            (Mlp(768, 3072, "gelu_tanh", True, True, False, False), Cluster(8, 8), [77, 128])]
    return out


TIMED = {
    "seed_relu_64": (64, Mlp(256, 1024), [Cluster(8, 8), Cluster(8, 8, 4, 16), Cluster(8, 8, 8, 8), Cluster(4, 8), Cluster(8, 16)],
                     (Few(1, 1, 16, 4), Few(1, 1, 16, 4, 1, 4))),
    "seed_relu_1k": (1024, Mlp(256, 1024), [Cluster(4, 40), Cluster(8, 72), Cluster(8, 72, 8, 8), Cluster(2, 16)],
                     (Few(1, 1, 128, 4), Few(1, 1, 32, 16))),
    "clip_l_77": (77, Mlp(768, 3072, "quick_gelu"), [Cluster(8, 8), Cluster(8, 16), Cluster(8, 24), Cluster(8, 32), Cluster(4, 8)],
                  (Few(1, 1, 40, 12), Few(1, 1, 40, 12, 1, 4))),
    "blog_geglu_128": (128, Mlp(768, 3072, "gelu_tanh", True, True, False, False), [Cluster(8, 8), Cluster(4, 8)],
                       (Few(1, 1, 128, 8), Few(1, 1, 64, 12, 1, 4))),
}


def first_linear(mlp):
    return Linear(mlp.hidden, mlp.dim, mlp.act, mlp.gated, True, mlp.up_bias, mlp.element, mlp.match)


def second_linear(mlp):
    return Linear(mlp.dim, mlp.hidden, "identity", False, True, mlp.down_bias, mlp.element, mlp.match)


def pairs(what):
    if what == "time":
        return [(mlp, tile) for _, mlp, tiles, _ in TIMED.values() for tile in tiles] + \
               [p for _, mlp, _, (a, b) in TIMED.values() for p in ((first_linear(mlp), a), (second_linear(mlp), b))]
    return [(mlp, tile) for mlp, tile, _ in cases(what == "small")]


# --- checks ---------------------------------------------------------------------------------------------------
def slope(np, act, z):
    """The activation's, by differences."""
    return np.abs(activated(np, act, z + 1e-3) - activated(np, act, z - 1e-3)) / 2e-3


def expected(mlp, numbers, x, w, b, down, down_bias):
    """(float64 result, standard deviation of each output, result with the contract's roundings). w, b: of the gate first where
    there is one."""
    np, unit = numbers.np, numbers.unit / math.sqrt(3)
    stored = lambda v: numbers.unpack(numbers.pack(v))
    between = stored if mlp.match else lambda v: v
    z = [x @ m.T + (b[i] if b else 0) for i, m in enumerate(w)]
    act = activated(np, mlp.act, z[0])
    variance = (slope(np, mlp.act, z[0]) * unit * z[0])**2 + 2 * (unit * act)**2
    h, rounded = act, between(activated(np, mlp.act, between(z[0])))
    if mlp.gated:
        h, rounded = act * z[1], rounded * between(z[1])
        variance = variance * z[1]**2 + 3 * (unit * h)**2
    rounded = stored(rounded)
    y = h @ down.T + down_bias
    framework = stored(rounded @ down.T + down_bias)
    tiny = 2.0**-24 * math.sqrt(mlp.dim + mlp.hidden) * (np.abs(h) @ np.abs(down).T + np.abs(down_bias))
    return y, np.sqrt(variance @ (down**2).T + (unit * y)**2) + tiny + 2.0**-25, framework


class Weights:
    """Of one MLP, on the device and in float64; biases off 4-byte alignment."""

    def __init__(self, mlp, rng, driver):
        numbers = self.numbers = Numbers(mlp.element)
        np, self.mlp, self.memory = numbers.np, mlp, Memory(driver)
        draw = lambda rows, cols, scale, aligned: laid_out(numbers, rng.standard_normal((rows, cols)) * scale, aligned)
        matrices = 2 if mlp.gated else 1
        w = [draw(mlp.hidden, mlp.dim, mlp.dim**-0.5, True) for _ in range(matrices)]
        b = [draw(1, mlp.hidden, 1, False) for _ in range(matrices)] if mlp.up_bias else []
        d, db = draw(mlp.dim, mlp.hidden, mlp.hidden**-0.5, True), draw(1, mlp.dim, 1, False)
        self.w, self.b, self.down = [m[3] for m in w], [m[3] for m in b], d[3]
        self.down_bias = db[3] if mlp.down_bias else np.zeros((1, mlp.dim))
        self.w_at = [self.matrix(m, mlp.hidden, mlp.dim) for m in w]
        self.b_at = [self.matrix(m, 1, mlp.hidden).address for m in b] + [0, 0]
        self.down_at = self.matrix(d, mlp.dim, mlp.hidden)
        self.down_bias_at = self.matrix(db, 1, mlp.dim).address if mlp.down_bias else 0

    def matrix(self, laid, rows, cols, memory=None):
        from driver import Matrix
        return Matrix((memory or self.memory).put(laid[0]) + laid[1] * self.numbers.bytes, rows, cols, laid[2])


def run_case(driver, kernel, weights, tokens, rng):
    from driver import Matrix
    mlp, numbers, memory = weights.mlp, weights.numbers, Memory(driver)
    np, ones = numbers.np, 0xffff
    x = laid_out(numbers, rng.standard_normal((tokens, mlp.dim)), True)
    y_shape = laid_out(numbers, np.zeros((tokens, mlp.dim)), True)
    runs, guard = [], 64
    try:
        x_at = weights.matrix(x, tokens, mlp.dim, memory)
        gate, up = (weights.w_at if mlp.gated else [None, weights.w_at[0]])
        gate_bias, up_bias = (weights.b_at[:2] if mlp.gated else [0, weights.b_at[0]])
        for _ in range(2):
            flat = np.full(y_shape[0].size + 2 * guard, ones, np.uint16)
            y = memory.put(flat)
            launch = prepare(kernel, x_at, up, gate, weights.down_at, Matrix(y + guard * 2, tokens, mlp.dim, y_shape[2]), up_bias, gate_bias,
                             weights.down_bias_at)
            launch(None)
            driver.check(driver.lib.cuCtxSynchronize(), "run")
            runs.append(memory.read(y, flat))
    finally:
        memory.free()
    if not np.array_equal(runs[0], runs[1]):
        return "two runs differ"
    inside = np.lib.stride_tricks.as_strided(runs[0][guard:], (tokens, mlp.dim), (y_shape[2] * 2, 2))
    out = numbers.unpack(np.ascontiguousarray(inside))
    inside[:] = ones
    if not bool((runs[0] == ones).all()):
        return "wrote outside the output"
    exact, deviation, framework = expected(mlp, numbers, x[3], weights.w, weights.b, weights.down, weights.down_bias)
    share = np.abs(out - exact) / deviation
    norm = lambda a: float(np.linalg.norm(a - exact) / max(np.linalg.norm(exact), 1e-30))
    error, framework_error = norm(out), norm(framework)
    text = f"error {error:.2e}, framework {framework_error:.2e}, ratio {error / max(framework_error, 1e-30):.3f}, worst {float(share.max()):.1f} deviations"
    if not bool((share <= 12).all()):  # not-a-number is not
        bad = np.argwhere(~(share <= 12))
        return f"wrong in {len(bad)} of {out.size}, first [{bad[0][0]}, {bad[0][1]}]: {out[tuple(bad[0])]} for {exact[tuple(bad[0])]}; {text}"
    # Few outputs stray by chance.
    if error > (1.1 + 5 / math.sqrt(out.size)) * framework_error:
        return f"inaccurate: {text}"
    return (True, text)


def check(folder, small, part="0/1"):
    import numpy as np
    driver, rng = open_driver(), np.random.default_rng()
    count, failed, since = 0, 0, time.time()
    index, parts = map(int, part.split("/"))
    for mlp, tile, tokens_list in cases(small)[index::parts]:
        try:
            kernel = kernel_of(driver, folder, mlp, tile)
        except OSError as e:
            count, failed = count + 1, failed + 1
            print(f"FAIL {mlp.label()} {tile.label()} {e}", flush=True)
            continue
        if kernel.local_bytes:
            print(f"FAIL {mlp.label()} {tile.label()} local memory {kernel.local_bytes}")
            failed += 1
        weights = Weights(mlp, rng, driver)
        for tokens in tokens_list:
            try:
                result = run_case(driver, kernel, weights, tokens, rng)
            except (RuntimeError, OSError) as e:
                result = f"{e}"[:300]
            good = isinstance(result, tuple)
            count, failed = count + 1, failed + (not good)
            print(f"{'ok  ' if good else 'FAIL'} {mlp.label():52s} {tile.label():12s} tokens {tokens:5d} {result[1] if good else result}", flush=True)
            if not good and any(t in result for t in ("illegal", "launch failure", "unspecified", "misaligned")):
                print(f"stopping: the context is lost\nchecked {count}, failed {failed}")
                return 1
        weights.memory.free()
    print(f"checked {count}, failed {failed}, {time.time() - since:.0f} s")
    return 1 if failed or not count else 0


# --- times ----------------------------------------------------------------------------------------------------
def time_shapes(folder, names):
    import random
    import torch
    import torch.nn.functional as F
    from bench import ACT, Graph, ptr
    from driver import Driver, Kernel, Matrix
    torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")
    driver, dev, dtype, failed = Driver(), "cuda", torch.bfloat16, 0
    acts = ACT | {"quick_gelu": lambda t: t * torch.sigmoid(1.702 * t)}
    for name in names or TIMED:
        tokens, mlp, tiles, (tile1, tile2) = TIMED[name]
        dim, hidden, matrices = mlp.dim, mlp.hidden, 2 if mlp.gated else 1
        size = 2 * (2 * tokens * dim + dim * hidden * (matrices + 1))
        sets = max(1, min(48, math.ceil(256e6 / size)))
        draw = lambda *shape, scale=1.0: (torch.randn(*shape, device=dev) * scale).to(dtype)
        xs, ys = [draw(tokens, dim) for _ in range(sets)], [torch.empty(tokens, dim, device=dev, dtype=dtype) for _ in range(sets)]
        ups, downs = [draw(matrices * hidden, dim, scale=dim**-0.5) for _ in range(sets)], [draw(dim, hidden, scale=hidden**-0.5) for _ in range(sets)]
        b1 = [draw(matrices * hidden) if mlp.up_bias else None for _ in range(sets)]
        b2 = [draw(dim) if mlp.down_bias else None for _ in range(sets)]
        h = torch.empty(tokens, hidden, device=dev, dtype=dtype)

        def eager(i, cast=lambda t: t):
            z = F.linear(cast(xs[i]), cast(ups[i]), None if b1[i] is None else cast(b1[i]))
            z = acts[mlp.act](z[:, :hidden]) * z[:, hidden:] if mlp.gated else acts[mlp.act](z)
            return F.linear(z, cast(downs[i]), None if b2[i] is None else cast(b2[i]))

        stream = lambda: torch.cuda.current_stream().cuda_stream
        exact = eager(0, lambda t: t.double())
        off = lambda y: float((y.double() - exact).norm() / exact.norm())
        print(f"{name}: eager's error {off(eager(0)):.2e}")
        calls = {"eager": lambda i: eager(i)}
        first, last = Kernel(driver, folder, first_linear(mlp), tile1), Kernel(driver, folder, second_linear(mlp), tile2)
        two = []
        for i in range(sets):
            a = first.prepare(Matrix.of(xs[i]), Matrix.of(ups[i][:hidden]), Matrix.of(h), ptr(b1[i]), Matrix.of(ups[i][hidden:]) if mlp.gated else None,
                              ptr(b1[i][hidden:]) if mlp.gated and mlp.up_bias else 0)
            two.append((a, last.prepare(Matrix.of(h), Matrix.of(downs[i]), Matrix.of(ys[i]), ptr(b2[i]), early=99)))
        calls[f"{tile1.label()}+{tile2.label()}"] = lambda i: (two[i][0](stream(), False), two[i][1](stream(), True))
        for tile in tiles:
            kernel = kernel_of(driver, folder, mlp, tile)
            for programmatic in (False, True):
                launches = []
                for i in range(sets):
                    up, gate = (ups[i][hidden:], ups[i][:hidden]) if mlp.gated else (ups[i], None)
                    launches.append(prepare(kernel, Matrix.of(xs[i]), Matrix.of(up), None if gate is None else Matrix.of(gate), Matrix.of(downs[i]),
                                            Matrix.of(ys[i]), ptr(b1[i]), 0, ptr(b2[i])))
                calls[f"{tile.label()} {'programmatic' if programmatic else 'plain'}"] = lambda i, l=launches, p=programmatic: l[i](stream(), p)
        graphs = {}
        for label, call in calls.items():
            ys[0].fill_(float("nan"))
            result = call(0)
            torch.cuda.synchronize()
            error = off(ys[0] if not isinstance(result, torch.Tensor) else result)
            if not error < 6e-3:
                print(f"  BAD {label} error {error:.1e}")
                failed += 1
                continue
            graphs[label] = Graph(lambda i, c=call: c(i % sets), sets * max(1, 48 // sets))
        samples = {k: [] for k in graphs}
        for _ in range(9):
            for k in random.sample(list(graphs), len(graphs)):
                samples[k].append(graphs[k].once())
        for k in sorted(graphs, key=lambda k: sorted(samples[k])[4]):
            v = sorted(samples[k])
            print(f"  {k:56s} {v[4]:8.2f} us [{v[0]:.2f} {v[-1]:.2f}]")
    return 1 if failed else 0


def main():
    folder, what = sys.argv[1], sys.argv[2]
    if what == "compile":
        jobs = [p for w in sys.argv[3:] or ["all"] for p in pairs(w)]
        started = time.time()
        unfit = compile_all(jobs, folder, False, os.cpu_count() or 1)
        print(f"compiled {len(dict.fromkeys(jobs))} kernels in {time.time() - started:.0f} s, unfit {unfit}")
        return 1 if unfit else 0
    if what == "time":
        return time_shapes(folder, sys.argv[3].split(",") if len(sys.argv) > 3 else [])
    return check(folder, what == "small", *sys.argv[3:4])


if __name__ == "__main__":
    sys.exit(main())
