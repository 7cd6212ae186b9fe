#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `ingot cache` as a user would. Usage: cache_cli_test.py INGOT [unittest arguments]"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INGOT = Path(sys.argv.pop(1))
SHAPE = ["--dim", "64", "--hidden", "192", "--dtype", "bf16", "--device", "sm90"]


def ingot(*arguments, **variables):
    environment = {k: v for k, v in dict(os.environ, **variables).items() if v is not None}
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, timeout=240, env=environment)


def has_compiler():
    result = ingot("doctor", "--json")
    return json.loads(result.stdout)["gpu"]["device_compiler"] is not None


class CacheCli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name, "cache")

    def cache_of(self, *arguments, code=0):
        result = ingot("cache", *arguments, INGOT_CACHE=str(self.cache))
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result

    def document(self, *arguments):
        document = json.loads(self.cache_of(*arguments, "--json").stdout)
        self.assertEqual(document["schema"], "ingot.cache/1")
        self.assertEqual(document["folder"], str(self.cache / "kernels"))
        return document

    def one_line(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])

    def test_an_empty_cache(self):
        self.assertEqual(self.document("list")["kernels"], [])
        self.assertIn(b"0 kernels", self.cache_of("list").stdout)
        self.assertEqual(self.document("clear")["removed"], {"kernels": 0, "bytes": 0})
        self.assertFalse(self.cache.exists(), "looking makes no folder")

    def test_warm_list_clear(self):
        if not has_compiler():
            self.skipTest("no NVRTC")
        first = self.document("warm", *SHAPE, "--tokens", "16,5000")
        names = [k["name"] for k in first["kernels"]]
        self.assertGreaterEqual(len(names), 1)
        self.assertEqual(names, sorted(names))
        self.assertTrue(all(k["compiled"] and k["target"] == "sm_90a" for k in first["kernels"]))
        self.assertTrue(any("gelu_tanh_64to192" in n for n in names))
        again = self.document("warm", *SHAPE, "--tokens", "16,5000")
        self.assertEqual([k["name"] for k in again["kernels"]], names)
        self.assertFalse(any(k["compiled"] for k in again["kernels"]))
        self.assertIn(b"was there", self.cache_of("warm", *SHAPE, "--tokens", "16").stdout)

        listed = self.document("list")
        self.assertEqual([k["name"] for k in listed["kernels"]], names)
        files = list((self.cache / "kernels").iterdir())
        self.assertEqual(sorted(f.name for f in files),
                         sorted(k["key"] + s for k in listed["kernels"] for s in (".cu", ".cubin")))
        self.assertEqual(listed["bytes"], sum(f.stat().st_size for f in files))
        for kernel in listed["kernels"]:
            self.assertTrue(kernel["compiler"].startswith("NVRTC "))
            self.assertGreater(kernel["registers"], 0)
            self.assertEqual(kernel["local_bytes"], 0)
            self.assertRegex(kernel["last_used"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertFalse(kernel["damaged"])

        damaged = self.cache / "kernels" / (listed["kernels"][0]["key"] + ".cubin")
        damaged.write_bytes(damaged.read_bytes()[:-1])
        self.assertEqual(sum(k["damaged"] for k in self.document("list")["kernels"]), 1)
        self.assertIn(b"not usable", self.cache_of("list").stdout)
        rebuilt = self.document("warm", *SHAPE, "--tokens", "16,5000")
        self.assertEqual([k["name"] for k in rebuilt["kernels"] if k["compiled"]], names[:1])

        self.assertEqual(self.document("clear")["removed"]["kernels"], len(names))
        self.assertEqual(list((self.cache / "kernels").iterdir()), [])

    def test_errors(self):
        self.one_line(self.cache_of(code=2), 2, "subcommand")
        self.one_line(self.cache_of("warm", *SHAPE[:-1], "cpu", code=2), 2, "--device", "GPU")
        self.one_line(self.cache_of("warm", "--device", "sm90", code=2), 2, "--dim", "--model")
        self.one_line(self.cache_of("warm", *SHAPE[:-1], "sm75", code=2), 2, "sm75", "sm80")
        self.one_line(self.cache_of("warm", *SHAPE, "--tokens", "16,0", code=2), 2, "tokens: 0 is not accepted")
        self.one_line(self.cache_of("warm", *SHAPE, "--threads", "-1", code=2), 2, "threads")
        self.one_line(self.cache_of("warm", *SHAPE, "--tune", code=2), 2, "--tokens")
        self.one_line(self.cache_of("warm", *SHAPE, "--tune", "--tokens", "16", code=2), 2, "can be planned for")
        nowhere = dict(INGOT_CACHE=None, XDG_CACHE_HOME=None, HOME=None)
        for what in (["list"], ["clear"], ["warm", *SHAPE]):
            self.one_line(ingot("cache", *what, **nowhere), 4, "INGOT_CACHE")
        self.one_line(ingot("cache", "warm", *SHAPE, INGOT_CACHE=str(self.cache), INGOT_NVRTC="/nowhere/libnvrtc.so"), 4,
                      "INGOT_NVRTC", "/nowhere/libnvrtc.so", "pip install nvidia-cuda-nvrtc")

    def test_a_cache_that_cannot_be_written(self):
        if not has_compiler():
            self.skipTest("no NVRTC")
        with tempfile.NamedTemporaryFile() as file:
            result = ingot("cache", "warm", *SHAPE, "--tokens", "16", INGOT_CACHE=file.name)
            self.one_line(result, 3, "cannot write", file.name)


if __name__ == "__main__":
    unittest.main()
