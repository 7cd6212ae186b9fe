# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver through ctypes: load a compiled kernel, make its tensor maps, launch it on a stream."""
import ctypes as C
import os

from specs import Few, Portable, name_of


class LaunchAttribute(C.Structure):
    _fields_ = [("id", C.c_int), ("pad", C.c_char * 4), ("value", C.c_uint32 * 16)]


class LaunchConfig(C.Structure):
    _fields_ = [("grid", C.c_uint * 3), ("block", C.c_uint * 3), ("shared", C.c_uint), ("stream", C.c_void_p),
                ("attributes", C.POINTER(LaunchAttribute)), ("attribute_count", C.c_uint)]


class TensorMap(C.Structure):
    _fields_ = [("words", C.c_uint64 * 16)]


class EpilogueArgs(C.Structure):
    _fields_ = [("up_bias", C.c_void_p), ("gate_bias", C.c_void_p), ("y", C.c_void_p), ("y_stride", C.c_longlong)]


class GemmArgs(C.Structure):
    _fields_ = [("x", TensorMap), ("w", TensorMap), ("y", TensorMap), ("y_tail", TensorMap), ("epilogue", EpilogueArgs),
                ("tokens", C.c_int), ("group_rows", C.c_int), ("early_weights", C.c_int), ("room", C.c_char * 128)]


class FewArgs(C.Structure):
    _fields_ = [("w", TensorMap), ("x", TensorMap), ("epilogue", EpilogueArgs), ("tokens", C.c_int),
                ("early_weights", C.c_int), ("room", C.c_char * 128)]


class LinearArgs(C.Structure):
    _fields_ = [("x", C.c_void_p), ("x_stride", C.c_longlong), ("up", C.c_void_p), ("up_stride", C.c_longlong),
                ("gate", C.c_void_p), ("gate_stride", C.c_longlong), ("tokens", C.c_longlong), ("epilogue", EpilogueArgs)]


class Driver:
    def __init__(self):
        self.lib = C.CDLL("libcuda.so.1")
        self.check(self.lib.cuInit(0), "cuInit")

    def check(self, result, what):
        if result != 0:
            text = C.c_char_p()
            self.lib.cuGetErrorString(result, C.byref(text))
            raise RuntimeError(f"{what}: {result} {text.value.decode() if text.value else ''}")

    def map(self, address, sizes, strides, box, element, swizzle_bytes):
        """Sizes innermost first in elements; strides in bytes of every dimension but the first."""
        m, n = (C.c_char * 192)(), len(sizes)
        base = (C.addressof(m) + 63) // 64 * 64
        swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle_bytes]
        self.check(self.lib.cuTensorMapEncodeTiled(
            C.c_void_p(base), 9 if element == "bf16" else 6, n, C.c_void_p(address), (C.c_uint64 * n)(*sizes),
            (C.c_uint64 * max(1, n - 1))(*strides), (C.c_uint32 * n)(*box), (C.c_uint32 * n)(*[1] * n), 0, swizzle, 3, 0),
            f"tensor map {sizes} {strides} {box}")
        out = TensorMap()
        C.memmove(C.byref(out), base, 128)
        return out


class Matrix:
    """A row-major matrix in device memory; stride in elements."""

    def __init__(self, address, rows, cols, stride=None):
        self.address, self.rows, self.cols, self.stride = address, rows, cols, stride or cols

    @staticmethod
    def of(t):
        return Matrix(t.data_ptr(), t.shape[0], t.shape[1], t.stride(0))


