#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ingot command as a user would. Usage: cli_test.py INGOT TRACES [unittest arguments]"""
import gzip
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INGOT = Path(sys.argv.pop(1))
TRACES = Path(sys.argv.pop(1))
GEGLU = TRACES / "geglu_64x128x768x3072_eager.json.gz"
COMPILED = TRACES / "geglu_64x128x768x3072_compile.json.gz"


def ingot(*arguments, stdin=b""):
    return subprocess.run([INGOT, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)


class Cli(unittest.TestCase):
    def check(self, result, code):
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result

    def one_line(self, result, code, *words):
        """Fails with one line on stderr that starts with the command's name, and nothing on stdout."""
        self.check(result, code)
        self.assertEqual(result.stdout, b"")
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("ingot: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_help_and_version(self):
        self.assertIn(b"explain", self.check(ingot("--help"), 0).stdout)
        self.assertIn(b"--expect", self.check(ingot("explain", "--help"), 0).stdout)
        self.assertRegex(self.check(ingot("--version"), 0).stdout, rb"^ingot \d+\.\d+\.\d+\n$")

    def test_usage_errors(self):
        self.one_line(ingot(), 2)
        self.one_line(ingot("explian", GEGLU), 2)
        self.one_line(ingot("explain"), 2, "TRACE")
        self.one_line(ingot("explain", GEGLU, "--nonsense"), 2, "--nonsense")
        self.one_line(ingot("explain", GEGLU, "--expect", "three linear"), 2, "--expect")
        self.one_line(ingot("diff", GEGLU), 2, "AFTER")
        self.one_line(ingot("diff", "-", "-"), 2, "standard input")

    def test_text_has_no_colour_in_a_pipe(self):
        out = self.check(ingot("explain", GEGLU), 0).stdout
        self.assertIn(b"gelu_tanh", out)
        self.assertNotIn(b"\x1b", out)

    def test_json_is_one_document_and_nothing_else(self):
        document = json.loads(self.check(ingot("explain", "--json", GEGLU), 0).stdout)
        self.assertEqual(document["schema"], "ingot.explain/1")
        self.assertEqual(document["mlps"][0]["hidden"], 3072)
        document = json.loads(self.check(ingot("diff", "--json", GEGLU, COMPILED), 0).stdout)
        self.assertEqual(document["schema"], "ingot.diff/1")

    def test_standard_input_plain_and_gzip(self):
        packed = GEGLU.read_bytes()
        for data in (packed, gzip.decompress(packed)):
            document = json.loads(self.check(ingot("explain", "--json", "-", stdin=data), 0).stdout)
            self.assertEqual(document["trace"]["events"], 243)
            self.assertEqual(document["trace"]["file"], "-")

    def test_expectation_decides_the_exit_code(self):
        self.check(ingot("explain", GEGLU, "--expect", "3 linear, 1 gelu_tanh, 1 mul"), 0)
        result = self.check(ingot("explain", GEGLU, "--expect", "2 linear"), 5)
        self.assertIn(b"not met", result.stdout)

    def test_unreadable_input_is_one_line_and_code_3(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "empty.json").write_bytes(b"")
            (folder / "text.json").write_bytes(b"hello, world\n")
            (folder / "other.json").write_bytes(b'{"a": 1}')
            (folder / "garbage.json.gz").write_bytes(b"\x1f\x8b" + bytes(range(256)))
            (folder / "cut.json.gz").write_bytes(GEGLU.read_bytes()[:12])
            for name in ("missing.json", "empty.json", "text.json", "other.json", "garbage.json.gz", "cut.json.gz", "."):
                self.one_line(ingot("explain", folder / name), 3, str(folder))
            self.one_line(ingot("diff", GEGLU, folder / "missing.json"), 3, "missing.json")

    def test_what_stands_before_a_cut_is_reported(self):
        text = gzip.decompress(GEGLU.read_bytes())
        result = self.check(ingot("explain", "--json", "-", stdin=text[: len(text) // 2]), 0)
        document = json.loads(result.stdout)
        self.assertGreater(document["trace"]["events"], 50)
        self.assertTrue(document["trace"]["warnings"])
        self.assertIn("incomplete-trace", [f["id"] for f in document["findings"]])

    def test_a_bad_event_costs_one_event_and_says_where(self):
        text = gzip.decompress(GEGLU.read_bytes())
        at = text.index(b'"name": "aten::gelu"')
        start = text.rindex(b"{\n", 0, at)
        damaged = text[:at] + b'"name": aten::gelu }{' + text[at + 20:]
        document = json.loads(self.check(ingot("explain", "--json", "-", stdin=damaged), 0).stdout)
        self.assertEqual(document["trace"]["skipped_events"], 1)
        self.assertEqual(document["trace"]["first_skipped_offset"], start)

    def test_a_full_disk_is_an_error(self):
        if not Path("/dev/full").exists():
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([INGOT, "explain", GEGLU], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"cannot write", result.stderr)


if __name__ == "__main__":
    unittest.main()
