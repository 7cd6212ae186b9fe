# SPDX-License-Identifier: Apache-2.0
"""What the device scripts launch: a kernel's constants, its generated text and its compilation through NVRTC.

The text is a template instantiation with static_asserts on the numbers the host computes, so host and device cannot
disagree about a layout. Compiles without a GPU.
"""
import contextlib
import ctypes
import hashlib
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.environ.get("INGOT_KERNELS", os.path.join(HERE, "..", "..", "kernels"))


def ceil_div(a, b):
    return (a + b - 1) // b


def flag(b):
    return "true" if b else "false"


def chain(element, act, gated, between):
    """What follows a linear up to the store; `between`: results are rounded between the steps."""
    e = f"ingot::device::{element}"
    steps = [f"ingot::device::Activate<ingot::activation::{act}, {e}>"] if act != "identity" or gated else []
    if gated:
        steps += [f"ingot::device::RoundActivated<{e}>"] if between else []
        steps += ["ingot::device::Multiply"]
    return f"ingot::device::Chain<{', '.join(steps)}>"


def rounds_first(act, gated):
    """Whether rounding a linear's result before these steps differs from rounding it after them."""
    return gated or act not in ("identity", "relu")


@dataclass(frozen=True)
class Linear:
    """y[tokens, n] = f(x[tokens, k] W^T + bias); gated: W is gate and up."""
    n: int
    k: int
    act: str = "identity"
    gated: bool = False
    gate_first: bool = True
    bias: bool = True
    element: str = "bf16"
    match: bool = True
    aligned: bool = True  # portable kernels only: else elements are copied one by one

    @property
    def element_bytes(self):
        return 4 if self.element == "f32" else 2

    @property
    def between(self):
        """Whether results are rounded between the steps; f32 has nothing to round to."""
        return self.match and self.element != "f32"

    def rounds(self, epilogue_warps):
        """Whether the kernel rounds the linear's result before what follows; without a next step, the store does."""
        return epilogue_warps or (self.between and rounds_first(self.act, self.gated))

    def chain(self):
        return chain(self.element, self.act, self.gated, self.between)

    def template(self, epilogue_warps=False):
        return (f"ingot::device::{self.element}, {self.chain()}, {flag(self.rounds(epilogue_warps))}, {self.n}, {self.k}, {flag(self.gated)}, "
                f"{flag(self.gate_first)}, {flag(self.bias)}")

    def label(self):
        return (f"{self.element}_{'match' if self.match else 'fast'}_{self.act}_{self.k}to{self.n}"
                f"{'_gated' if self.gated else ''}{'' if self.gate_first else '_upfirst'}{'_bias' if self.bias else ''}"
                f"{'' if self.aligned else '_unaligned'}")


