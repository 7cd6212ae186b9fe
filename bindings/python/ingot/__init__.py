# SPDX-License-Identifier: Apache-2.0
"""Ingot for PyTorch: runs a model's MLPs in as few kernels as the hardware allows.

    import ingot
    report = ingot.fuse(model)   # in place; ingot.unfuse(model) restores
    print(report)

`mlp` is the operator itself, `explain` and `profile` read what a model really launches, `bench` proves a gain on this
machine, `warm` compiles ahead of CUDA-graph capture. `python -m ingot` is the command line.
"""
import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .choice import choose_by_measurement as choose_by_measurement
    from .functional import mlp as mlp
    from .parts import Parts as Parts
    from .recognise import register as register
    from .swap import fuse as fuse, unfuse as unfuse, warm as warm
    from .report import FuseReport as FuseReport
    from .tools import Explanation as Explanation, bench as bench, explain as explain, profile as profile

# What lies where. Loaded at first use, so that the command line starts without PyTorch.
_HOMES = {
    "mlp": "functional",
    "Parts": "parts",
    "choose_by_measurement": "choice",
    "register": "recognise",
    "fuse": "swap",
    "unfuse": "swap",
    "warm": "swap",
    "FuseReport": "report",
    "Explanation": "tools",
    "explain": "tools",
    "profile": "tools",
    "bench": "tools",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name):
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    elif name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value = version("ingot")
        except PackageNotFoundError:  # the folder alone, carried somewhere
            value = "unknown"
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)


# Where PyTorch is loaded already, its compiler shall find functions here, not a look-up it cannot trace.
if "torch" in sys.modules:
    for _name in _HOMES:
        __getattr__(_name)
    del _name
