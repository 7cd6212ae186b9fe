#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ingot cost` as a user runs it. Usage: cost_cli_test.py INGOT TRACES [unittest arguments]"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INGOT = Path(sys.argv.pop(1)).resolve()
TRACES = Path(sys.argv.pop(1)).resolve()
GEGLU = TRACES / "geglu_64x128x768x3072_eager.json.gz"


def ingot(*arguments):
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, timeout=120)


class Cost(unittest.TestCase):
    def document(self, *arguments):
        result = ingot("cost", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "ingot.cost/1")
        return document

    def one_line(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        self.assertRegex(result.stderr.decode(), r"^ingot: [^\n]*\n$")
        for word in words:
            self.assertIn(word, result.stderr.decode())

    def test_a_model(self):
        plan = json.loads(ingot("plan", "--model", "wan2.1-1.3b", "--device", "sm90", "--json").stdout)
        unfused = next(c["forecast_us"] for c in plan["candidates"] if c["rung"] == "unfused")
        cost = self.document("--model", "wan2.1-1.3b", "--steps", "50", "--guidance", "2", "--price", "4", "--gpus", "8")
        calls = 50 * 2 * 30
        self.assertAlmostEqual(cost["before"]["gpu_seconds"], calls * unfused * 1e-6, places=5)
        self.assertAlmostEqual(cost["after"]["gpu_seconds"], calls * plan["chosen"]["forecast_us"] * 1e-6, places=5)
        before = cost["before"]
        self.assertAlmostEqual(before["money_per_thousand"], 1000 * before["gpu_seconds"] / 3600 * 4, places=4)
        self.assertAlmostEqual(before["hours_per_thousand"], before["gpu_hours_per_thousand"] / 8, places=5)
        self.assertTrue(cost["assumptions"])
        text = ingot("cost", "--model", "wan2.1-1.3b").stdout.decode()
        self.assertIn("Assumed", text)
        self.assertIn("no price", text)
        for line in cost["assumptions"][1:]:
            self.assertIn(line, text)

    def test_sizes(self):
        small = self.document("--model", "wan2.1-14b")
        large = self.document("--model", "wan2.1-14b", "--resolution", "720x1280", "--frames", "41")
        self.assertEqual(large["parts"][0]["mlp"]["tokens"], 45 * 80 * 11)
        self.assertEqual(small["frames"], 81)
        self.assertIsNone(small["before"]["money"])

    def test_a_sweep(self):
        costs = self.document("--model", "dit-xl", "--sweep", "--price", "2")["sweep"]
        self.assertEqual([cost["batch"] for cost in costs], list(range(1, 9)))
        self.assertEqual([cost["parts"][0]["mlp"]["tokens"] for cost in costs], [1024 * batch for batch in range(1, 9)])
        self.assertEqual(len(ingot("cost", "--model", "dit-xl", "--sweep").stdout.decode().split("Assumed")[0].strip().splitlines()), 11)

    def test_a_trace(self):
        report = json.loads(ingot("explain", GEGLU, "--json").stdout)
        step, mlp = report["regions"][0], report["mlps"][0]
        cost = self.document("--trace", GEGLU, "--steps", "20")
        step_us = step["gpu_busy_us"] + step["wait_launch_us"] + step["wait_other_us"]
        self.assertAlmostEqual(cost["before"]["gpu_seconds"], 20 * step_us * 1e-6, places=5)
        saved = (mlp["gpu_us_per_call"] - mlp["fused_us_estimate"]) * mlp["calls"] / step["calls"]
        self.assertAlmostEqual(cost["after"]["gpu_seconds"], 20 * (step_us - saved) * 1e-6, places=5)
        waits = self.document("--trace", TRACES / "dit_24x768_n64_20steps_eager.json.gz")
        self.assertEqual(waits["before"], waits["after"])  # bound by launches: nothing is claimed

    def test_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.json"
            file.write_bytes(ingot("bench", "--model", "dit-xl", "--tokens", "8", "--seconds", "0.02", "--json").stdout)
            rungs = json.loads(file.read_text())["rungs"]
            unfused = next(r["time_us"]["median"] for r in rungs if r["name"] == "unfused")
            cost = self.document("--model", "dit-xl", "--measured", file)
            self.assertAlmostEqual(cost["parts"][0]["before_us"], unfused * 1024 / 8, places=1)
            self.assertEqual(cost["parts"][0]["before_from"], "measured unfused")
            file.write_text("{}")
            self.one_line(ingot("cost", "--model", "dit-xl", "--measured", file), 3, "bench")
            self.one_line(ingot("cost", "--model", "dit-xl", "--measured", Path(folder) / "none"), 3, "none")

    def test_usage_errors(self):
        self.one_line(ingot("cost"), 2, "--trace", "--model")
        self.one_line(ingot("cost", "--model", "dit-xl", "--trace", GEGLU), 2, "one of the two")
        self.one_line(ingot("cost", "--model", "wan21-1.3b"), 2, "did you mean 'wan2.1-1.3b'?")
        self.one_line(ingot("cost", "--model", "clip-l"), 2, "clip-l")
        self.one_line(ingot("cost", "--model", "dit-xl", "--resolution", "large"), 2, "480x832")
        self.one_line(ingot("cost", "--model", "dit-xl", "--frames", "0"), 2, "frames")
        self.one_line(ingot("cost", "--model", "dit-xl", "--steps", "0"), 2, "steps")
        self.one_line(ingot("cost", "--model", "dit-xl", "--device", "sm70"), 2, "sm90")
        self.one_line(ingot("cost", "--trace", GEGLU, "--sweep"), 2, "--sweep")
        self.one_line(ingot("cost", "--trace", TRACES / "missing.json"), 3, "missing.json")


if __name__ == "__main__":
    unittest.main()
