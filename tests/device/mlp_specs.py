# SPDX-License-Identifier: Apache-2.0
"""What the device scripts launch of whole-MLP kernels: constants, generated text, tensor maps. As specs.py for linears."""
import ctypes as C
import os
from dataclasses import dataclass

import specs
from specs import ceil_div, chain, flag, rounds_first


@dataclass(frozen=True)
class Mlp:
    """y[tokens, dim] = act(x W1^T + b1) W2^T + b2; gated: W1 is gate and up."""
    dim: int
    hidden: int
    act: str = "relu"
    gated: bool = False
    gate_first: bool = True
    up_bias: bool = True
    down_bias: bool = True
    element: str = "bf16"
    match: bool = True

    @property
    def rounds(self):
        return self.match and rounds_first(self.act, self.gated)

    def chain(self):
        return chain(self.element, self.act, self.gated, self.match)

    def template(self):
        return (f"ingot::device::{self.element}, {self.chain()}, {flag(self.rounds)}, {self.dim}, {self.hidden}, {flag(self.gated)}, "
                f"{flag(self.gate_first)}, {flag(self.up_bias)}, {flag(self.down_bias)}")

    def label(self):
        bias = {(True, True): "_bias", (True, False): "_upbias", (False, True): "_downbias", (False, False): ""}
        return (f"{self.element}_{'match' if self.match else 'fast'}_{self.act}_{self.dim}h{self.hidden}{'_gated' if self.gated else ''}"
                f"{'_upfirst' if self.gated and not self.gate_first else ''}{bias[self.up_bias, self.down_bias]}")

    @property
    def matrices(self):
        return 2 if self.gated else 1


class MlpEpilogueArgs(C.Structure):
    _fields_ = [(n, C.c_void_p) for n in ("up_bias", "gate_bias", "down_bias", "y")] + [("y_stride", C.c_longlong)]


