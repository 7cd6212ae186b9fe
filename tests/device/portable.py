# SPDX-License-Identifier: Apache-2.0
"""The portable kernels (sm80/linear.cuh, f32/linear.cuh) on one GPU: checks against float64, times against PyTorch.

python3 portable.py CUBINS compile [small|all|time]   no GPU needed
python3 portable.py CUBINS check                      the numeric sweep; needs NumPy and the driver only
python3 portable.py CUBINS small                      sizes for compute-sanitizer
python3 portable.py CUBINS large                      tensors of more than 2^31 elements (12 GB)
python3 portable.py CUBINS time [SHAPE,...]           tiles of both linears and the MLP; needs PyTorch

Every check draws fresh inputs, poisons what lies around and under the output, runs twice (the same bits are demanded), and
judges every output: it may be off by what the roundings of the contract and the sums in f32 allow.
"""
import ctypes as C
import math
import os
import sys
import time

from specs import Linear, Portable, compile_all

# As arch/sm80.h has them.
TILES = [Portable(*t) for t in (
    (128, 256, 32, 4, 2, 4), (256, 128, 32, 4, 4, 2), (128, 192, 32, 4, 2, 4), (128, 128, 32, 5, 2, 2),
    (128, 128, 32, 3, 2, 2), (128, 96, 32, 4, 2, 2), (128, 64, 32, 4, 2, 2), (64, 256, 32, 4, 1, 4), (64, 128, 32, 4, 2, 2),
    (64, 64, 64, 4, 2, 2), (32, 128, 64, 4, 1, 4), (32, 64, 64, 6, 1, 4), (16, 128, 64, 4, 1, 4), (16, 64, 64, 8, 1, 4),
    (16, 32, 32, 12, 1, 2))]
F32_TILES = [Portable(*t) for t in (
    (128, 128, 16, 4, 4, 2), (128, 64, 16, 4, 4, 2), (64, 64, 16, 4, 2, 2), (32, 64, 32, 4, 1, 4), (16, 32, 16, 8, 1, 2))]
ACTIVATIONS = ("relu", "gelu_erf", "gelu_tanh", "quick_gelu", "silu", "identity")
MIDDLE, F32_MIDDLE = Portable(64, 64, 64, 4, 2, 2), Portable(64, 64, 16, 4, 2, 2)
LARGE = (Linear(64, 64, "identity", bias=False), Portable(128, 64, 32, 4, 2, 2), 36_000_000)


def middle(element):
    return F32_MIDDLE if element == "f32" else MIDDLE


def cases(small):
    """(linear, tile, token counts)."""
    out = []
    for element in ("bf16", "f16", "f32"):
        for tile in F32_TILES if element == "f32" else TILES:
            for gated in (False, True):
                for aligned in (True, False):
                    n, k = (tile.cols + 40, 200) if small else (1032, 520)
                    odd = 0 if aligned else 1
                    linear = Linear(n + odd, k + odd, "gelu_tanh", gated, element=element, aligned=aligned)
                    out.append((linear, tile, [3, tile.rows + 5] if small else [1, 77, 300, 1000]))
    if small:
        return out
    for element in ("bf16", "f16", "f32"):
        for act in ACTIVATIONS:
            for gated in (False, True):
                for match in (True, False) if element != "f32" else (True,):
                    linear = Linear(200, 320, act, gated, bias=act != "silu", element=element, match=match)
                    out.append((linear, middle(element), [1, 128, 300]))
        even, odd = (8, 64, 72, 200, 320), (1, 3, 17, 77)
        for widths in (even, odd):
            for i, k in enumerate(widths):
                for j, n in enumerate(widths):
                    linear = Linear(n, k, "gelu_erf", (i + j) % 2 == 1, bias=i % 2 == 0, element=element, match=j % 3 != 0,
                                    aligned=widths is even)
                    out.append((linear, middle(element), [1, 5, 64, 77, 128]))
    return out


def pairs(what):
    if what == "time":
        import shapes
        return [(linear, tile) for shape in timed_shapes([]) for linear in shapes.linears(shape) for tile in timed_tiles(shape)]
    out = [(linear, tile) for linear, tile, _ in cases(what == "small")]
    return out + ([LARGE[:2]] if what == "all" else [])


