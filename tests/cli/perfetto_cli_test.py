#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ingot explain --perfetto`: the trace written anew says the same. Usage: perfetto_cli_test.py INGOT TRACES [unittest arguments]"""
import gzip
import json
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

INGOT = Path(sys.argv.pop(1)).resolve()
TRACES = Path(sys.argv.pop(1)).resolve()
GEGLU = TRACES / "geglu_64x128x768x3072_eager.json.gz"
COPIED = ("cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "gpu_user_annotation", "overhead", "cuda_runtime", "cuda_driver")


def ingot(*arguments):
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, timeout=120)


class Perfetto(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, trace):
        file = self.folder / "perfetto.json"
        result = ingot("explain", trace, "--perfetto", file)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return file

    def explained(self, trace):
        document = json.loads(ingot("explain", "--json", trace).stdout)
        facts = document.pop("trace")
        return document, {key: facts[key] for key in ("device", "span_us", "card")}

    def test_what_is_written_is_explained_as_what_was_read(self):
        for trace in sorted(TRACES.glob("*.json.gz")):
            with self.subTest(trace.name):
                written, facts = self.explained(self.write(trace))
                original, original_facts = self.explained(trace)
                self.assertEqual(facts, original_facts)
                self.assertEqual(written, original)

    def test_events_keep_their_times_names_and_links(self):
        def key(event):
            arguments = event.get("args", {})
            return (event["name"], round(event["ts"] * 1000), round(event.get("dur", 0) * 1000), str(event["pid"]), str(event["tid"]),
                    arguments.get("correlation"), arguments.get("External id"), str(arguments.get("Input Dims")), str(arguments.get("grid")))
        written = json.loads(self.write(GEGLU).read_text())["traceEvents"]
        original = json.loads(gzip.decompress(GEGLU.read_bytes()))["traceEvents"]
        for category in COPIED:
            # The profiler gives its own overhead a process; the reader does not keep it.
            drop = (lambda k: k[:3]) if category == "overhead" else (lambda k: k)
            wanted = Counter(drop(key(e)) for e in original if e.get("cat") == category
                             and (not category.startswith("cuda_") or "correlation" in e.get("args", {})))
            self.assertEqual(Counter(drop(key(e)) for e in written if e.get("cat") == category), wanted, category)

    def test_ingot_s_tracks(self):
        written = json.loads(self.write(GEGLU).read_text())["traceEvents"]
        report = json.loads(ingot("explain", "--json", GEGLU).stdout)
        tracks = {e["tid"]: e["args"]["name"] for e in written if e["ph"] == "M" and e["name"] == "thread_name"}
        by_track = {name: [e for e in written if e.get("cat") == "ingot" and e["tid"] == tid] for tid, name in tracks.items()}
        self.assertEqual([e["name"] for e in by_track["Findings, worst first"]], [f"{i + 1}. {f['title']}" for i, f in enumerate(report["findings"])])
        self.assertEqual([e["name"] for e in by_track["MLPs"]], ["MLP 8192x768->3072 gelu_tanh gated"] * 3)
        kernels = [(e["ts"], e["ts"] + e["dur"]) for e in written if e.get("cat") in ("kernel", "gpu_memset")]
        for mlp in by_track["MLPs"]:
            inside = [k for k in kernels if mlp["ts"] - 1e-4 <= k[0] and k[1] <= mlp["ts"] + mlp["dur"] + 1e-4]
            self.assertEqual(len(inside), 7)  # 5 kernels, 2 memsets
        for idle in by_track["GPU idle"]:
            self.assertFalse(any(start < idle["ts"] + idle["dur"] - 1e-3 and idle["ts"] + 1e-3 < end for start, end in kernels))
        self.assertAlmostEqual(sum(e["dur"] for e in by_track["GPU idle"] if e["ts"] > min(kernels)[0]), report["summary"]["gpu_idle_us"], places=2)
        for name, events in by_track.items():
            if name != "Findings, worst first":
                for before, after in zip(events, events[1:]):
                    self.assertGreaterEqual(after["ts"], before["ts"] + before["dur"] - 1e-3)
        # Every launch that put work on the device has an arrow to it.
        starts = Counter(e["id"] for e in written if e["ph"] == "s")
        ends = [e["id"] for e in written if e["ph"] == "f"]
        self.assertEqual(len(ends), len(kernels))
        self.assertTrue(all(starts[one] == 1 for one in ends))

    def test_what_was_damaged_is_whole(self):
        for data in sorted((Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "trace").iterdir()):
            with self.subTest(data.name):
                file = self.folder / "out.json"
                result = ingot("explain", data, "--perfetto", file)
                if result.returncode == 0:
                    json.loads(file.read_text(encoding="utf-8"))

    def test_a_file_that_cannot_be_written(self):
        result = ingot("explain", GEGLU, "--perfetto", self.folder)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stdout, b"")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
