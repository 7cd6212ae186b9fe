#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages as files: what is in them, and that nothing breaks them. Usage: page_data_test.py INGOT TRACES [unittest arguments]"""
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from page_file import data_of, hostile_trace, lanes_of, trace_events

INGOT = Path(sys.argv.pop(1)).resolve()
TRACES = Path(sys.argv.pop(1)).resolve()
ASSETS = Path(__file__).resolve().parents[2] / "src" / "page" / "assets"
GEGLU = TRACES / "geglu_64x128x768x3072_eager.json.gz"
COMPILED = TRACES / "geglu_64x128x768x3072_compile.json.gz"
LARGE = TRACES / "dit_24x768_n64_20steps_eager.json.gz"
DEVICE_WORK = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
LIMIT = 5_000_000


def ingot(*arguments, **more):
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, timeout=120, **more)


def same_but_cut(shown, full):
    """Whether a page's value is the report's, with long names cut."""
    if isinstance(full, dict):
        return shown.keys() == full.keys() and all(same_but_cut(shown[key], full[key]) for key in full)
    if isinstance(full, list):
        return len(shown) == len(full) and all(map(same_but_cut, shown, full))
    if isinstance(full, str) and len(full.encode()) > 240:
        return shown.endswith("…") and len(shown.encode()) in range(230, 241) and full.startswith(shown[:-1])
    return shown == full