@dataclass(frozen=True)
class Narrow:
    """A tile of narrow.cuh."""
    warpgroups: int = 2
    chunk: int = 64
    slots: int = 1
    lag: int = 0
    cluster = 1

    @property
    def threads(self):
        return 128 * self.warpgroups

    @property
    def rows(self):
        return 64 * self.warpgroups

    def parts(self, m):
        """(blocks of dim, of which in the first load, chunks, slots)"""
        k, chunks = ceil_div(m.dim, 64), ceil_div(m.hidden, self.chunk)
        slots = min(self.slots, chunks)
        return k, k // 2 if slots == 1 and chunks > 1 and k > 1 else k, chunks, slots

    def shared(self, m):
        k, first, chunks, slots = self.parts(m)
        weights = slots * (k * self.chunk * m.matrices * 128 + self.chunk // 64 * m.dim * 128)
        bias = (chunks * self.chunk * m.matrices * 4 if m.up_bias else 0) + m.dim * 4
        up_parts = 1 if first == k else 2
        return self.warpgroups * k * 8192 + weights + bias + 8 * (2 * slots * (up_parts + self.chunk // 64) + 2 * self.warpgroups)

    def label(self):
        return f"n{self.warpgroups}x{self.chunk}x{self.slots}x{self.lag}"

    def text(self, m):
        return f"""#include "sm90/narrow.cuh"
using Shape = ingot::sm90::NarrowShape<{m.template()}, {self.warpgroups}, {self.chunk}, {self.slots}, {self.lag}>;
using Kernel = ingot::sm90::Narrow<Shape>;
static_assert(Kernel::threads == {self.threads} && Shape::shared.total == {self.shared(m)}, "launch");
INGOT_KERNEL(ingot_kernel, Kernel)
"""

    def fits(self, m):
        return self.shared(m) <= 232448 and self.chunk * m.matrices <= 256 and self.lag <= self.parts(m)[0]

    def arguments(self, d, m, x, up, gate, down, y, biases, early):
        """(argument structure, grid). x, up, gate, down, y: driver.Matrix; biases: (up, gate, down) addresses."""
        from driver import TensorMap  # loads nothing, but keeps compiling free of the driver

        class NarrowArgs(C.Structure):
            _fields_ = [(n, TensorMap) for n in ("x", "up_first", "up_rest", "down", "down_tail")] + \
                       [("epilogue", MlpEpilogueArgs), ("tokens", C.c_int), ("early_weights", C.c_int), ("room", C.c_char * 128)]

        k, first, _, _ = self.parts(m)
        whole, p, e = m.dim % 64 == 0, m.matrices, m.element
        one, two = (gate, up) if m.gated and m.gate_first else (up, gate)
        distance = two.address - one.address if m.gated else one.stride * 2
        assert distance > 0 and distance % 16 == 0 and (not m.gated or one.stride == two.stride)
        inner, blocks = (64, k) if whole else (m.dim, 1)
        x_map = d.map(x.address, [inner, x.rows, blocks], [x.stride * 2, 128], [64, 64, blocks], e, 128)
        up_map = [d.map(one.address, [inner, m.hidden, p, blocks], [one.stride * 2, distance, 128],
                        [64, self.chunk, p, n if whole else 1], e, 128) for n in (first, k - first or k)]
        r, wide = down.stride * 2, m.dim // 32
        down_map = d.map(down.address, [m.hidden, 2, 4, 4, wide], [r, 8 * r, 2 * r, 32 * r], [64, 2, 4, 4, wide], e, 128)
        tail_map = d.map(down.address, [m.hidden, m.dim], [r], [64, m.dim % 32], e, 128) if m.dim % 32 else down_map
        args = NarrowArgs(x_map, *up_map, down_map, tail_map, MlpEpilogueArgs(*biases, y.address, y.stride), x.rows, early)
        return args, min(132, ceil_div(x.rows, self.rows))


def tile_of(label):
    return Narrow(*map(int, label[1:].split("x")))


def name_of(m, tile):
    return f"{m.label()}__{tile.label()}"


def compile_one(job):
    """(name, cubin or None, line to print)."""
    import time
    m, tile = job
    name, t = name_of(m, tile), time.time()
    try:
        cubin, log = specs.Nvrtc().compile(tile.text(m), name)
    except RuntimeError as e:
        return name, None, f"FAILED {name} " + " ".join(str(e).split())[:600]
    bad = specs.faults(log)
    line = f"{name:60s} {specs.registers(log):4d} regs {len(cubin) >> 10:4d} KB {time.time() - t:5.1f} s {' | '.join(bad)}"
    return name, None if bad else cubin, line


def compile_all(pairs, folder, verbose=True, processes=1):
    """Compiles every (MLP, tile) not yet in `folder`; returns the number of unfit ones."""
    import multiprocessing
    os.makedirs(folder, exist_ok=True)
    jobs = [p for p in dict.fromkeys(pairs) if not os.path.exists(os.path.join(folder, name_of(*p) + ".cubin"))]
    unfit = 0
    with multiprocessing.Pool(processes) as pool:
        for name, cubin, line in pool.imap_unordered(compile_one, jobs):
            unfit += cubin is None
            if verbose or cubin is None:
                print(line, flush=True)
            if cubin is not None:
                open(os.path.join(folder, name + ".cubin"), "wb").write(cubin)
    return unfit


def main():
    """Compiles what the other scripts run: python3 mlp_specs.py FOLDER [check] [small] [bench]"""
    import sys
    import time

    import mlp_cases
    import mlp_shapes
    pairs, t = [], time.time()
    for what in sys.argv[2:]:
        pairs += mlp_shapes.pairs() if what == "bench" else mlp_cases.pairs(what == "small")
    unfit = compile_all(pairs, sys.argv[1], False, os.cpu_count() or 1)
    print(f"compiled {len(dict.fromkeys(pairs))} kernels in {time.time() - t:.0f} s, unfit {unfit}")


if __name__ == "__main__":
    import mlp_specs  # the same classes as mlp_shapes.py and mlp_cases.py use
    mlp_specs.main()
