#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package on a GPU: results, streams, capture, fallbacks, and what a call costs the CPU. Needs PyTorch and `ingot`.

One line a check, `ok` or `FAIL`; then microseconds a call, as called from Python without waiting for the device. Exits 1 when a
check fails.
"""
import copy
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import ingot

torch.manual_seed(0)
torch.set_grad_enabled(False)
failed = []


def check(name, fine, detail=""):
    print(f"{'ok  ' if fine else 'FAIL'} {name} {detail}", flush=True)
    if not fine:
        failed.append(name)


def weights(dim, hidden, dtype, gated=False, bias=True):
    def weight(out, width):
        return (torch.randn(out, width, device="cuda") / width**0.5).to(dtype)

    def vector(size):
        return (0.1 * torch.randn(size, device="cuda")).to(dtype) if bias else None

    return dict(up=weight(hidden, dim), down=weight(dim, hidden), up_bias=vector(hidden), down_bias=vector(dim),
                gate=weight(hidden, dim) if gated else None, gate_bias=vector(hidden) if gated else None)


ACTIVATIONS = {"relu": F.relu, "gelu_erf": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}


def by_operators(x, up, down, up_bias, down_bias, gate, gate_bias, activation):
    act = ACTIVATIONS[activation]
    hidden = F.linear(x, up, up_bias)
    hidden = act(hidden) if gate is None else act(F.linear(x, gate, gate_bias)) * hidden
    return F.linear(hidden, down, down_bias)


def relative(value, exact):
    return ((value.double() - exact).norm() / exact.norm()).item()


def check_results():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for dim, hidden, rows, gated, bias, activation in ((256, 1024, 64, False, True, "relu"), (768, 3072, 128, True, False, "gelu_tanh"),
                                                           (320, 1280, 999, True, True, "gelu_erf"), (63, 171, 50, False, True, "silu")):
            w = weights(dim, hidden, dtype, gated, bias)
            x = torch.randn(rows, dim, device="cuda").to(dtype)
            exact = by_operators(x.double(), **{k: None if t is None else t.double() for k, t in w.items()}, activation=activation)
            ours = relative(ingot.mlp(x, **w, activation=activation), exact)
            theirs = relative(by_operators(x, **w, activation=activation), exact)
            # f32: one sum an output, in the order of K, whose error grows with its square root (docs/numerics.md).
            slack = hidden**0.5 * 2.0**-24 if dtype == torch.float32 else 0.05 * theirs
            check(f"{dtype} {rows}x{dim}->{hidden} {activation} gated={gated}", ours <= 1.1 * theirs + slack,
                  f"error {ours:.2e}, operators {theirs:.2e}")


def check_layouts():
    packed, bias = torch.randn(512, 128, device="cuda").bfloat16() / 11, torch.randn(512, device="cuda").bfloat16()
    down, x = torch.randn(128, 256, device="cuda").bfloat16() / 16, torch.randn(3, 40, 256, device="cuda").bfloat16()[..., 5:133]
    (up, ub), (gate, gb) = (packed[:256], bias[:256]), (packed[256:], bias[256:])
    expected = by_operators(x, up, down, ub, None, gate, gb, "gelu_erf").double()
    check("packed halves, strided x", relative(ingot.mlp(x, up, down, ub, None, gate, gb, activation="gelu_erf"), expected) < 1e-2)
    value = torch.ops.ingot.mlp(x, packed, down, bias, None, None, None, "gelu_erf", "packed_value_first", "match")
    check("packed operator", relative(value, expected) < 1e-2)
    check("empty", ingot.mlp(x[:0], up, down).shape == (0, 40, 128))
    try:
        ingot.mlp(x.cpu(), up, down)
        check("device named in the error", False)
    except RuntimeError as error:
        check("device named in the error", "x: on cpu, but up is on cuda:0" in str(error), str(error))


def feed_forward(dtype=torch.bfloat16):
    module = nn.Sequential(nn.Linear(512, 2048), nn.GELU("tanh"), nn.Linear(2048, 512)).to("cuda", dtype).eval()
    twin = copy.deepcopy(module)
    return module, twin


def check_fuse():
    module, twin = feed_forward()
    report = ingot.fuse(module)
    check("fuse", len(report.fused) == 1, str(report).splitlines()[-1])
    x = torch.randn(300, 512, device="cuda").bfloat16()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check("fused module", relative(module(x), twin(x).double()) < 1e-2)
        module.cpu(), twin.cpu()
        check("moved to the CPU", relative(module(x.cpu()), twin(x.cpu()).double()) < 1e-2)
    module.cuda(), twin.cuda()
    check("and back", relative(module(x), twin(x).double()) < 1e-2)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    check("compiled", torch.equal(compiled(x), module(x)))


def check_capture():
    module, twin = feed_forward()
    ingot.fuse(module)
    x = torch.randn(77, 512, device="cuda").bfloat16()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            module(x)
        check("capture without warm fails", False)
    except RuntimeError as error:
        check("capture without warm fails", "ingot.warm" in str(error), str(error).splitlines()[0][:150])
    start = time.perf_counter()
    count = ingot.warm(module, tokens=[len(x)])
    print(f"     warm took {time.perf_counter() - start:.2f} s for {count}")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module(x)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    check("captured and replayed", relative(y, twin(x).double()) < 1e-2)


def check_streams():
    module, twin = feed_forward()
    ingot.fuse(module)
    streams, inputs = [torch.cuda.Stream() for _ in range(2)], [torch.randn(500, 512, device="cuda").bfloat16() for _ in range(2)]
    torch.cuda.synchronize()
    results = [[], []]
    for _ in range(50):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                results[i].append(module(inputs[i]))
    torch.cuda.synchronize()
    check("two streams", all(torch.equal(r, results[i][0]) for i in range(2) for r in results[i])
          and all(relative(results[i][0], twin(inputs[i]).double()) < 1e-2 for i in range(2)))


def microseconds(call, calls=400):
    for _ in range(20):
        call()
    samples = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(samples)


def time_calls():
    w = weights(64, 256, torch.bfloat16)
    x = torch.randn(8, 64, device="cuda").bfloat16()
    module = nn.Sequential(nn.Linear(64, 256), nn.GELU("tanh"), nn.Linear(256, 64)).to("cuda", torch.bfloat16).eval()
    before = microseconds(lambda: module(x))
    ingot.fuse(module)
    operator = torch.ops.ingot.mlp.default
    packed = (x, w["up"], w["down"], w["up_bias"], w["down_bias"], None, None, "gelu_tanh", "plain", "match")
    empty = (x[:0], *packed[1:])
    rows = {"three operators": microseconds(lambda: by_operators(x, **w, activation="gelu_tanh")),
            "ingot.mlp": microseconds(lambda: ingot.mlp(x, **w)),
            "torch.ops.ingot.mlp.default": microseconds(lambda: operator(*packed)),
            "the same, no rows": microseconds(lambda: operator(*empty)),
            "torch.empty_like": microseconds(lambda: torch.empty_like(x)),
            "nn.Sequential before": before,
            "nn.Sequential fused": microseconds(lambda: module(x))}
    for name, value in rows.items():
        print(f"{value:8.2f} us  {name}")


def main():
    start = time.perf_counter()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for step in (check_results, check_layouts, check_fuse, check_capture, check_streams, time_calls):
        try:
            step()
        except Exception as error:  # one step's end must not hide the others
            check(step.__name__, False, f"{type(error).__name__}: {error}")
    print(f"{len(failed)} failed, {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
