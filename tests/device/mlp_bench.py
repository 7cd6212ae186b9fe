# SPDX-License-Identifier: Apache-2.0
"""Times whole-MLP kernels against PyTorch. python3 mlp_bench.py CUBINS [--only NAME,...] [--peers] [--compile] [--rounds N]

Method of bench.py: a CUDA graph over rotating weights and inputs, contenders in random turns, medians; then the same graph
back to back ("sustained"). Every contender is checked first.
"""
import argparse
import os
import random
import statistics

import torch

import bench
from bench import Graph, Problem, ptr
from driver import Driver, Matrix
from mlp_check import MlpKernel
from mlp_shapes import SHAPES, mlp_of, tiles_of
from mlp_specs import name_of


def calls_of(problem, shape, tile, match, programmatic):
    m = mlp_of(shape, match)
    kernel = MlpKernel(problem.driver, problem.folder, m, tile)
    launches = []
    for i in range(problem.sets):
        w, y = problem.ws[i], problem.ys[i % len(problem.ys)]
        launches.append(kernel.prepare_mlp(
            Matrix.of(problem.xs[i]), Matrix.of(w["up"][0]), Matrix.of(w["gate"][0]) if m.gated else None, Matrix.of(w["down"][0]),
            Matrix.of(y), (ptr(w["up"][1]), ptr(w["gate"][1]), ptr(w["down"][1])), int(programmatic)))
    return lambda i: launches[i % problem.sets](torch.cuda.current_stream().cuda_stream, programmatic)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("cubins"); ap.add_argument("--only"); ap.add_argument("--peers", action="store_true")
    ap.add_argument("--compile", action="store_true"); ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--sustain", type=float, default=0.06)
    args = ap.parse_args()
    torch.manual_seed(0); torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")
    driver = Driver()
    dog = bench.Watchdog("mlp_bench.hung")
    for shape in SHAPES:
        name, tokens, dim, hidden, act, bias, gated = shape
        if args.only and name not in args.only.split(","):
            continue
        problem, calls = Problem(shape, driver, args.cubins), {}
        if args.peers or args.compile:
            calls["eager"] = lambda i: bench.eager(problem.xs[i % problem.sets], problem.ws[i % problem.sets], act, gated)
            if bias and not gated and act in ("relu", "gelu_tanh"):
                calls["epilogue"] = lambda i: bench.epilogue(problem.xs[i % problem.sets], problem.ws[i % problem.sets], act, gated)
        if args.compile:
            torch._dynamo.reset()
            compiled = torch.compile(bench.eager, dynamic=False)
            calls["compile"] = lambda i: compiled(problem.xs[i % problem.sets], problem.ws[0], act, gated)
        for match, tile in tiles_of(shape):
            if os.path.exists(os.path.join(args.cubins, name_of(mlp_of(shape, match), tile) + ".cubin")):
                calls[f"{tile.label()} {'match' if match else 'fast'}"] = calls_of(problem, shape, tile, match, False)
        some = torch.arange(0, tokens, max(1, tokens // 1021), device="cuda")
        w64 = {k: v if v is None else tuple(t if t is None else t.double() for t in v) for k, v in problem.ws[0].items()}
        ref = bench.eager(problem.xs[0][some].double(), w64, act, gated)
        graphs, errors = {}, {}
        for k, call in calls.items():
            if k in dog.hung:
                continue
            dog.step(f"{name} {k}") if k != "compile" else dog.step(None)
            problem.ys[0].fill_(float("nan"))
            r = call(0)
            torch.cuda.synchronize()
            out = r if r is not None else problem.ys[0]
            errors[k] = float((out[some].double() - ref).norm() / ref.norm()) if bool(torch.isfinite(out).all()) else float("nan")
            graphs[k] = Graph(call, problem.sets)
        dog.step(None)
        samples = {k: [] for k in graphs}
        for _ in range(args.rounds):
            for k in random.sample(list(graphs), len(graphs)):
                samples[k].append(graphs[k].once())
        us = {k: statistics.median(v) for k, v in samples.items()}
        hot = {k: [] for k in graphs}
        for _ in range(3):
            for k in random.sample(list(hot), len(hot)):
                hot[k].append(graphs[k].sustained(us[k], args.sustain))
        peers = [us[k] for k in ("eager", "epilogue", "compile") if k in us]
        print(f"{name}: {tokens} x {dim} -> {hidden} {act}{' gated' if gated else ''}, {problem.flops / 790e6:.1f} us at 790 TFLOP/s"
              + (f", best peer {min(peers):.1f}" if peers else ""), flush=True)
        for k in graphs:
            share = f" share {us[k] / min(peers):.3f}" if peers else ""
            print(f"  {k:18s} {us[k]:8.2f} us [{min(samples[k]):.1f} {max(samples[k]):.1f}] sustained {statistics.median(hot[k]):8.1f} "
                  f"{problem.flops / us[k] * 1e-6:4.0f} TF error {errors[k]:.2e}{share}", flush=True)
        del problem, graphs, calls, samples, ref, w64
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