def nanoseconds(value):
    return round(value * 1000)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def page(self, *arguments):
        file = self.folder / "page.html"
        result = ingot(*arguments, "--html", file)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        page = file.read_bytes()
        self.assertLessEqual(len(page), LIMIT)
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.suffix == ".part"], [])
        return page

    def test_the_tables_are_the_json_report_and_stdout_stays_as_it_is(self):
        data = data_of(self.page("explain", GEGLU))
        self.assertTrue(same_but_cut(data["traces"][0]["explain"], json.loads(ingot("explain", "--json", GEGLU).stdout)))
        self.assertEqual(data["traces"][0]["left_out"], [])
        data = data_of(self.page("diff", GEGLU, COMPILED))
        self.assertTrue(same_but_cut(data["diff"], json.loads(ingot("diff", "--json", GEGLU, COMPILED).stdout)))
        self.assertTrue(same_but_cut(data["traces"][1]["explain"], json.loads(ingot("explain", "--json", COMPILED).stdout)))
        file = self.folder / "other.html"
        self.assertEqual(ingot("explain", GEGLU, "--html", file).stdout, ingot("explain", GEGLU).stdout)
        both = ingot("bench", "--tokens", "8", "--dim", "8", "--hidden", "16", "--seconds", "0.01", "--json", "--html", file)
        self.assertEqual(data_of(file.read_bytes())["bench"]["ladders"][0]["rungs"], json.loads(both.stdout)["rungs"])

    def check_timeline(self, path):
        """Every event of the trace file stands in the timeline at its time, linked as its correlation says."""
        timeline = data_of(self.page("explain", path))["traces"][0]["timeline"]
        events = [event for event in trace_events(path) if event.get("ph") == "X"]
        kept = [e for e in events if e.get("cat") in ("cpu_op", "user_annotation", *DEVICE_WORK)
                or (e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {}))]
        first = min(nanoseconds(e["ts"]) for e in events if e.get("cat") not in ("Trace", None))
        lanes = lanes_of(timeline)
        names = timeline["names"]
        drawn = sorted((e["start"], e["dur"], names[e["name"]]) for lane in lanes if not lane["device"] for e in lane["events"])
        wanted = sorted((nanoseconds(e["ts"]) - first, nanoseconds(e["dur"]), e["name"]) for e in kept if e["cat"] not in DEVICE_WORK)
        self.assertEqual(drawn, wanted)

        calls = {e["args"]["correlation"]: (nanoseconds(e["ts"]) - first, e["name"]) for e in kept if e["cat"].startswith("cuda_")}
        wanted = sorted((nanoseconds(e["ts"]) - first, nanoseconds(e["dur"]), DEVICE_WORK[e["cat"]],
                         calls.get(e["args"]["correlation"])) for e in kept if e["cat"] in DEVICE_WORK)
        drawn = []
        for lane in lanes:
            if not lane["device"] or lane["label"] == "GPU idle":
                continue
            for e in lane["events"]:
                caller = lanes[e["lane"]]["events"][e["call"]] if e["lane"] >= 0 else None
                drawn.append((e["start"], e["dur"], e["kind"], caller and (caller["start"], names[caller["name"]])))
        self.assertEqual(sorted(drawn), wanted)
        return timeline, lanes

    def test_the_timeline_is_the_trace(self):
        for name in ("geglu_64x128x768x3072_eager", "dit_8x1152_b2_n256_cudagraph", "relu_mlp_1024x256x1024_compile"):
            with self.subTest(name):
                self.check_timeline(TRACES / f"{name}.json.gz")

    def test_rows_hold_no_two_events_at_once_and_nest(self):
        _, lanes = self.check_timeline(GEGLU)
        for lane in lanes:
            for row in range(lane["rows"]):
                row_events = [e for e in lane["events"] if e["row"] == row]
                for before, after in zip(row_events, row_events[1:]):
                    self.assertGreaterEqual(after["start"], before["start"] + before["dur"])

    def test_idle_time_is_what_no_activity_covers(self):
        _, lanes = self.check_timeline(GEGLU)
        busy, idle = [], []
        for lane in lanes:
            if lane["device"]:
                (idle if lane["label"] == "GPU idle" else busy).extend((e["start"], e["start"] + e["dur"]) for e in lane["events"])
        operators = [e["start"] for lane in lanes if not lane["device"] for e in lane["events"] if e["kind"].endswith("op")]
        end, gaps = min(operators), 0
        for start, stop in sorted(busy):
            gaps += max(0, start - end)
            end = max(end, stop)
        self.assertGreater(gaps, 0)
        self.assertEqual(sum(stop - start for start, stop in idle), gaps)
        for start, stop in idle:
            self.assertFalse(any(start < other_stop and other_start < stop for other_start, other_stop in busy))

    def test_mlps_hold_their_kernels(self):
        timeline, lanes = self.check_timeline(GEGLU)
        self.assertEqual(len(timeline["mlps"]), 3)
        for number, (row, lane, cpu_start, cpu_end, device_lane, start, end) in enumerate(timeline["mlps"]):
            self.assertEqual(row, 0)
            own = [e for e in lanes[device_lane]["events"] if e["mlp"] == number]
            self.assertEqual(len([e for e in own if e["kind"] == "kernel"]), 5)
            self.assertEqual((start, end), (min(e["start"] for e in own), max(e["start"] + e["dur"] for e in own)))
            for e in own:
                call = lanes[e["lane"]]["events"][e["call"]]
                self.assertTrue(cpu_start <= call["start"] and call["start"] + call["dur"] <= cpu_end)
            # The operators aten::linear, gelu and mul that made the launches are inside as well.
            inside = [timeline["names"][e["name"]] for e in lanes[lane]["events"] if e["kind"] == "op"
                      and cpu_start <= e["start"] and e["start"] + e["dur"] <= cpu_end]
            self.assertEqual((inside.count("aten::linear"), inside.count("aten::gelu"), inside.count("aten::mul")), (3, 1, 1))

    def test_steps_are_the_profiler_s(self):
        timeline = data_of(self.page("explain", LARGE))["traces"][0]["timeline"]
        self.assertEqual([name for name, *_ in timeline["steps"]], [f"ProfilerStep#{n}" for n in range(2, 22)])
        self.assertTrue(all(kept for *_, kept in timeline["steps"]))

    def test_a_step_without_device_work_is_not_typical(self):
        events = []
        for step, (length, works) in enumerate([(100, False), (120, False), (150, False), (400, True), (600, True), (700, True)]):
            ts = 1000 * (step + 1)
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": ts, "dur": length})
            if works:
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 10, "dur": 5,
                               "args": {"correlation": step + 1}})
                events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts + 30, "dur": 40,
                               "args": {"correlation": step + 1, "device": 0, "stream": 7}})
        trace = self.folder / "trace.json"
        trace.write_text(json.dumps({"traceEvents": events}))
        timeline = data_of(self.page("explain", trace))["traces"][0]["timeline"]
        self.assertEqual(timeline["steps"][timeline["typical"]][0], "ProfilerStep#4")

    def test_too_many_events_leave_whole_steps_out_and_say_so(self):
        events, ts = [], 0
        for step in range(9):
            length = 40_000 if step == 6 else 30_000 + step
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": ts, "dur": length})
            events += [{"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 7}", "pid": 1, "tid": 1, "ts": ts + 1 + i, "dur": 0.5}
                       for i in range(29_000)]
            ts += length + 10
        trace = self.folder / "trace.json"
        trace.write_text(json.dumps({"traceEvents": events}))
        trace_page = data_of(self.page("explain", trace))["traces"][0]
        kept = [name for name, _, _, is_kept in trace_page["timeline"]["steps"] if is_kept]
        self.assertEqual(len(kept), 5)  # 5 x 29,000 are below the limit of 150,000, 6 are not
        self.assertIn("ProfilerStep#4", kept)  # of median length: 30,000 to 30,003, then 30,004
        self.assertIn("ProfilerStep#6", kept)  # the longest
        self.assertEqual(len(trace_page["left_out"]), 1)
        self.assertIn("116000 events of the timeline: 5 of 9 steps are drawn", trace_page["left_out"][0])
        operators = sum(e["kind"] == "quiet_op" for lane in lanes_of(trace_page["timeline"]) for e in lane["events"])
        self.assertEqual(operators, 5 * 29_000)

    def test_one_step_too_large_loses_its_shortest_events(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::op", "pid": 1, "tid": 1, "ts": 2 * i, "dur": 0.5 + (i % 3) * 0.25} for i in range(240_000)]
        trace = self.folder / "trace.json"
        trace.write_text(json.dumps({"traceEvents": events}))
        trace_page = data_of(self.page("explain", trace))["traces"][0]
        lengths = [e["dur"] for lane in lanes_of(trace_page["timeline"]) for e in lane["events"]]
        self.assertEqual((len(lengths), min(lengths)), (80_000, 1000))  # a third is 1 us long, the rest must go to come below 150,000
        self.assertIn("160000 events of the timeline shorter than", trace_page["left_out"][0])

    def test_hostile_names_stay_data(self):
        trace = self.folder / "hostile.json"
        names = hostile_trace(trace)
        page = self.page("explain", trace)
        self.assertLess(len(page), 400_000)
        self.assertEqual(page.count(b"<script"), 2)
        self.assertEqual(page.count(b"</script>"), 2)
        self.assertNotIn(b"<img", page)
        data = data_of(page)["traces"][0]
        self.assertEqual(data["timeline"]["names"][0], names[0])
        longest = next(name for name in data["timeline"]["names"] if name.startswith("yyy"))
        self.assertTrue(longest.endswith("y…") and len(longest) < 300, longest[-20:])
        self.assertEqual(data["explain"]["trace"]["skipped_events"], 4)
        grins = next(name for name in data["timeline"]["names"] if name.startswith("\U0001f600"))
        self.assertEqual(set(grins), {"\U0001f600", "…"})  # cut between characters
        self.assertTrue(all(len(kernel["name"]) < 300 for kernel in data["explain"]["kernels"]))
        title = re.search(rb"<title>(.*?)</title>", page, re.S)[1]
        self.assertIn(b"hostile.json", title)
        odd = self.folder / "<b>&\x07.json"
        odd.write_bytes(trace.read_bytes())
        title = re.search(rb"<title>(.*?)</title>", self.page("explain", odd), re.S)[1]
        self.assertIn(b"&lt;b>&amp; .json", title)

    def test_traces_of_nothing(self):
        for text in ('{"traceEvents": []}', "[]"):
            trace = self.folder / "empty.json"
            trace.write_text(text)
            data = data_of(self.page("explain", trace))
            self.assertEqual(data["traces"][0]["timeline"]["lanes"], [])
        data_of(self.page("diff", trace, GEGLU))

    def test_nothing_is_loaded_from_a_network(self):
        page = self.page("explain", GEGLU).decode()
        shell = page[:page.index('id="data"')] + page[page.index("</script>"):]
        self.assertIn("default-src 'none'", shell)
        self.assertEqual(re.findall(r"""(?:src|href)=["'](?!data:)""", shell), [])
        self.assertNotIn("@import", shell)
        self.assertEqual([url for url in re.findall(r"https?://[^'\"]*", shell) if url != "http://www.w3.org/2000/svg"], [])

    def fails_to_write(self, file, **more):
        before = sorted(self.folder.rglob("*"))
        result = ingot("explain", GEGLU, "--html", file, **more)
        self.assertEqual(result.returncode, 3, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        self.assertRegex(result.stderr.decode(), r"^ingot: cannot write [^\n]*\n$")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_a_file_that_cannot_be_written(self):
        (self.folder / "file").write_text("old")
        self.fails_to_write(self.folder / "file" / "page.html")
        (self.folder / "folder" / "full").mkdir(parents=True)
        self.fails_to_write(self.folder / "folder")

    def test_a_full_disk_leaves_the_old_page(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        page = self.folder / "page.html"
        page.write_text("old")
        self.fails_to_write(page, preexec_fn=small_files)
        self.assertEqual(page.read_text(), "old")

    def test_devices(self):
        self.fails_to_write("/dev/full")
        result = ingot("explain", GEGLU, "--html", "/dev/stdout")
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertEqual(data_of(result.stdout)["page"], "explain")

    def test_a_page_in_this_folder(self):
        result = ingot("explain", GEGLU, "--html", "page.html", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertTrue((self.folder / "page.html").exists())


def channels(colour):
    return [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]


def linear(value):
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def lightness(colour):
    """Relative luminance (WCAG)."""
    return sum(weight * linear(c) for weight, c in zip((0.2126, 0.7152, 0.0722), channels(colour)))


def contrast(a, b):
    low, high = sorted((lightness(a), lightness(b)))
    return (high + 0.05) / (low + 0.05)


# Linear RGB as dichromats see it (Vienot, Brettel, Mollon 1999, for sRGB primaries).
DICHROMATS = {"protanopia": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
              "deuteranopia": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1))}


def lab(rgb):
    """CIE L*a*b* (D65) of linear RGB."""
    xyz = [sum(row[i] * rgb[i] for i in range(3)) for row in ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))]
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (max(0, v) / w for v, w in zip(xyz, (0.9505, 1, 1.089)))]
    return (116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]))


