#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench, plan, models and doctor as a user would. Usage: engine_cli_test.py INGOT TRACES [unittest arguments]"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INGOT = Path(sys.argv.pop(1))
TRACES = Path(sys.argv.pop(1))
SHAPE = ["--tokens", "50", "--dim", "32", "--hidden", "96"]
QUICK = ["--samples", "2", "--seconds", "0.2"]
CACHE = tempfile.TemporaryDirectory()  # one measurement of the machine for all tests


def ingot(*arguments, cache=CACHE.name):
    environment = dict(os.environ, INGOT_CACHE=str(cache))
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, timeout=240, env=environment)


class EngineCli(unittest.TestCase):
    def check(self, result, code):
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result

    def document(self, *arguments, code=0):
        return json.loads(self.check(ingot(*arguments, "--json"), code).stdout)

    def one_line(self, result, code, *words):
        """Fails with one line on stderr that starts with the command's name, and nothing on stdout."""
        self.check(result, code)
        self.assertEqual(result.stdout, b"")
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("ingot: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_bench_checks_and_times_every_rung(self):
        for dtype in ("f32", "bf16", "f16"):
            for numerics in ("match", "fast"):
                result = self.document("bench", *SHAPE, "--act", "silu", "--gated", "--dtype", dtype, "--numerics",
                                       numerics, *QUICK)
                self.assertEqual(result["schema"], "ingot.bench/1")
                self.assertEqual(result["mlp"], {"activation": "silu", "gated": True, "bias": True, "tokens": 50,
                                                 "dim": 32, "hidden": 96, "dtype": dtype, "layout": "separate"})
                self.assertEqual([r["name"] for r in result["rungs"]],
                                 ["matmul_add", "unfused", "epilogue", "one_pass"])
                self.assertEqual([r["launches"] for r in result["rungs"]], [8, 5, 2, 1])
                for rung in result["rungs"]:
                    self.assertTrue(rung["ok"], rung)
                    self.assertGreater(rung["error"], 0)
                    self.assertLessEqual(rung["error"], rung["error_bound"])
                    times = rung["time_us"]
                    self.assertLessEqual(times["min"], times["median"])
                    self.assertLessEqual(times["median"], times["max"])
                    self.assertGreaterEqual(rung["samples"], 2)
                    self.assertGreater(rung["forecast_us"], 0)
                by_name = {r["name"]: r for r in result["rungs"]}
                self.assertEqual(by_name["unfused"]["speedup"], 1)
                ratio = by_name["unfused"]["time_us"]["median"] / by_name["one_pass"]["time_us"]["median"]
                self.assertAlmostEqual(by_name["one_pass"]["speedup"] / ratio, 1, places=2)
                self.assertEqual(sum(r["chosen"] for r in result["rungs"]), 1)
                self.assertEqual(result["floor"]["flops"], 6 * 50 * 32 * 96)

    def test_bench_text(self):
        out = self.check(ingot("bench", *SHAPE, "--rungs", "one_pass,unfused", "--threads", "1", *QUICK), 0)
        self.assertEqual(out.stderr, b"")  # no progress bar where there is no terminal
        text = out.stdout.decode()
        self.assertNotIn("\x1b", text)
        self.assertIn("50 tokens of 32 -> 96 gelu_tanh, bias, f32", text)
        self.assertIn("1 thread,", text)
        self.assertIn("one_pass", text)
        self.assertNotIn("matmul_add", text)
        self.assertNotIn("FAILED", text)

    def test_bench_of_a_trace(self):
        result = self.document("bench", "--from-trace", TRACES / "relu_mlp_1024x256x1024_eager.json.gz", *QUICK)
        self.assertEqual(len(result["ladders"]), 1)
        mlp = result["ladders"][0]["mlp"]
        self.assertEqual((mlp["tokens"], mlp["dim"], mlp["hidden"], mlp["activation"]), (1024, 256, 1024, "relu"))
        self.assertTrue(all(r["ok"] for r in result["ladders"][0]["rungs"]))
        packed = self.document("bench", "--from-trace", TRACES / "geglu_packed_28x4608x320x1280_eager.json.gz",
                               "--tokens", "100", *QUICK)
        self.assertEqual(packed["ladders"][0]["mlp"]["layout"], "packed_value_first")
        self.assertEqual(packed["ladders"][0]["mlp"]["tokens"], 100)

    def test_a_trace_without_mlps_or_shapes(self):
        result = ingot("bench", "--from-trace", TRACES / "matmul_add_64_eager.json.gz")
        self.one_line(result, 2, "no MLP to bench")
        self.one_line(ingot("bench", "--from-trace", TRACES / "missing.json"), 3, "missing.json")
        self.one_line(ingot("bench", "--from-trace", TRACES / "matmul_add_64_eager.json.gz", "--dim", "3"), 2,
                      "not both")

    def test_plan(self):
        result = self.document("plan", "--model", "svd-320", "--dtype", "f32", "--tokens", "8192")
        self.assertEqual(result["schema"], "ingot.plan/1")
        self.assertEqual(result["mlp"]["hidden"], 1280)
        self.assertEqual(len(result["candidates"]), 6)
        chosen = result["chosen"]
        self.assertEqual([c["rung"] for c in result["candidates"] if c["rejected"] is None], [chosen["rung"]])
        self.assertEqual(chosen["forecast_us"], min(c["forecast_us"] for c in result["candidates"] if c["forecast_us"]))
        forced = self.document("plan", "--model", "svd-320", "--rung", "unfused")
        self.assertEqual(forced["chosen"]["rung"], "unfused")
        text = self.check(ingot("plan", *SHAPE), 0).stdout.decode()
        self.assertIn("chosen", text)
        self.assertIn("out: slower than the chosen one", text)
        nothing = self.document("plan", "--tokens", "0", "--dim", "8", "--hidden", "8")
        self.assertEqual(nothing["mlp"]["tokens"], 0)

    def test_plan_for_a_gpu_that_is_not_here(self):
        for device in ("sm80", "sm86", "sm89", "sm90", "sm100", "sm120"):
            for dtype in ("f32", "bf16", "f16"):
                result = self.document("plan", "--model", "wan2.1-1.3b", "--dtype", dtype, "--device", device)
                self.assertEqual(result["device"]["kind"], "cuda")
                self.assertEqual(result["device"]["compute_capability"].replace(".", ""), device[2:])
                rungs = {c["rung"]: c for c in result["candidates"]}
                self.assertEqual(rungs["one_pass"]["rejected"], "this kind of device has no such rung")
                self.assertGreater(rungs["two_kernel"]["forecast_us"], 0)
                self.assertEqual(rungs["one_kernel"]["launches"], 1)
                if device != "sm90":
                    self.assertEqual(rungs["one_kernel"]["rejected"],
                                     "no kernel takes the whole MLP (compute capability 9.0 only)")
        kernels = self.document("plan", "--model", "svd-640", "--device", "sm90")["chosen"]
        self.assertEqual(kernels["rung"], "two_kernel")
        self.assertEqual([k["name"] for k in kernels["kernels"]], ["fc1", "fc2"])
        self.assertEqual(kernels["tile"], ", ".join(k["tile"] for k in kernels["kernels"]))
        self.assertEqual(kernels["launches"], 2)
        text = self.check(ingot("plan", "--model", "svd-640", "--device", "sm90"), 0).stdout.decode()
        self.assertIn("on NVIDIA H200", text)
        self.assertIn("fc2", text)
        forced = self.document("plan", "--model", "svd-640", "--device", "sm90", "--rung", "unfused")["chosen"]
        self.assertEqual((forced["rung"], forced["tile"], forced["kernels"]), ("unfused", None, []))
        self.one_line(ingot("plan", *SHAPE, "--device", "sm90", "--rung", "one_pass"), 4, "no such rung")
        self.one_line(ingot("plan", "--model", "wan2.1-14b", "--device", "sm90", "--rung", "one_kernel"), 4,
                      "one_kernel: no kernel takes the whole MLP (narrow: ")
        self.one_line(ingot("plan", *SHAPE, "--device", "sm90a"), 2, "did you mean 'sm90'?")
        self.one_line(ingot("bench", *SHAPE, "--device", "sm90"), 2, "can be planned for")
        self.one_line(ingot("bench", *SHAPE, "--device", "cuda:one"), 2, "cuda:one")

    def test_bench_on_a_gpu_that_is_not_here(self):
        environment = dict(os.environ, INGOT_CACHE=CACHE.name, INGOT_DRIVER="/nowhere/libcuda.so.1")
        for device in ("cuda", "cuda:1"):
            result = subprocess.run([INGOT, "bench", *SHAPE, "--device", device], capture_output=True, timeout=60,
                                    env=environment)
            self.one_line(result, 4, "no NVIDIA driver", "INGOT_DRIVER")
        self.one_line(ingot("bench", *SHAPE, *QUICK, "--tune"), 4, "of a GPU")

    def test_models(self):
        result = self.document("models")
        self.assertEqual(result["schema"], "ingot.models/1")
        wan = next(m for m in result["models"] if m["name"] == "wan2.1-1.3b")
        self.assertEqual((wan["mlp"]["dim"], wan["mlp"]["hidden"]), (1536, 8960))
        self.assertIn(b"wan2.1-1.3b", self.check(ingot("models"), 0).stdout)

    def test_doctor(self):
        result = self.document("doctor")
        self.assertEqual(result["schema"], "ingot.doctor/1")
        self.assertGreaterEqual(result["cpu"]["processors"], 1)
        self.assertRegex(result["gemm"]["library"], r"^oneDNN \d+\.\d+\.\d+$")
        self.assertEqual(result["cache"]["folder"], CACHE.name)
        self.assertTrue(result["cache"]["writable"])
        for part in result["missing"]:
            self.assertTrue(part["command"])
        self.assertIn(b"oneDNN", self.check(ingot("doctor"), 0).stdout)

    def test_usage_errors(self):
        bench = lambda *arguments: ingot("bench", *arguments)
        self.one_line(bench(), 2, "--dim", "--model")
        self.one_line(bench("--dim", "4", "--hidden", "8"), 2, "--tokens")
        self.one_line(bench("--tokens", "1", "--dim", "0", "--hidden", "8"), 2, "dim: 0 is not accepted")
        self.one_line(bench("--tokens", "1", "--dim", "4", "--hidden", "-8"), 2, "hidden: -8 is not accepted")
        self.one_line(bench("--tokens", "-1", "--dim", "4", "--hidden", "8"), 2, "tokens: -1 is not accepted")
        self.one_line(bench("--tokens", "0", "--dim", "4", "--hidden", "8"), 2, "tokens: 0 leaves nothing")
        self.one_line(bench("--tokens", "9" * 18, "--dim", "4", "--hidden", "8"), 2, "2^63 bytes")
        self.one_line(bench("--tokens", "9" * 30, "--dim", "4", "--hidden", "8"), 2, "tokens")
        self.one_line(bench("--tokens", "some", "--dim", "4", "--hidden", "8"), 2, "--tokens")
        self.one_line(bench(*SHAPE, "--act", "gelu_tan"), 2, "did you mean 'gelu_tanh'?")
        self.one_line(bench("--model", "wan21-1.3b"), 2, "did you mean 'wan2.1-1.3b'?")
        self.one_line(bench("--model", "svd-320", "--dim", "4"), 2, "not both")
        self.one_line(bench("--model", "ltx-2-audio"), 2, "--tokens")
        self.one_line(bench(*SHAPE, "--dtype", "fp8"), 2, "unknown dtype 'fp8'", "f32, bf16, f16")
        self.one_line(bench(*SHAPE, "--numerics", "exact"), 2, "match, fast")
        self.one_line(bench(*SHAPE, "--rungs", "one_pas"), 2, "did you mean 'one_pass'?")
        self.one_line(bench(*SHAPE, "--layout", "packed_gate_first"), 2, "gated")
        self.one_line(bench(*SHAPE, "--threads", "-2"), 2, "threads: -2")
        self.one_line(bench(*SHAPE, "--samples", "0"), 2, "--samples")
        self.one_line(bench(*SHAPE, "--device", "tpu"), 2, "device 'tpu'")
        self.one_line(ingot("plan", "--model", "nothing-like-it"), 2, "unknown model")
        self.one_line(ingot("models", "--what"), 2, "--what")

    def test_too_little_memory_is_code_4(self):
        self.one_line(ingot("bench", "--tokens", 10**13, "--dim", "64", "--hidden", "64"), 4, "GiB")

    def test_a_cache_that_cannot_be_written_is_a_warning(self):
        with tempfile.NamedTemporaryFile() as file:
            result = self.check(ingot("plan", *SHAPE, cache=file.name), 0)
            self.assertIn(b"warning", result.stderr)
            self.assertIn(b"chosen", result.stdout)


if __name__ == "__main__":
    unittest.main()