# --- checks ---------------------------------------------------------------------------------------------------
class Numbers:
    """An element type as NumPy holds it: bits, to float64, from float32 with rounding, and the largest relative error of that rounding."""

    def __init__(self, element):
        import numpy as np
        self.np, self.element, self.bytes = np, element, 4 if element == "f32" else 2
        self.bits = np.uint32 if element == "f32" else np.uint16
        self.unit = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24}[element]

    def pack(self, values):
        np = self.np
        values = np.ascontiguousarray(values, np.float32)
        if self.element == "f32":
            return values.view(np.uint32)
        if self.element == "f16":
            return values.astype(np.float16).view(np.uint16)
        bits = values.view(np.uint32)
        return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    def unpack(self, bits):
        np = self.np
        if self.element == "f32":
            return bits.view(np.float32).astype(np.float64)
        if self.element == "f16":
            return bits.view(np.float16).astype(np.float64)
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def activated(np, name, x):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if name == "gelu_erf":
        return 0.5 * x * (1 + np.frompyfunc(math.erf, 1, 1)(x / math.sqrt(2)).astype(np.float64))
    if name in ("silu", "quick_gelu"):
        return x / (1 + np.exp(-x * (1.702 if name == "quick_gelu" else 1)))
    return x


class Memory:
    """Device memory of one case, of exactly the sizes asked for, freed together."""

    def __init__(self, driver):
        self.lib, self.check, self.list = driver.lib, driver.check, []

    def alloc(self, size):
        p = C.c_uint64()
        self.check(self.lib.cuMemAlloc_v2(C.byref(p), C.c_size_t(size)), "alloc")
        self.list.append(p.value)
        return p.value

    def write(self, address, array):
        self.check(self.lib.cuMemcpyHtoD_v2(C.c_uint64(address), array.ctypes.data_as(C.c_void_p), C.c_size_t(array.nbytes)), "write")

    def read(self, address, array):
        self.check(self.lib.cuMemcpyDtoH_v2(array.ctypes.data_as(C.c_void_p), C.c_uint64(address), C.c_size_t(array.nbytes)), "read")
        return array

    def put(self, array):
        p = self.alloc(array.nbytes)
        self.write(p, array)
        return p

    def free(self):
        for p in self.list:
            self.lib.cuMemFree_v2(C.c_uint64(p))
        self.list = []


def open_driver():
    from driver import Driver
    driver = Driver()
    device, context = C.c_int(), C.c_void_p()
    driver.check(driver.lib.cuDeviceGet(C.byref(device), 0), "device")
    driver.check(driver.lib.cuDevicePrimaryCtxRetain(C.byref(context), device), "context")
    driver.check(driver.lib.cuCtxSetCurrent(context), "current")
    return driver


