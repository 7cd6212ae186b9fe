#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fused against eager in PyTorch on the CPU, two threads: a ViT-B, the feed-forwards of Stable Video Diffusion, and the cost of a
call.

    python bench/torch/cpu.py [--seconds 4] [--threads 2]

Results are compared before anything is timed. Fused and eager models hold the same weights and take turns; medians, and the
least and largest ratio of neighbours.
"""
import argparse
import copy
import statistics
import time

import torch
from diffusers.models.attention import FeedForward
from torch import nn
from transformers import ViTConfig, ViTModel

import ingot


def vit():
    return ViTModel(ViTConfig(), add_pooling_layer=False).eval(), (torch.randn(1, 3, 224, 224),), "ViT-B/16, one image"


def vit_batch():
    return ViTModel(ViTConfig(), add_pooling_layer=False).eval(), (torch.randn(4, 3, 224, 224),), "ViT-B/16, four images"


class Residuals(nn.Module):
    """Feed-forwards of one width as a block has them: norm, MLP, residual."""

    def __init__(self, width, count):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(count)])
        self.ffs = nn.ModuleList([FeedForward(width, activation_fn="geglu") for _ in range(count)])

    def forward(self, x):
        for norm, ff in zip(self.norms, self.ffs):
            x = x + ff(norm(x))
        return x


def svd(width, rows):
    return Residuals(width, 4).eval(), (torch.randn(1, rows, width),), f"SVD feed-forwards, {rows} x {width}, gated"


def value(output):
    return output if isinstance(output, torch.Tensor) else output[0]


def compare(model, inputs, seconds):
    """Medians of eager and fused in milliseconds, and the ratios of neighbours."""
    fused = copy.deepcopy(model)
    report = ingot.fuse(fused)
    ours, theirs = value(fused(*inputs)), value(model(*inputs))
    assert report.fused and (ours - theirs).norm() <= 1e-4 * theirs.norm()
    for _ in range(8):
        fused(*inputs)  # the choice between the two is made here
    times, end = ([], []), time.perf_counter() + seconds
    while len(times[0]) < 5 or time.perf_counter() < end:
        for each, samples in ((model, times[0]), (fused, times[1])):
            start = time.perf_counter()
            each(*inputs)
            samples.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[0]), statistics.median(times[1]), sorted(a / b for a, b in zip(*times))


def microseconds(call, calls=2000):
    samples = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="of each comparison")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, {arguments.dtype}")
    print(f"{'':42s} {'eager ms':>9s} {'fused ms':>9s} {'ratio':>6s}  least to largest")
    if arguments.dtype == "float32":
        # Ingot in any case, then the default.
        for measured in (False, True):
            ingot.choose_by_measurement(measured)
            print("chosen by measurement" if measured else "always Ingot")
            for model, inputs, name in (vit(), vit_batch(), svd(320, 2304), svd(640, 576), svd(1280, 144), svd(320, 9216)):
                eager, fused, ratios = compare(model, inputs, arguments.seconds)
                print(f"{name:42s} {eager:9.2f} {fused:9.2f} {statistics.median(ratios):6.2f}  "
                      f"{ratios[len(ratios) // 20]:.2f} to {ratios[-1 - len(ratios) // 20]:.2f}", flush=True)

    torch.set_num_threads(1)
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU("tanh"), nn.Linear(16, 8)).eval()
    x, (first, _, last) = torch.randn(1, 8), module
    operator = torch.ops.ingot.mlp.default
    words = (first.weight, last.weight, first.bias, last.bias, None, None, "gelu_tanh", "plain", "match")
    rows = [("1 x 8 -> 16: the module", lambda: module(x)),
            ("ingot.mlp", lambda: ingot.mlp(x, first.weight, last.weight, first.bias, last.bias)),
            ("torch.ops.ingot.mlp.default", lambda: operator(x, *words)),
            ("the same without rows", lambda: operator(x[:0], *words)),
            ("torch.empty_like", lambda: torch.empty_like(x))]
    for name, call in rows:
        print(f"{microseconds(call):8.2f} us  {name}")
    ingot.fuse(module)
    ingot.choose_by_measurement(False)
    print(f"{microseconds(lambda: module(x)):8.2f} us  the module, fused")


if __name__ == "__main__":
    main()
