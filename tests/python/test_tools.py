# SPDX-License-Identifier: Apache-2.0
"""explain, profile, bench, the command line, and how the package loads."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import ingot
from ingot import command

TRACES = Path(__file__).resolve().parents[2] / "examples" / "traces"
EAGER = TRACES / "geglu_64x128x768x3072_eager.json.gz"


def python(*words, **more):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **more)


def test_explain_a_file():
    explanation = ingot.explain(EAGER)
    assert explanation.data["schema"] == "ingot.explain/1" and explanation.verdict == "compute-bound"
    [mlp] = explanation.mlps
    assert (mlp["tokens"], mlp["dim"], mlp["hidden"], mlp["gated"]) == (8192, 768, 3072, True)
    assert explanation.findings and explanation.kernels
    assert "geglu_64x128x768x3072_eager.json.gz: 243 events" in str(explanation).splitlines()[0]


def test_explain_with_an_expectation():
    assert ingot.explain(EAGER, expect="3 linear, 1 gelu_tanh, 1 mul").data["expectation"]["met"] is True
    assert ingot.explain(EAGER, expect="2 linear").data["expectation"]["met"] is False


def test_explain_what_cannot_be_read(tmp_path):
    with pytest.raises(command.CommandError, match="none.json") as error:
        ingot.explain(tmp_path / "none.json")
    assert error.value.code == 3
    with pytest.raises(TypeError, match="neither a path nor a profiler"):
        ingot.explain(3)


def test_profile(tmp_path):
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    with torch.no_grad(), ingot.profile(tmp_path / "trace.json.gz") as profiled:
        model(torch.randn(5, 32))
    assert (tmp_path / "trace.json.gz").exists()
    assert profiled.explanation.data["trace"]["events"] > 0 and str(profiled) == str(profiled.explanation)
    with torch.no_grad(), ingot.profile() as profiled:
        model(torch.randn(5, 32))
    assert "0 kernels" in str(profiled)


def test_explain_a_profiler():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(3) + 1
    explanation = ingot.explain(profiler)
    assert explanation.data["summary"]["kernels"] == 0 and "0 kernels" in str(explanation)


def test_profile_lets_errors_through():
    with pytest.raises(KeyError), ingot.profile() as profiled:
        raise KeyError("mine")
    assert profiled.explanation is None


def test_bench():
    ladder = ingot.bench(tokens=16, dim=32, hidden=64, activation="silu", gated=True, bias=False, dtype=torch.float32,
                         options=("--seconds", "0.01", "--samples", "3", "--threads", "1"))
    assert ladder.data["schema"] == "ingot.bench/1" and ladder.ok
    assert ladder.rungs["unfused"] > 0 and ladder.data["mlp"]["gated"] is True
    assert "unfused" in str(ladder)
    with pytest.raises(ValueError, match="tokens, dim and hidden"):
        ingot.bench(dim=32)
    with pytest.raises(command.CommandError) as error:
        ingot.bench("no-such-model")
    assert error.value.code == 2


def test_command_line():
    ours = python("-m", "ingot", "models", "--json")
    assert ours.returncode == 0 and json.loads(ours.stdout)["schema"] == "ingot.models/1"
    assert python("-m", "ingot", "doctor").returncode == 0
    wrong = python("-m", "ingot", "explain", "/nowhere")
    assert wrong.returncode == 3 and wrong.stderr.startswith("ingot: ")
    assert "ingot " + ingot.__version__ in python("-m", "ingot", "--version").stdout


def test_the_command_line_starts_without_pytorch():
    script = "import sys, ingot.command; print('torch' in sys.modules)"
    assert python("-c", script).stdout.strip() == "False"


def test_import_is_quick_and_lazy():
    script = ("import torch, time; t = time.perf_counter(); import ingot; print(time.perf_counter() - t); "
              "import sys; print(sorted(m for m in sys.modules if m in ('diffusers', 'transformers', 'peft')))")
    seconds, others = python("-c", script).stdout.split("\n")[:2]
    assert others == "[]"
    assert float(seconds) < 1  # 0.15 on a quiet machine


def test_the_operators_library_names_no_cuda_and_shows_nothing():
    library = Path(ingot.__file__).parent / "libingot_torch.so"
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "libtorch_cpu.so" in needed
    assert not [word for word in ("cuda", "cublas", "nvrtc", "libtorch_python", "libc10", "libpython") if word in needed]
    shown = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert "ingot" not in shown.replace("libingot", "")


def test_fusing_a_large_model_is_quick():
    import time

    with torch.device("meta"):
        block = lambda: nn.ModuleDict({"mlp": nn.Sequential(nn.Linear(5120, 13824), nn.GELU(), nn.Linear(13824, 5120)),
                                       "rest": nn.ModuleList([nn.Linear(8, 8) for _ in range(10)])})
        model = nn.ModuleList([block() for _ in range(40)])
    start = time.perf_counter()
    assert len(ingot.fuse(model).fused) == 40
    assert time.perf_counter() - start < 1


def test_the_package_needs_no_gpu():
    script = "import torch, ingot; print(ingot.mlp(torch.ones(1, 2), torch.ones(2, 2), torch.ones(2, 2), activation='relu'))"
    result = python("-c", script, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert result.stdout.strip() == "tensor([[4., 4.]])", result.stderr


def test_the_example():
    result = python(str(TRACES.parent / "fuse_diffusers.py"), "--repeats", "1", env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["wan", "ltx", "cogvideox", "svd"]
    assert all(int(row[1]) >= 4 for row in rows)