def laid_out(numbers, values, aligned):
    """(bits, offset, stride): rows apart by a gap of not-a-number, the first behind a 16-byte boundary or off it."""
    np, step = numbers.np, 16 // numbers.bytes
    rows, cols = values.shape
    offset, stride = (0, (cols + step - 1) // step * step + step) if aligned else (1, cols + 3)
    flat = np.full(offset + (rows - 1) * stride + cols, -1, np.int64).astype(numbers.bits)
    view = np.lib.stride_tricks.as_strided(flat[offset:], (rows, cols), (stride * numbers.bytes, numbers.bytes))
    view[:] = numbers.pack(values)
    return flat, offset, stride, numbers.unpack(np.ascontiguousarray(view))


def expected(linear, numbers, x, w, b):
    """(float64 result, what each output may be off by, result with an unfused framework's roundings). w, b: of the gate first
    where there is one."""
    np, unit, tiny = numbers.np, numbers.unit, 2.0**-24
    stored = lambda v: numbers.unpack(numbers.pack(v))
    sums = []
    for i, matrix in enumerate(w):
        value = x @ matrix.T + (b[i] if b else 0)
        # Sums in f32: as many roundings as terms at most, of numbers no larger than the sum of absolute ones.
        off = linear.k * tiny * (np.abs(x) @ np.abs(matrix).T) + 2 * tiny * np.abs(value)
        sums.append((value, off + unit * np.abs(value)))
    value, off = sums[0]
    # No activation is steeper than 1.13. tanh.approx and 1 + tanh near -1 are finer than a unit of what is activated.
    y, framework = activated(np, linear.act, value), stored(activated(np, linear.act, stored(value)))
    off = 1.13 * off + unit * np.abs(y) + (0 if linear.act in ("relu", "identity") else (unit + 4 * tiny) * np.abs(value))
    if linear.gated:
        up, up_off = sums[1]
        off = off * np.abs(up) + (np.abs(y) + off) * up_off
        y, framework = y * up, stored(framework * stored(up))
    # Below the type's normal numbers f16 is coarser: 2^-25 is half its last place.
    return y, off + 1.1 * unit * np.abs(y) + 2.0**-25, framework


def run_case(driver, folder, linear, tile, tokens, rng, kernels):
    from driver import Kernel, Matrix
    numbers = Numbers(linear.element)
    np, matrices = numbers.np, 2 if linear.gated else 1
    x = laid_out(numbers, rng.standard_normal((tokens, linear.k)), linear.aligned)
    w = [laid_out(numbers, rng.standard_normal((linear.n, linear.k)) / math.sqrt(linear.k), linear.aligned) for _ in range(matrices)]
    b = [laid_out(numbers, rng.standard_normal((1, linear.n)), False) for _ in range(matrices)] if linear.bias else []
    y_shape = laid_out(numbers, np.zeros((tokens, linear.n)), linear.aligned)
    if (linear, tile) not in kernels:
        kernels[linear, tile] = Kernel(driver, folder, linear, tile)
    kernel, memory = kernels[linear, tile], Memory(driver)
    if kernel.local_bytes:
        return f"local memory {kernel.local_bytes}"
    try:
        at = lambda m, rows, cols: Matrix(memory.put(m[0]) + m[1] * numbers.bytes, rows, cols, m[2])
        x_at = at(x, tokens, linear.k)
        w_at = [at(m, linear.n, linear.k) for m in w]
        b_at = [at(m, 1, linear.n).address for m in b] + [0, 0]
        runs = []
        for _ in range(2):
            flat = np.full(y_shape[0].size, -1, np.int64).astype(numbers.bits)
            y = memory.put(flat)
            launch = kernel.prepare(x_at, w_at[0], Matrix(y + y_shape[1] * numbers.bytes, tokens, linear.n, y_shape[2]), b_at[0],
                                    w_at[1] if linear.gated else None, b_at[1] if linear.gated else 0)
            launch(None)
            driver.check(driver.lib.cuCtxSynchronize(), "run")
            runs.append(memory.read(y, flat))
    finally:
        memory.free()
    if not np.array_equal(runs[0], runs[1]):
        return "two runs differ"
    _, offset, stride, _ = y_shape
    inside = np.lib.stride_tricks.as_strided(runs[0][offset:], (tokens, linear.n), (stride * numbers.bytes, numbers.bytes))
    out = numbers.unpack(np.ascontiguousarray(inside))
    inside[:] = numbers.bits(np.iinfo(numbers.bits).max)
    if not bool((runs[0] == np.iinfo(numbers.bits).max).all()):
        return "wrote outside the output"
    exact, off, framework = expected(linear, numbers, x[3], [m[3] for m in w], [m[3] for m in b])
    share = np.abs(out - exact) / off
    norm = lambda a: float(np.linalg.norm(a - exact) / max(np.linalg.norm(exact), 1e-30))
    error, framework_error = norm(out), norm(framework)
    text = f"error {error:.2e}, framework {framework_error:.2e}, at most {float(share.max()):.2f} of what is allowed"
    if not bool((share <= 1).all()):  # not-a-number is not
        bad = np.argwhere(~(share <= 1))
        return f"wrong in {len(bad)} of {out.size}, first [{bad[0][0]}, {bad[0][1]}]: {out[tuple(bad[0])]} for {exact[tuple(bad[0])]}; {text}"
    # Few outputs stray by chance; a framework's f32 sums are not those of float64.
    if linear.element != "f32" and out.size > 20000 and error > 1.1 * framework_error:
        return f"inaccurate: {text}"
    return (True, text)


def check(folder, small):
    import numpy as np
    driver, kernels = open_driver(), {}
    rng, count, failed, since = np.random.default_rng(), 0, 0, time.time()
    for linear, tile, tokens_list in cases(small):
        for tokens in tokens_list:
            try:
                result = run_case(driver, folder, linear, tile, tokens, rng, kernels)
            except (RuntimeError, OSError) as e:
                result = f"{e}"[:300]
            good = isinstance(result, tuple)
            count, failed = count + 1, failed + (not good)
            print(f"{'ok  ' if good else 'FAIL'} {linear.label():52s} {tile.label():22s} tokens {tokens:6d} "
                  f"{result[1] if good else result}", flush=True)
            if not good and any(t in result for t in ("illegal", "launch failure", "unspecified", "misaligned")):
                print(f"stopping: the context is lost\nchecked {count}, failed {failed}")
                return 1
    print(f"checked {count}, failed {failed}, {time.time() - since:.0f} s")
    return 1 if failed or not count else 0


def check_large(folder):
    """More than 2^31 elements in x and in y: rows beyond that, and their neighbours, must be right."""
    import numpy as np
    from driver import Kernel, Matrix
    linear, tile, tokens = LARGE
    driver, numbers, rng = open_driver(), Numbers(linear.element), np.random.default_rng()
    memory, width = Memory(driver), linear.k
    kernel = Kernel(driver, folder, linear, tile)
    x_bytes = tokens * width * 2
    x, y = memory.alloc(x_bytes), memory.alloc(x_bytes)
    driver.check(driver.lib.cuMemsetD8_v2(C.c_uint64(x), C.c_ubyte(0x3c), C.c_size_t(x_bytes)), "fill")
    driver.check(driver.lib.cuMemsetD8_v2(C.c_uint64(y), C.c_ubyte(0xff), C.c_size_t(x_bytes)), "poison")
    special, edge = {}, 2**31 // width
    for row in (0, tokens // 3, edge - 1, edge, edge + 1, edge + 12345, tokens - 1):
        special[row] = numbers.pack(rng.standard_normal((1, width)))
        memory.write(x + row * width * 2, special[row])
    w = numbers.pack(rng.standard_normal((linear.n, width)) / 8)
    launch = kernel.prepare(Matrix(x, tokens, width), Matrix(memory.put(w), linear.n, width), Matrix(y, tokens, linear.n))
    launch(None)
    driver.check(driver.lib.cuCtxSynchronize(), "run")
    usual, failed, judged = np.full((1, width), 0x3c3c, np.uint16), 0, 0
    for row in sorted({r + d for r in special for d in (-1, 0, 1) if 0 <= r + d < tokens}):
        out = numbers.unpack(memory.read(y + row * linear.n * 2, np.empty((1, linear.n), np.uint16)))
        exact, off, _ = expected(linear, numbers, numbers.unpack(special.get(row, usual)), [numbers.unpack(w)], [])
        judged, failed = judged + 1, failed + (not bool((np.abs(out - exact) <= off).all()))
    memory.free()
    print(f"large: {judged} rows of {tokens} judged, failed {failed}")
    return 1 if failed or not judged else 0


# --- times ----------------------------------------------------------------------------------------------------
TIMED = ("seed_relu_64", "seed_relu_1k", "blog_geglu_128", "blog_geglu_8k", "dit_xl_1k", "wan1.3b_256", "ltx2b_5k",
         "svd640_32k", "wan1.3b_33k")


def timed_shapes(names):
    import shapes
    return [s for s in shapes.SHAPES if s[0] in (names or TIMED)]


def timed_tiles(shape):
    return [t for t in TILES if t.rows >= 64 or shape[1] <= 1024]  # small tiles of many tokens take long and show nothing


def time_shapes(folder, names):
    import torch
    import bench
    from driver import Driver
    torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")
    driver, failed = Driver(), 0
    for shape in timed_shapes(names):
        problem, (name, tokens, dim, hidden, act, _, gated) = bench.Problem(shape, driver, folder), shape

        def median(call):
            graph = bench.Graph(call, problem.sets)
            return sorted(graph.once(3) for _ in range(7))[3]

        best = []
        for which in (0, 1):
            times = sorted(((median(problem.one(which, tile, 1)), tile) for tile in timed_tiles(shape)), key=lambda t: t[0])
            us, tile = times[0]
            flops = 2 * tokens * dim * hidden * (2 if gated and which == 0 else 1)
            print(f"{name:16s} fc{which + 1} {us:9.1f} us {flops / us / 1e6:6.0f} TFLOP/s  " +
                  " ".join(f"{t.label()}={u:.1f}" for u, t in times), flush=True)
            best.append(tile)
        mlp = problem.mlp(best[0], 1, best[1], 1)
        ours, eager = median(mlp), median(lambda i: bench.eager(problem.xs[i], problem.ws[i], act, gated))
        mlp(0)
        torch.cuda.synchronize()
        reference = bench.eager(problem.xs[0], problem.ws[0], act, gated).double()
        error = float((problem.ys[0].double() - reference).norm() / reference.norm())
        failed += not error < 1e-2
        print(f"{name:16s} mlp {ours:9.1f} us, eager {eager:.1f} us, ratio {ours / eager:.3f}, "
              f"{'off' if error < 1e-2 else 'FAIL: off'} eager by {error:.1e}", flush=True)
        del problem, mlp
        torch.cuda.empty_cache()
    return 1 if failed else 0


def main():
    folder, what = sys.argv[1], sys.argv[2]
    if what == "compile":
        jobs = [p for w in sys.argv[3:] or ["all"] for p in pairs(w)]
        started = time.time()
        unfit = compile_all(jobs, folder, False, os.cpu_count() or 1)
        print(f"compiled {len(dict.fromkeys(jobs))} portable kernels in {time.time() - started:.0f} s, unfit {unfit}")
        return 1 if unfit else 0
    if what == "large":
        return check_large(folder)
    if what == "time":
        return time_shapes(folder, sys.argv[3].split(",") if len(sys.argv) > 3 else [])
    return check(folder, what == "small")


if __name__ == "__main__":
    sys.exit(main())
