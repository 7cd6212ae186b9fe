# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python tests: inputs, the judgement of results, and a count of the runs that went through Ingot."""
import contextlib
import copy
import os
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
import torch.nn.functional as F

from diffusers.models.attention import FeedForward

import ingot
import ingot.swap

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# Half the distance between neighbours, relative: what one rounding costs at most.
ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(7)
    torch.set_num_threads(2)
    ingot.choose_by_measurement(False)


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@contextlib.contextmanager
def counted():
    """Counts calls of the operator by fused modules."""
    calls = []
    run = ingot.swap.run_mlp

    def counting(*arguments):
        calls.append(arguments)
        return run(*arguments)

    ingot.swap.run_mlp = counting
    try:
        yield calls
    finally:
        ingot.swap.run_mlp = run


def relative(value, exact):
    """||value - exact|| / ||exact||"""
    return ((value.double() - exact).norm() / exact.norm()).item()


def assert_match(value, eager, exact):
    """The contract of docs/numerics.md: within 1.1 times the separate operators' error, and no element far off."""
    assert value.shape == eager.shape and value.dtype == eager.dtype
    assert torch.isfinite(value).all()
    roundoff = ROUNDOFF[value.dtype]
    # The second term is what the statistics of a small sample may add; in f32, another order of sums and activations that are
    # within 3.2 roundoffs of the definition.
    assert relative(value, exact) <= 1.1 * relative(eager, exact) + (0.15 if value.dtype != torch.float32 else 6) * roundoff
    assert (value.double() - exact).abs().max() <= (12 if value.dtype != torch.float32 else 24) * roundoff * exact.abs().max()


def check_family(module, x, count=1, call=lambda module, x: module(x)):
    """A module before and after fusing, against float64; `count` runs through Ingot. Returns the report."""
    module = module.eval()
    with torch.no_grad():
        exact = call(copy.deepcopy(module).double(), x.double())
        eager = call(module, x)
        report = ingot.fuse(module)
        with counted() as calls, warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fused = call(module, x)
        assert len(calls) == count, str(report)
        assert_match(fused, eager, exact)
        ingot.unfuse(module)
        with counted() as calls:
            assert torch.equal(call(module, x), eager)
        assert not calls
    return report


DIM = 64


def feed_forward(activation="gelu-approximate"):
    return FeedForward(DIM, activation_fn=activation).eval()


@pytest.fixture
def fused():
    """A fused module, its unfused twin with the same weights, and an input."""
    module = feed_forward()
    twin = copy.deepcopy(module)
    assert len(ingot.fuse(module).fused) == 1
    with torch.no_grad():
        yield module, twin, torch.randn(3, 7, DIM)


def assert_runs(module, x, expected, times, exact=False):
    """The module's result, and how many of its MLPs ran through Ingot."""
    with counted() as calls, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        value = module(x)
    assert len(calls) == times
    assert torch.equal(value, expected) if exact else torch.allclose(value, expected, atol=2e-2 if x.dtype != torch.float32 else 1e-5)


FORMULAS = {
    "relu": F.relu,
    "gelu_erf": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "identity": lambda x: x,
}


def by_operators(x, up, down, up_bias=None, down_bias=None, gate=None, gate_bias=None, activation="gelu_tanh"):
    """The definition, by PyTorch's operators, in the dtype of the tensors."""
    hidden = F.linear(x, up, up_bias)
    act = FORMULAS[activation]
    hidden = act(hidden) if gate is None else act(F.linear(x, gate, gate_bias)) * hidden
    return F.linear(hidden, down, down_bias)


def make_weights(dim, hidden, dtype, gated=False, bias=True):
    """up, down, up_bias, down_bias, gate, gate_bias, as ingot.mlp takes them."""
    def weight(out, width):
        return (torch.randn(out, width) / width**0.5).to(dtype)

    def vector(size):
        return (0.1 * torch.randn(size)).to(dtype) if bias else None

    return dict(up=weight(hidden, dim), down=weight(dim, hidden), up_bias=vector(hidden), down_bias=vector(dim),
                gate=weight(hidden, dim) if gated else None, gate_bias=vector(hidden) if gated else None)


def doubles(weights):
    return {name: None if tensor is None else tensor.double() for name, tensor in weights.items()}