class Kernel:
    """A compiled (linear, tile) on the current context."""

    def __init__(self, driver, folder, linear, tile):
        self.driver, self.linear, self.tile = driver, linear, tile
        self.name = name_of(linear, tile)
        data = open(os.path.join(folder, self.name + ".cubin"), "rb").read()
        module, function = C.c_void_p(), C.c_void_p()
        lib, check = driver.lib, driver.check
        check(lib.cuModuleLoadData(C.byref(module), data), self.name)
        check(lib.cuModuleGetFunction(C.byref(function), module, b"ingot_kernel"), self.name)
        self.module, self.function = module, function
        self.shared = tile.shared(linear)
        check(lib.cuFuncSetAttribute(function, 8, self.shared), "shared memory")
        check(lib.cuFuncSetAttribute(function, 9, 100), "carveout")
        local = C.c_int()
        check(lib.cuFuncGetAttribute(C.byref(local), 3, function), "local")
        self.local_bytes = local.value
        self.clusters = self._clusters()

    def _config(self, grid, stream, programmatic):
        attributes = (LaunchAttribute * 2)()
        n = 0
        if self.tile.cluster > 1:
            attributes[n].id = 4
            attributes[n].value[0], attributes[n].value[1], attributes[n].value[2] = self.tile.cluster, 1, 1
            n += 1
        if programmatic:
            attributes[n].id = 6
            attributes[n].value[0] = 1
            n += 1
        config = LaunchConfig((C.c_uint * 3)(grid, 1, 1), (C.c_uint * 3)(self.tile.threads, 1, 1), self.shared, stream,
                              attributes, n)
        config.keep = attributes
        return config

    def _clusters(self):
        if self.tile.cluster == 1:
            return 132
        count = C.c_int()
        config = self._config(self.tile.cluster, None, False)
        self.driver.check(self.driver.lib.cuOccupancyMaxActiveClusters(C.byref(count), self.function, C.byref(config)),
                          "clusters")
        return count.value

    def prepare(self, x, w, y, bias=0, second=None, bias_second=0, group_rows=16, early=0):
        """A callable launch(stream, programmatic). Gated: `w` is the gate, `second` the up projection (Matrix each).
        early: stages whose weights are asked for before the kernel before has finished. Portable kernels take neither it
        nor group_rows."""
        d, linear, tile, e = self.driver, self.linear, self.tile, self.linear.element
        up_bias, gate_bias = (bias_second, bias) if linear.gated else (bias, 0)
        if isinstance(tile, Portable):
            up, gate = (second, w) if linear.gated else (w, Matrix(0, 0, 0))
            args = LinearArgs(x.address, x.stride, up.address, up.stride, gate.address, gate.stride, x.rows,
                              EpilogueArgs(up_bias, gate_bias, y.address, y.stride))
            return self._launch(args, tile.blocks(linear, x.rows))
        first = w
        if linear.gated and not linear.gate_first:
            first, second = second, w
        rows_w = tile.rows if isinstance(tile, Few) else tile.cols // tile.cluster_rows
        # Several blocks of K a copy: K / 64 is a dimension of its own.
        depth = tile.depth(linear) if isinstance(tile, Few) else 1
        columns, ends = (linear.k, []) if depth == 1 else (64, [linear.k // 64])
        strides, boxes = ([], []) if depth == 1 else ([128], [depth])
        if linear.gated:
            distance = second.address - first.address
            assert distance > 0 and distance % 16 == 0 and first.stride == second.stride
            w_map = d.map(first.address, [columns, 8, 2, linear.n // 8] + ends,
                          [first.stride * 2, distance, first.stride * 16] + strides, [64, 8, 2, rows_w // 16] + boxes, e, 128)
        else:
            w_map = d.map(first.address, [columns, linear.n] + ends, [first.stride * 2] + strides, [64, rows_w] + boxes, e, 128)
        epilogue = EpilogueArgs(up_bias, gate_bias, y.address, y.stride)
        if isinstance(tile, Few):
            grid = tile.blocks(linear, x.rows)
            x_map = d.map(x.address, [columns, x.rows] + ends, [x.stride * 2] + strides, [64, tile.tokens // tile.share] + boxes, e, 128)
            args = FewArgs(w_map, x_map, epilogue, x.rows, early)
        else:
            tail = (tile.cols // 2 if linear.gated else tile.cols) % 64
            y_map = d.map(y.address, [linear.n, y.rows], [y.stride * 2], [64, 16], e, 128)
            tail_map = y_map
            if tail:
                tail_map = d.map(y.address, [linear.n, y.rows], [y.stride * 2], [tail, 16], e, {16: 32, 32: 64}.get(tail, 0))
            x_map = d.map(x.address, [linear.k, x.rows], [x.stride * 2], [64, tile.rows // tile.cluster_cols], e, 128)
            work = tile.work(linear, x.rows)
            grid = (work if tile.splits > 1 else min(self.clusters, work)) * tile.cluster
            args = GemmArgs(x_map, w_map, y_map, tail_map, epilogue, x.rows, group_rows, early)
        return self._launch(args, grid)

    def _launch(self, args, grid):
        d = self.driver
        # __grid_constant__ parameters are copied at launch; the map must be 64-byte aligned in the kernel, not here.
        pointers = (C.c_void_p * 1)(C.cast(C.byref(args), C.c_void_p))
        configs = {}

        def launch(stream, programmatic=False):
            if programmatic not in configs:
                configs[programmatic] = self._config(grid, stream, programmatic)
            config = configs[programmatic]
            config.stream = stream
            d.check(d.lib.cuLaunchKernelEx(C.byref(config), self.function, pointers, None), self.name)

        launch.keep = (args, pointers)
        launch.grid = grid
        return launch
