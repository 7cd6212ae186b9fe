#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the CPU ladder, from `ingot bench --json` and `ingot plan --json`.

    figures.py INGOT [--seconds 2] [--sweep-seconds 0.5] [--max-gflop 40]

First one gated MLP closely (8192 tokens, 320 -> 1280), then every shape of the catalogue at 1, 77, 512 and 2048 tokens:
is the planner's choice the measured best, is it slower than the unfused rung, how far off is its forecast. Cases of more
than --max-gflop GFLOP are left out and counted.
"""
import argparse
import json
import subprocess
import sys


def ingot(binary, *arguments):
    result = subprocess.run([binary, *map(str, arguments), "--json"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"ingot {' '.join(map(str, arguments))}: exit {result.returncode}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def medians(document):
    return {rung["name"]: rung["time_us"]["median"] for rung in document["rungs"] if rung["ok"]}


def closely(binary, seconds):
    print("8192 tokens of 320 -> 1280 gelu_erf gated, bias")
    for dtype in ("f32", "bf16"):
        document = ingot(binary, "bench", "--tokens", 8192, "--dim", 320, "--hidden", 1280, "--act", "gelu_erf", "--gated",
                         "--dtype", dtype, "--seconds", seconds)
        time = medians(document)
        one = time["one_pass"]
        print(f"  {dtype:5s}" + "".join(f"{name} {us / 1e3:8.2f} ms  " for name, us in time.items()))
        print(f"       one_pass over matmul_add {time['matmul_add'] / one:.2f}x, over unfused {time['unfused'] / one:.2f}x; "
              f"{one / document['floor']['compute_us']:.2f} of what its arithmetic takes at the measured GEMM rate")


def catalogue(binary, seconds, max_gflop):
    shapes = {}
    for model in ingot(binary, "models")["models"]:
        mlp = model["mlp"]
        key = (mlp["dim"], mlp["hidden"], mlp["activation"], mlp["gated"], mlp["bias"])
        shapes.setdefault(key, model["name"])
    cases = left_out = best = not_slower = near = 0
    print("shape of the catalogue          tokens   chosen      time      best                 forecast")
    for (dim, hidden, _, gated, _), name in shapes.items():
        for tokens in (1, 77, 512, 2048):
            if 2e-9 * tokens * dim * hidden * (3 if gated else 2) > max_gflop:
                left_out += 1
                continue
            document = ingot(binary, "bench", "--model", name, "--tokens", tokens, "--dtype", "f32", "--seconds", seconds)
            time = medians(document)
            plan = ingot(binary, "plan", "--model", name, "--tokens", tokens, "--dtype", "f32")["chosen"]
            chosen = time[plan["rung"]]
            fastest = min(time, key=time.get)
            forecast = plan["forecast_us"] / chosen
            cases += 1
            best += chosen <= 1.05 * time[fastest]
            not_slower += chosen <= 1.03 * time["unfused"]
            near += 1 / 1.3 <= forecast <= 1.3
            print(f"{name:30s} {tokens:7d}   {plan['rung']:10s} {chosen:9.1f} us {fastest:10s} {chosen / time[fastest]:5.2f}x   "
                  f"unfused {chosen / time['unfused']:5.2f}x   forecast {forecast:5.2f}x", flush=True)
    print(f"{cases} cases, {left_out} larger than {max_gflop} GFLOP left out: choice within 5 % of the best in "
          f"{100 * best / cases:.0f} %, at most 3 % slower than unfused in {100 * not_slower / cases:.0f} %, forecast within "
          f"30 % in {100 * near / cases:.0f} %")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("ingot")
    arguments.add_argument("--seconds", type=float, default=2)
    arguments.add_argument("--sweep-seconds", type=float, default=0.5)
    arguments.add_argument("--max-gflop", type=float, default=40)
    args = arguments.parse_args()
    closely(args.ingot, args.seconds)
    catalogue(args.ingot, args.sweep_seconds, args.max_gflop)


if __name__ == "__main__":
    main()
