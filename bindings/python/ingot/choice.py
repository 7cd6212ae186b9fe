# SPDX-License-Identifier: Apache-2.0
"""Ingot or the original, by measurement: on a CPU, which of the two is faster depends on the GEMMs PyTorch was built with, on the
width, and on what else the model does with its threads.

The first calls of a shape take turns between the two, and each is timed doing work that was wanted anyway; then the faster one
stays. Shapes are those of the weights, with rows up to the next power of two, in this process.
"""
from time import perf_counter
from typing import Dict, Optional

import torch

# Of each; the first is not counted, since it prepares.
SAMPLES = 4

_enabled = True
_trials: Dict[tuple, "Trial"] = {}


def choose_by_measurement(on: bool) -> bool:
    """Whether fused modules on a CPU choose between Ingot and the original forward by timing their first calls (the default), or
    always run through Ingot. Returns what held before. Results of the two differ by the order of sums: switch it off where one
    input must give the same bits from the first call on. Either way forgets what was measured."""
    global _enabled
    before, _enabled = _enabled, bool(on)
    _trials.clear()
    return before


class Trial:
    """What was measured of one shape, in seconds. ours_wins is None while it is open."""

    __slots__ = ("ours", "original", "ours_wins")

    def __init__(self):
        self.ours, self.original, self.ours_wins = [], [], None

    def run(self, ours, original):
        """One call, of the one whose turn it is."""
        mine = len(self.ours) <= len(self.original)
        start = perf_counter()
        y = ours() if mine else original()
        (self.ours if mine else self.original).append(perf_counter() - start)
        if min(len(self.ours), len(self.original)) >= SAMPLES:
            # The least time is what other work on the machine disturbs least.
            self.ours_wins = min(self.ours[1:]) <= min(self.original[1:])
        return y


def trial_of(parts, x) -> Optional[Trial]:
    """The trial of this shape; None where there is nothing to choose."""
    if not _enabled or x.is_cuda:
        return None
    up = parts.up
    key = (up.in_features, up.out_features, parts.layout, parts.activation, x.dtype,
           (x.numel() // up.in_features - 1).bit_length(), torch.get_num_threads())
    trial = _trials.get(key)
    if trial is None:
        trial = _trials[key] = Trial()
    return trial
