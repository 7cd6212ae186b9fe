# SPDX-License-Identifier: Apache-2.0
"""The choice between Ingot and the original, with a clock of the test's own."""
import pytest
import torch
from conftest import DIM, counted, feed_forward

import ingot
from ingot import choice

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def clock(monkeypatch):
    """Calls through Ingot take `ours` seconds, all others `original`."""
    state = {"now": 0.0, "ours": 1.0, "original": 1.0, "calls": 0}
    run = choice.Trial.run

    def timed(trial, ours, original):
        def taking(kind, call):
            def go():
                state["now"] += state[kind]
                return call()
            return go
        return run(trial, taking("ours", ours), taking("original", original))

    monkeypatch.setattr(choice, "perf_counter", lambda: state["now"])
    monkeypatch.setattr(choice.Trial, "run", timed)
    ingot.choose_by_measurement(True)
    yield state
    ingot.choose_by_measurement(False)


def calls_through_ingot(module, x, times):
    with counted() as calls:
        for _ in range(times):
            module(x)
    return len(calls)


@pytest.mark.parametrize("ours, stays", [(0.5, 10), (1.0, 10), (1.5, 0)])
def test_the_faster_stays(clock, ours, stays):
    clock["ours"] = ours
    module, x = feed_forward(), torch.randn(6, DIM)
    ingot.fuse(module)
    assert calls_through_ingot(module, x, 2 * choice.SAMPLES) == choice.SAMPLES  # in turn
    assert calls_through_ingot(module, x, 10) == stays


def test_shapes_are_measured_apart(clock):
    module, wide = feed_forward(), feed_forward("geglu")
    ingot.fuse(module), ingot.fuse(wide)
    clock["ours"] = 2.0
    for _ in range(2 * choice.SAMPLES):
        module(torch.randn(6, DIM))
    assert calls_through_ingot(module, torch.randn(7, DIM), 4) == 0  # as 6: up to 8 rows
    assert calls_through_ingot(module, torch.randn(9, DIM), 4) == 2
    assert calls_through_ingot(wide, torch.randn(6, DIM), 4) == 2


def test_results_are_right_all_along(clock):
    module, x = feed_forward(), torch.randn(6, DIM)
    expected = module(x)
    ingot.fuse(module)
    for _ in range(3 * choice.SAMPLES):
        assert torch.allclose(module(x), expected, atol=1e-5)


def test_the_switch():
    assert ingot.choose_by_measurement(True) is False and ingot.choose_by_measurement(False) is True
    module = feed_forward()
    ingot.fuse(module)
    assert calls_through_ingot(module, torch.randn(3, DIM), 12) == 12