@dataclass(frozen=True)
class Gemm:
    """A tile of gemm.cuh."""
    consumers: int
    subtiles: int
    cols: int
    stages: int
    cluster_rows: int = 1
    cluster_cols: int = 1
    splits: int = 1
    epilogue_warps: bool = False
    lag: int = 0

    @property
    def rows(self):
        return 64 * self.subtiles * self.consumers

    @property
    def cluster(self):
        return self.cluster_rows * self.cluster_cols * self.splits

    @property
    def threads(self):
        return 128 * (self.consumers + 1)

    def shared(self, linear):
        output, bias, barriers = self.stages * (self.rows + self.cols) * 128, 8 * (self.cols + 16), 8 * (2 * self.stages + 2 * self.consumers + 5)
        out_bytes = self.rows * self.cols * 2
        units = ceil_div(self.cols // 2 if linear.gated else self.cols, 64)
        if self.splits > 1:
            owned = self.consumers * self.subtiles * units // self.splits
            exchange = owned * (self.splits - 1) * 64 * (128 if linear.gated else 64) * 4 + owned * 4 * 2048
            out_bytes = max(0, exchange - output)
        elif not self.epilogue_warps:
            warps = 4 * self.consumers
            buffers = min((232448 - output - bias - barriers) // (warps * 2048), self.subtiles * units)
            if buffers < 1:
                return 1 << 20
            out_bytes = buffers * warps * 2048
        return output + out_bytes + bias + barriers

    def label(self):
        return (f"g{self.consumers}x{self.subtiles}x{self.cols}s{self.stages}c{self.cluster_rows}{self.cluster_cols}"
                f"{f'k{self.splits}' if self.splits > 1 else ''}{'e' if self.epilogue_warps else ''}{f'l{self.lag}' if self.lag else ''}")

    def text(self, linear):
        args = f"{linear.template(self.epilogue_warps)}, {self.consumers}, {self.subtiles}, {self.cols}, {self.stages}, {self.cluster_rows}, {self.cluster_cols}, " \
               f"{self.splits}, {'true' if self.epilogue_warps else 'false'}, {self.lag}"
        return f"""#include "sm90/gemm.cuh"
using Shape = ingot::sm90::GemmShape<{args}>;
using Kernel = ingot::sm90::Gemm<Shape>;
static_assert(Kernel::threads == {self.threads} && Shape::shared.total == {self.shared(linear)}, "launch");
INGOT_KERNEL(ingot_kernel, Kernel)
"""

    def work(self, linear, tokens):
        out_cols = self.cols // 2 if linear.gated else self.cols
        return ceil_div(tokens, self.rows * self.cluster_rows) * ceil_div(linear.n, out_cols * self.cluster_cols)


@dataclass(frozen=True)
class Few:
    """A tile of few.cuh."""
    feature_warpgroups: int
    k_warpgroups: int
    tokens: int
    stages: int
    share: int = 1
    splits: int = 1

    @property
    def rows(self):
        return 64 * self.feature_warpgroups

    @property
    def cluster(self):
        return self.share * self.splits

    @property
    def threads(self):
        return 128 * self.feature_warpgroups * self.k_warpgroups + 32

    def shared(self, linear):
        ring = self.stages * (self.rows + self.tokens) * 128
        out = self.tokens * (self.rows * (1 if linear.gated else 2) + 16)
        if self.splits * self.k_warpgroups > 1:
            sum_rows = self.rows // self.splits
            pitch = (self.tokens + 23) // 32 * 32 + 8
            groups = sum_rows // (16 if linear.gated else 8)
            skew = 2 if groups >= 16 else 32 // groups
            out = self.splits * self.k_warpgroups * (sum_rows * pitch + groups * skew) * 4
        top = ring + out if self.splits > 1 else max(ring, out)
        return top + self.rows * 4 + 8 * (2 * self.stages + 1)

    def depth(self, linear):
        """Blocks of K a copy brings, as layout.cuh has it."""
        k = 128 * self.splits
        whole = self.share == 1 and self.stages % 2 == 0 and linear.k % k == 0
        return 2 if whole and self.stages // 2 >= self.k_warpgroups and linear.k // k >= self.k_warpgroups else 1

    def label(self):
        return (f"f{self.feature_warpgroups}x{self.k_warpgroups}x{self.tokens}s{self.stages}"
                f"{f'h{self.share}' if self.share > 1 else ''}{f'k{self.splits}' if self.splits > 1 else ''}")

    def text(self, linear):
        args = f"{linear.template()}, {self.feature_warpgroups}, {self.k_warpgroups}, {self.tokens}, {self.stages}, {self.share}, {self.splits}"
        return f"""#include "sm90/few.cuh"
using Shape = ingot::sm90::FewShape<{args}>;
using Kernel = ingot::sm90::Few<Shape>;
static_assert(Kernel::threads == {self.threads} && Shape::shared.total == {self.shared(linear)}, "launch");
INGOT_KERNEL(ingot_kernel, Kernel)
"""

    def blocks(self, linear, tokens):
        out_rows = self.rows // 2 if linear.gated else self.rows
        features = ceil_div(ceil_div(linear.n, out_rows), self.share) * self.share
        return features * ceil_div(tokens, self.tokens) * self.splits


@dataclass(frozen=True)
class Portable:
    """A tile of sm80/linear.cuh, or of f32/linear.cuh."""
    rows: int
    cols: int
    block_k: int
    stages: int
    warp_rows: int
    warp_cols: int
    cluster = 1
    architecture = "sm_90"

    @property
    def threads(self):
        return 32 * self.warp_rows * self.warp_cols

    def out_cols(self, linear):
        return self.cols // 2 if linear.gated else self.cols

    def shared(self, linear):
        ring = self.stages * (self.rows + self.cols) * self.block_k * linear.element_bytes
        return max(ring, self.rows * (2 * self.out_cols(linear) + 16) if linear.element_bytes == 2 else 0)

    def label(self):
        return f"p{self.rows}x{self.cols}x{self.block_k}s{self.stages}w{self.warp_rows}x{self.warp_cols}"

    def text(self, linear):
        space = "f32" if linear.element == "f32" else "sm80"
        return f"""#include "{space}/linear.cuh"
using Shape = ingot::{space}::Shape<ingot::device::{linear.element}, {linear.chain()}, {linear.n}, {linear.k}, {flag(linear.gated)}, {flag(linear.bias)},
    {flag(linear.rounds(False))}, {self.rows}, {self.cols}, {self.block_k}, {self.stages}, {self.warp_rows}, {self.warp_cols}, {flag(linear.aligned)}>;
using Kernel = ingot::{space}::Linear<Shape>;
static_assert(Kernel::threads == {self.threads} && Shape::shared_bytes == {self.shared(linear)}, "launch");
INGOT_KERNEL(ingot_kernel, Kernel)
"""

    def blocks(self, linear, tokens):
        return ceil_div(tokens, self.rows) * ceil_div(linear.n, self.out_cols(linear))


def name_of(linear, tile):
    return f"{linear.label()}__{tile.label()}"


class Nvrtc:
    def __init__(self):
        for lib in ("libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so.13"):
            try:
                self.lib = ctypes.CDLL(lib)
                break
            except OSError:
                continue
        else:
            raise RuntimeError("no NVRTC library")

    def compile(self, text, name, architecture="sm_90a"):
        """(cubin, log); raises with the log when it does not compile."""
        program = ctypes.c_void_p()
        lib = self.lib
        assert lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None) == 0
        options = [f"--gpu-architecture={architecture}", "-std=c++17", f"-I{KERNELS}", "--ptxas-options=-v", "-default-device"]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        result = lib.nvrtcCompileProgram(program, len(options), array)
        size = ctypes.c_size_t()
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        log = log.value.decode(errors="replace")
        if result != 0:
            raise RuntimeError(f"{name}: {log}")
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, cubin)
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin.raw, log


