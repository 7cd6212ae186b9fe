# SPDX-License-Identifier: Apache-2.0
"""Times the two-launch MLP of every shape against PyTorch eager, torch.compile and the library's GELU epilogue.

python3 bench.py CUBINS [--only NAME,...] [--tiles N] [--compile] [--prototype SO] [--json FILE] [--seconds S]

Method: a CUDA graph over rotating weights and inputs (nothing is read from a warm L2), contenders in random turns, median of
nine replays ("burst"); the same graph back to back for a tenth of a second and more ("sustained", at the card's power limit).
First each linear's tiles are timed alone, then the best pairs as a whole MLP. Every contender is checked first.
"""
import argparse
import ctypes
import json
import math
import os
import random
import statistics
import threading
import time

import torch
import torch.nn.functional as F

import shapes
from driver import Driver, Kernel, Matrix
from specs import Few, Gemm

DEV, BF16 = "cuda", torch.bfloat16
ACT = {"relu": F.relu, "gelu_erf": F.gelu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"), "silu": F.silu}


def make_weights(dim, hidden, bias, gated):
    """Value, gate and down projection; gated "packed" is one tensor, value first. Separate: the gate lies first."""
    def lin(o, i):
        return ((torch.randn(o, i, device=DEV) / math.sqrt(i)).to(BF16), (0.1 * torch.randn(o, device=DEV)).to(BF16) if bias else None)
    if gated:
        w, b = lin(2 * hidden, dim)
        halves = [(w[:hidden], b[:hidden] if bias else None), (w[hidden:], b[hidden:] if bias else None)]
        up, gate = halves if gated == "packed" else halves[::-1]
        both = (w, b)
    else:
        up, gate, both = lin(hidden, dim), (None, None), None
    return dict(up=up, gate=gate, both=both, down=lin(dim, hidden))


def eager(x, w, act, gated):
    if gated == "packed":
        a, g = F.linear(x, *w["both"]).chunk(2, dim=-1)
        h = a * ACT[act](g)
    elif gated:
        h = ACT[act](F.linear(x, *w["gate"])) * F.linear(x, *w["up"])
    else:
        h = ACT[act](F.linear(x, *w["up"]))
    return F.linear(h, *w["down"])


def epilogue(x, w, act, gated):
    h = torch._addmm_activation(w["up"][1], x, w["up"][0].t(), use_gelu=act != "relu")
    return F.linear(h, *w["down"])


def gemms(x, w, h):
    F.linear(x, *(w["both"] or w["up"]))
    return F.linear(h, *w["down"])


class Graph:
    def __init__(self, call, sets):
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            for i in range(min(sets, 2)):
                call(i)
        torch.cuda.current_stream().wait_stream(s)
        torch.cuda.synchronize()
        self.graph, self.sets = torch.cuda.CUDAGraph(), sets
        with torch.cuda.graph(self.graph):
            for i in range(sets):
                call(i)
        self.once()

    def once(self, replays=1):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(replays):
            self.graph.replay()
        b.record()
        torch.cuda.synchronize()
        return a.elapsed_time(b) * 1e3 / self.sets / replays

    def sustained(self, us, seconds=0.25):
        return self.once(max(1, int(seconds * 1e6 / (us * self.sets))))


class Watchdog:
    """Ends the process when one step takes too long (a kernel that hangs), leaving its name in a file."""

    def __init__(self, path, seconds=8):
        self.path, self.seconds, self.what, self.since = path, seconds, None, 0
        self.hung = set(open(path).read().split("\n")) if os.path.exists(path) else set()
        threading.Thread(target=self.watch, daemon=True).start()

    def step(self, what):
        self.what, self.since = what, time.time()

    def watch(self):
        while True:
            time.sleep(0.5)
            if self.what and time.time() - self.since > self.seconds:
                print(f"HANG {self.what}", flush=True)
                open(self.path, "a").write(self.what + "\n")
                os._exit(3)


def ptr(t):
    return 0 if t is None else t.data_ptr()


class Problem:
    def __init__(self, shape, driver, folder):
        self.shape, self.driver, self.folder = shape, driver, folder
        name, self.m, self.d, self.h, self.act, self.bias, self.gated = shape
        self.flops = 2 * self.m * self.d * self.h * (3 if self.gated else 2)
        traffic = 2 * (2 * self.m * self.d + self.d * self.h * (3 if self.gated else 2))
        self.traffic = traffic
        self.sets = max(1, min(48, math.ceil(256e6 / traffic)))
        self.ws = [make_weights(self.d, self.h, self.bias, self.gated) for _ in range(self.sets)]
        self.xs = [torch.randn(self.m, self.d, device=DEV).to(BF16) for _ in range(self.sets)]
        self.hs = [torch.randn(self.m, self.h, device=DEV).to(BF16) for _ in range(min(self.sets, 8))]
        self.ys = [torch.empty(self.m, self.d, device=DEV, dtype=BF16) for _ in range(min(self.sets, 8))]
        self.linears = shapes.linears(shape)
        self.kernels = {}

    def kernel(self, which, tile):
        key = (which, tile)
        if key not in self.kernels:
            self.kernels[key] = Kernel(self.driver, self.folder, self.linears[which], tile)
        return self.kernels[key]

    def launches(self, which, tile, group_rows, early=0):
        """One prepared launch for each set."""
        kernel, linear = self.kernel(which, tile), self.linears[which]
        out = []
        for i in range(self.sets):
            w, h, y = self.ws[i], self.hs[i % len(self.hs)], self.ys[i % len(self.ys)]
            if which == 0:
                args = dict(x=Matrix.of(self.xs[i]), y=Matrix.of(h))
                if self.gated:
                    args |= dict(w=Matrix.of(w["gate"][0]), bias=ptr(w["gate"][1]), second=Matrix.of(w["up"][0]), bias_second=ptr(w["up"][1]))
                else:
                    args |= dict(w=Matrix.of(w["up"][0]), bias=ptr(w["up"][1]))
            else:
                args = dict(x=Matrix.of(h), y=Matrix.of(y), w=Matrix.of(w["down"][0]), bias=ptr(w["down"][1]))
            out.append(kernel.prepare(**args, group_rows=group_rows, early=early))
        return out

    def one(self, which, tile, group_rows):
        ls = self.launches(which, tile, group_rows)
        return lambda i: ls[i % self.sets](torch.cuda.current_stream().cuda_stream)

    def mlp(self, tile1, g1, tile2, g2, programmatic=True):
        """As the engine launches it: both early, the second with all or two stages of its weights."""
        a, b = self.launches(0, tile1, g1), self.launches(1, tile2, g2, 99 if isinstance(tile2, Few) else 2)
        def call(i):
            s = torch.cuda.current_stream().cuda_stream
            a[i % self.sets](s, programmatic)
            b[i % self.sets](s, programmatic)
        return call


def groups_for(problem, which, tile):
    if isinstance(tile, Few):
        return [1]
    rows = math.ceil(problem.m / (tile.rows * tile.cluster_rows))
    if tile.rows == 64 and tile.cluster == 1:  # arch/sm90.h says why
        return [min(8, rows)]
    if rows <= 4 or problem.flops < 5e11:
        return [min(16, rows)]
    return [g for g in (8, 16) if g <= rows] or [rows]


def tune(problem, which, count, log, budget_s, dog):
    """The measured tiles of one linear, best first: (us, tile, group_rows)."""
    shape = problem.shape
    linear, tiles = shapes.measured(shape, ("fc1", "fc2")[which], count)
    rows = slice(0, min(problem.m, 512))
    w = problem.ws[0]
    if which == 0:
        if problem.gated:
            expect = (ACT[problem.act](F.linear(problem.xs[0], *w["gate"])) * F.linear(problem.xs[0], *w["up"]))[rows]
        else:
            expect = ACT[problem.act](F.linear(problem.xs[0], *w["up"]))[rows]
    else:
        expect = F.linear(problem.hs[0], *w["down"])[rows]
    graphs, start = {}, time.time()
    for tile in tiles:
        path = os.path.join(problem.folder, problem.linears[which].label() + "__" + tile.label() + ".cubin")
        name = f"{shape[0]} fc{which + 1} {tile.label()}"
        if not os.path.exists(path) or name in dog.hung:
            continue
        dog.step(name)
        for g in groups_for(problem, which, tile):
            target = (problem.hs if which == 0 else problem.ys)[0]
            keep = target.clone() if which == 0 else None
            target.fill_(float("nan"))
            call = problem.one(which, tile, g)
            call(0)
            torch.cuda.synchronize()
            e = float((target[rows].float() - expect.float()).norm() / expect.float().norm())
            bad = not bool(torch.isfinite(target).all()) or e > 6e-3
            if bad:
                log(f"  BAD {shape[0]} fc{which + 1} {tile.label()} error {e:.1e}")
                continue
            graphs[(tile, g)] = Graph(call, problem.sets)
    samples = {k: [] for k in graphs}
    rounds = 5
    dog.step(None)
    for r in range(rounds):
        for k in random.sample(list(graphs), len(graphs)):
            samples[k].append(graphs[k].once())
        if time.time() - start > budget_s and r >= 2:
            break
    ranked = sorted([(statistics.median(v), k[0], k[1]) for k, v in samples.items()], key=lambda t: t[0])
    log(f"  fc{which + 1} " + " ".join(f"{t.label()}/{g}={us:.1f}" for us, t, g in ranked[:12]))
    return ranked


class PrototypeArgs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in "A B B2 D bias W2 D2 bias2".split()] + \
               [(n, ctypes.c_int) for n in "M N K N2 order G RB pdl".split()] + \
               [("stream", ctypes.c_void_p), ("dbg", ctypes.c_void_p), ("cnt", ctypes.c_void_p)] + \
               [(n, ctypes.c_int) for n in "hA hB hD grid abl sync".split()] + [("sched", ctypes.c_void_p)]