class Colours(unittest.TestCase):
    """The style sheet's colours, light and dark."""
    WORK = ("gemm", "attention", "pointwise", "norm", "copy")  # what nearly every step is made of, side by side

    def palettes(self):
        css = (ASSETS / "page.css").read_text(encoding="utf-8")
        blocks = re.findall(r":root[^{]*\{(.*?)\}", css, re.S)[:2]
        light, dark = ({name: value for name, value in re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})\b", block)} for block in blocks)
        return {"light": light, "dark": light | dark}

    def test_kinds_of_work_stay_apart_for_dichromats(self):
        for scheme, colours in self.palettes().items():
            for kind, matrix in DICHROMATS.items():
                seen = {}
                for name in self.WORK:
                    rgb = [linear(c) for c in channels(colours[name])]
                    seen[name] = lab([sum(row[i] * rgb[i] for i in range(3)) for row in matrix])
                for i, a in enumerate(self.WORK):
                    for b in self.WORK[i + 1:]:
                        distance = sum((x - y) ** 2 for x, y in zip(seen[a], seen[b])) ** 0.5
                        self.assertGreater(distance, 15, f"{scheme}, {kind}: {a} and {b}")

    def test_text_has_contrast(self):
        for scheme, colours in self.palettes().items():
            for text, ground in (("ink", "card"), ("ink", "paper"), ("soft", "card"), ("soft", "paper"), ("soft", "wash"), ("good", "card"), ("bad", "card"),
                                 ("mlp", "card"), ("accent", "card")):
                self.assertGreaterEqual(contrast(colours[text], colours[ground]), 4.5, f"{scheme}: {text} on {ground}")
            for ground in ("gemm", "attention", "convolution", "pointwise", "norm", "reduction", "copy", "communication", "other", "region", "op",
                           "quiet_op", "call", "gemm_helper"):
                best = max(contrast(colours["on-dark"], colours[ground]), contrast(colours["on-light"], colours[ground]))
                self.assertGreaterEqual(best, 4.5, f"{scheme}: a name on {ground}")


if __name__ == "__main__":
    unittest.main()