def faults(log):
    """What makes a compiled kernel unfit: spills, serialised wgmma, ignored setmaxnreg."""
    bad = []
    for line in log.splitlines():
        if "spill" in line and "0 bytes spill stores, 0 bytes spill loads" not in line:
            bad.append(line.strip())
        if "C75" in line or "warning" in line.lower():
            bad.append(line.strip())
    return bad


def registers(log):
    for line in log.splitlines():
        if "Used" in line and "registers" in line:
            return int(line.split("Used")[1].split()[0])
    return 0


def sources_hash(kind):
    others = {Gemm: ("few", "linear.", "ring"), Few: ("gemm", "linear.", "ring"), Portable: ("gemm", "few")}.get(kind, ())
    h = hashlib.sha256()
    for folder, _, files in sorted(os.walk(KERNELS)):
        for f in sorted(files):
            if f.startswith(others):  # files that this kind of kernel does not include
                continue
            h.update(open(os.path.join(folder, f), "rb").read())
    return h.hexdigest()[:16]


def compile_one(job):
    """(name, cubin or None, line to print)."""
    linear, tile = job
    name, t = name_of(linear, tile), time.time()
    try:
        cubin, log = Nvrtc().compile(tile.text(linear), name, getattr(tile, "architecture", "sm_90a"))
    except RuntimeError as e:
        return name, None, "FAILED " + " ".join(str(e).split())[:400]
    bad = faults(log)
    line = f"{name:70s} {registers(log):4d} regs {len(cubin) >> 10:4d} KB {time.time() - t:5.1f} s {' | '.join(bad)}"
    return name, None if bad else cubin, line


def compile_all(pairs, folder, verbose=True, processes=1):
    """Compiles every (linear, tile) not yet in `folder`; returns the number of unfit ones."""
    os.makedirs(folder, exist_ok=True)
    stamps = {kind: sources_hash(kind) for kind in {type(tile) for _, tile in pairs}}
    jobs, keys = [], {}
    for linear, tile in dict.fromkeys(pairs):
        path = os.path.join(folder, name_of(linear, tile) + ".cubin")
        key = stamps[type(tile)] + tile.text(linear)
        if not (os.path.exists(path) and os.path.exists(path + ".key") and open(path + ".key").read() == key):
            jobs.append((linear, tile))
            keys[name_of(linear, tile)] = key
    unfit = 0
    with multiprocessing.Pool(processes) if processes > 1 else contextlib.nullcontext() as pool:
        for name, cubin, line in pool.imap_unordered(compile_one, jobs) if pool else map(compile_one, jobs):
            unfit += cubin is None
            if verbose or cubin is None:
                print(line, flush=True)
            if cubin is not None:
                path = os.path.join(folder, name + ".cubin")
                open(path, "wb").write(cubin)
                open(path + ".key", "w").write(keys[name])
    return unfit


def main():
    """Compiles what the other scripts run: python3 specs.py FOLDER [check] [small] [bench] [probe=FILE,...]"""
    import cases
    import shapes
    pairs, folder = [], sys.argv[1]
    for what in sys.argv[2:]:
        if what in ("check", "small"):
            pairs += cases.pairs(what == "small")
        elif what == "bench":
            pairs += shapes.pairs()
        else:
            for path in what.split("=")[1].split(","):
                pairs += [shapes.probe_of(s)[1:3] for s in open(path).read().split()]
    t = time.time()
    unfit = compile_all(pairs, folder, False, os.cpu_count() or 1)
    print(f"compiled {len(dict.fromkeys(pairs))} kernels in {time.time() - t:.0f} s, unfit {unfit}")


if __name__ == "__main__":
    import specs  # the same classes as shapes.py and cases.py use
    specs.main()
