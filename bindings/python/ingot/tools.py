# SPDX-License-Identifier: Apache-2.0
"""explain, profile and bench: the command line's reports, as objects."""
import json
import os
import tempfile
from pathlib import Path
from typing import Optional, Union

from . import command


class Report:
    """One report of the command: `data` is its JSON document, str() the text for people."""

    def __init__(self, words, accept=(0,)):
        self.data = json.loads(command.run(*words, "--json", accept=accept))
        self._words = words
        self._accept = accept
        self._text = None

    def read_text(self):
        if self._text is None:
            self._text = command.run(*self._words, accept=self._accept).rstrip("\n")
        return self._text

    def __str__(self):
        return self.read_text()

    def __repr__(self):
        return f"<ingot {type(self).__name__}: {self.data['schema']}>"


class Explanation(Report):
    """What a trace shows. `data` has the keys of schema ingot.explain/1; the lists of it people ask for most are attributes."""

    @property
    def mlps(self) -> list:
        return self.data["mlps"]

    @property
    def findings(self) -> list:
        return self.data["findings"]

    @property
    def kernels(self) -> list:
        return self.data["kernels"]

    @property
    def verdict(self) -> str:
        return self.data["summary"]["verdict"]


class Ladder(Report):
    """An MLP run every way there is. `data` has the keys of schema ingot.bench/1."""

    def __init__(self, words):
        super().__init__(words, accept=(0, 5))

    @property
    def ok(self) -> bool:
        """Whether every way's result is within its bound."""
        return all(rung["ok"] for rung in self.data["rungs"])

    @property
    def rungs(self) -> dict:
        """Median microseconds by rung; None where the result was wrong, so that it was not timed."""
        return {rung["name"]: rung["time_us"] and rung["time_us"]["median"] for rung in self.data["rungs"]}

    def read_text(self):
        # The command's own text would be of a second measurement.
        lines = [f"{'rung':12s} {'us':>10s} {'launches':>8s}  {'error':>8s}"]
        for rung in self.data["rungs"]:
            time = f"{rung['time_us']['median']:10.1f}" if rung["time_us"] else f"{'-':>10s}"
            error = "-" if rung["error"] is None else f"{rung['error']:.1e}"
            lines.append(f"{rung['name']:12s} {time} {rung['launches']:8d}  {error:>8s}{'' if rung['ok'] else '  WRONG'}")
        return "\n".join(lines)


def explain(trace, expect: Optional[str] = None) -> Explanation:
    """Reads a trace: a path (.json, .json.gz), or a torch.profiler.profile that has ended.

    expect: kernels of a region as `ingot explain --expect` takes them; whether it was met is data["expectation"]["met"].
    Raises command.CommandError for a file that cannot be read.
    """
    extra = [] if expect is None else ["--expect", expect]
    accept = (0,) if expect is None else (0, 5)
    if isinstance(trace, (str, os.PathLike)):
        return Explanation(["explain", os.fspath(trace), *extra], accept)
    if not hasattr(trace, "export_chrome_trace"):
        raise TypeError(f"trace: {type(trace).__name__} is neither a path nor a profiler")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "trace.json")
        trace.export_chrome_trace(path)
        explanation = Explanation(["explain", path, *extra], accept)
        explanation.read_text()  # the file goes
    return explanation


class profile:
    """Profiles what runs inside, with the switches that explain() wants.

        with ingot.profile() as p:
            step()
        print(p.explanation)

    path: where to keep the trace, too; a name in .gz is compressed. `profiler` is PyTorch's own object.
    """

    def __init__(self, path: Optional[Union[str, os.PathLike]] = None):
        self.path = path
        self.profiler = None
        self.explanation: Optional[Explanation] = None

    def __enter__(self):
        import torch
        from torch.profiler import ProfilerActivity, profile as torch_profile

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        # Shapes are what tells an MLP's widths; stacks and memory events would only make the trace large.
        self.profiler = torch_profile(activities=activities, record_shapes=True)
        self.profiler.__enter__()
        return self

    def __exit__(self, kind, value, traceback):
        import torch

        if kind is None and torch.cuda.is_available():
            torch.cuda.synchronize()
        self.profiler.__exit__(kind, value, traceback)
        if kind is None:
            if self.path is None:
                self.explanation = explain(self.profiler)
            else:
                self.profiler.export_chrome_trace(os.fspath(self.path))
                self.explanation = explain(self.path)
        return False

    def __str__(self):
        return "nothing profiled yet" if self.explanation is None else str(self.explanation)


_DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def bench(
    model: Optional[str] = None,
    *,
    tokens: Optional[int] = None,
    dim: Optional[int] = None,
    hidden: Optional[int] = None,
    activation: str = "gelu_tanh",
    gated: bool = False,
    bias: bool = True,
    dtype=None,
    numerics: str = "match",
    device: str = "cpu",
    options: tuple = (),
) -> Ladder:
    """Runs one MLP every way there is on this machine, each checked against float64 before it is timed.

    model: a name of `ingot models`, or give dim and hidden. dtype: a torch.dtype or its name. device: "cpu", "cuda", "cuda:1".
    options: further words of `ingot bench`, such as ("--seconds", "0.5"). Raises command.CommandError for a shape that is not
    accepted or a device that is not here.
    """
    words = ["bench", "--device", str(device), "--numerics", numerics]
    if model is not None:
        words += ["--model", model]
    else:
        if tokens is None or dim is None or hidden is None:
            raise ValueError("give a model, or tokens, dim and hidden")
        words += ["--dim", dim, "--hidden", hidden, "--act", activation]
        words += ["--gated"] * gated + ["--no-bias"] * (not bias)
    if tokens is not None:
        words += ["--tokens", tokens]
    if dtype is not None:
        name = str(dtype).removeprefix("torch.")
        words += ["--dtype", _DTYPES.get(name, name)]
    return Ladder([*words, *options])