def prototype(lib, problem):
    """The two-launch prototype on its three shapes, its best setting for each."""
    pairs = {"blog_geglu_8k": ("o1x0", "c3n0", 0), "wan1.3b_33k": ("o1g0", "c3b0", 0), "wan14b_33k": ("c4wg0", "c4wb0", 1)}
    if problem.shape[0] not in pairs:
        return None
    k1, k2, sync = pairs[problem.shape[0]]
    counter = torch.zeros(256, dtype=torch.int32, device=DEV)
    halves = [None if w["up"][1] is None else (w["up"][1].float() * 0.5).contiguous() for w in problem.ws]
    downs = [None if w["down"][1] is None else w["down"][1].float().contiguous() for w in problem.ws]

    def launch(name, x, w, out, bias, up=None):
        a = PrototypeArgs()
        a.A, a.B, a.B2, a.D, a.bias = ptr(x), ptr(w), ptr(up) or None, ptr(out), ptr(bias) or None
        a.M, a.K, a.N, a.G, a.sync, a.cnt = x.shape[0], x.shape[1], w.shape[0], 8, sync, ptr(counter)
        a.stream = torch.cuda.current_stream().cuda_stream
        r = lib.g_launch(name.encode(), ctypes.byref(a))
        if r:
            raise RuntimeError(f"prototype {name}: {r}")

    def call(i):
        i %= problem.sets
        w, h, y = problem.ws[i], problem.hs[i % len(problem.hs)], problem.ys[i % len(problem.ys)]
        launch(k1, problem.xs[i], w["gate"][0] if problem.gated else w["up"][0], h, halves[i], w["up"][0] if problem.gated else None)
        launch(k2, h, w["down"][0], y, downs[i])
    call.keep = (halves, downs, counter)
    return call


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("cubins"); ap.add_argument("--only"); ap.add_argument("--tiles", type=int, default=3)
    ap.add_argument("--compile", action="store_true"); ap.add_argument("--prototype"); ap.add_argument("--json")
    ap.add_argument("--seconds", type=float, default=400); ap.add_argument("--pairs", type=int, default=2)
    ap.add_argument("--sustain", type=float, default=0.1)
    args = ap.parse_args()
    torch.manual_seed(0); torch.set_grad_enabled(False)
    torch.zeros(1, device=DEV)
    driver, rows, table, start = Driver(), [], [], time.time()
    dog = Watchdog((args.json or "bench.json") + ".hung")
    if args.json and os.path.exists(args.json):
        rows = json.load(open(args.json))["rows"]
    proto = ctypes.CDLL(args.prototype) if args.prototype and os.path.exists(args.prototype) else None
    out = open(os.path.splitext(args.json)[0] + ".log", "a") if args.json else None
    def log(text):
        print(text, flush=True)
        if out:
            out.write(text + "\n"); out.flush()
    a, b = (torch.randn(8192, 8192, device=DEV, dtype=BF16) for _ in range(2))
    g = Graph(lambda i: torch.matmul(a, b), 1)
    peak = 2 * 8192**3 / statistics.median([g.once() for _ in range(7)]) * 1e-6
    del a, b, g
    log(f"{torch.cuda.get_device_name()} torch {torch.__version__} bf16 8192^3 {peak:.0f} TFLOP/s")
    done = {r["name"] for r in rows}
    chosen = [s for s in shapes.SHAPES if (not args.only or s[0] in args.only.split(",")) and s[0] not in done]
    for n, shape in enumerate(chosen):
        name = shape[0]
        if time.time() - start > args.seconds:
            log(f"out of time before {name}")
            break
        try:
            problem = Problem(shape, driver, args.cubins)
            log(f"{name} at {time.time() - start:.0f} s")
            best = [tune(problem, w, args.tiles, log, 6, dog) for w in (0, 1)]
            if not all(best):
                log(f"  no working tile for {name}")
                continue
            act, gated = problem.act, problem.gated
            calls = {"eager": lambda i: eager(problem.xs[i % problem.sets], problem.ws[i % problem.sets], act, gated)}
            if problem.bias and not gated and act in ("relu", "gelu_tanh"):
                calls["epilogue"] = lambda i: epilogue(problem.xs[i % problem.sets], problem.ws[i % problem.sets], act, gated)
            calls["gemms"] = lambda i: gemms(problem.xs[i % problem.sets], problem.ws[i % problem.sets], problem.hs[i % len(problem.hs)])
            if args.compile:
                torch._dynamo.reset()
                compiled = torch.compile(eager, dynamic=False)
                calls["compile"] = lambda i: compiled(problem.xs[i % problem.sets], problem.ws[0], act, gated)
            if proto:
                call = prototype(proto, problem)
                if call:
                    calls["prototype"] = call
            take = args.pairs if problem.flops > 2e10 else args.pairs + 1
            for _, t1, g1 in best[0][:take]:
                for _, t2, g2 in best[1][:take]:
                    calls[f"{t1.label()}/{g1}+{t2.label()}/{g2}"] = problem.mlp(t1, g1, t2, g2)
            for p1, p2 in shapes.PAIRS.get(name, []):
                t1, t2 = shapes.tile_of(p1), shapes.tile_of(p2)
                g1, g2 = groups_for(problem, 0, t1)[0], groups_for(problem, 1, t2)[0]
                calls[f"{p1}/{g1}+{p2}/{g2}"] = problem.mlp(t1, g1, t2, g2)
            first = (best[0][0], best[1][0])
            label = f"{first[0][1].label()}/{first[0][2]}+{first[1][1].label()}/{first[1][2]}"
            calls[label + " plain"] = problem.mlp(first[0][1], first[0][2], first[1][1], first[1][2], False)
            rows_ref = slice(0, min(problem.m, 512))
            w64 = {k: v if v is None else tuple(t if t is None else t.double() for t in v) for k, v in problem.ws[0].items()}
            ref = eager(problem.xs[0][rows_ref].double(), w64, act, gated)
            graphs, errors = {}, {}
            for k, c in calls.items():
                if k in dog.hung:
                    continue
                dog.step(k)
                problem.ys[0].fill_(float("nan"))
                r = c(0)
                torch.cuda.synchronize()
                o = (r if r is not None else problem.ys[0])[rows_ref].double()
                errors[k] = float((o - ref).norm() / ref.norm()) if k != "gemms" else 0.0
                graphs[k] = Graph(c, problem.sets)
            dog.step(None)
            samples = {k: [] for k in graphs}
            for _ in range(9):
                for k in random.sample(list(graphs), len(graphs)):  # no one always behind the same other
                    samples[k].append(graphs[k].once())
            row = dict(name=name, flops=problem.flops, sets=problem.sets, tune=[[(us, t.label(), g) for us, t, g in b] for b in best], results={})
            mine = [k for k in graphs if "+" in k]
            us = {k: statistics.median(samples[k]) for k in graphs}
            top = min((k for k in mine if not k.endswith(" plain")), key=lambda k: us[k])
            # Sustained: three turns each, in alternation, so that all are as hot.
            hot = {k: [] for k in graphs if k in ("eager", "epilogue", "compile", "prototype") or k == top}
            for _ in range(5):
                for k in random.sample(list(hot), len(hot)):
                    hot[k].append(graphs[k].sustained(us[k], args.sustain))
            for k in graphs:
                row["results"][k] = dict(us=us[k], spread=[min(samples[k]), max(samples[k])], error=errors[k],
                                         sustained=statistics.median(hot[k]) if k in hot else None)
            rows.append(row)
            r = row["results"]
            peers = min(r[k]["us"] for k in ("eager", "epilogue", "compile") if k in r)
            peers_s = min(r[k]["sustained"] for k in ("eager", "epilogue", "compile") if k in r)
            for k in graphs:
                log(f"  {k:48s} {r[k]['us']:9.2f} us [{r[k]['spread'][0]:.1f} {r[k]['spread'][1]:.1f}] sustained {r[k]['sustained'] or 0:9.1f} error {errors[k]:.2e}")
            table.append(f"{name:15s} peer {peers:9.1f} ingot {r[top]['us']:9.1f} share {r[top]['us'] / peers:.3f} sustained "
                         f"{r[top]['sustained'] / peers_s:.3f} TF {problem.flops / r[top]['us'] * 1e-6:4.0f} err {errors[top] / errors['eager']:.2f} {top}")
            del problem, graphs, calls, samples, ref, w64
        except Exception as e:
            log(f"  FAILED {name}: {repr(e)[:300]}")
            if "CUDA" in repr(e) or "cu" in repr(e)[:20]:
                import traceback
                log(traceback.format_exc()[-800:])
                try:
                    torch.cuda.synchronize()
                except Exception:
                    log("the context is lost"); break
        torch.cuda.empty_cache()
        if args.json:
            json.dump(dict(device=torch.cuda.get_device_name(), peak_tflops=peak, rows=rows), open(args.json, "w"), indent=1)
    log("\n".join(table))


if __name__ == "__main__":
    main()
