#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages in a headless Chromium: no error, tables sort, the picture zooms, nothing shifts or is scripted from outside.

Usage: page_test.py INGOT TRACES PICTURES [unittest arguments]. PICTURES is where screenshots are kept. Exits with 77, "skipped",
where there is no Chromium (Debian: chromium-headless-shell).
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from browser import Browser, find_browser
from page_file import data_of, hostile_trace

INGOT = Path(sys.argv.pop(1)).resolve()
TRACES = Path(sys.argv.pop(1)).resolve()
PICTURES = Path(sys.argv.pop(1))
GEGLU = TRACES / "geglu_64x128x768x3072_eager.json.gz"
COMPILED = TRACES / "geglu_64x128x768x3072_compile.json.gz"
LARGE = TRACES / "dit_24x768_n64_20steps_eager.json.gz"
CANVAS = "document.querySelector('.scene canvas')"
RANGE = f"[+{CANVAS}.dataset.from, +{CANVAS}.dataset.to]"


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser(find_browser())
        PICTURES.mkdir(parents=True, exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.resize(1280, 900)

    def make(self, *arguments):
        page = Path(self.folder.name) / "page.html"
        result = subprocess.run([INGOT, *map(str, arguments), "--html", page], capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return page

    def open(self, *arguments):
        page = self.make(*arguments)
        self.browser.open(page)
        self.check_clean(page)
        return page

    def check_clean(self, page):
        self.assertEqual(self.browser.console, [])
        self.assertEqual([url for url in self.browser.events if not url.startswith("data:")], [page.resolve().as_uri()])

    def column(self, label, title):
        """Texts of one column of a table."""
        return self.browser.run(f"""(() => {{
          const table = document.querySelector('table[aria-label="{label}"]');
          const index = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === '{title}');
          return [...table.tBodies[0].rows].map((row) => row.cells[index].textContent);
        }})()""")

    def sort(self, label, title):
        """Presses a head; returns what it then says to be."""
        return self.browser.run(f"""(() => {{
          const table = document.querySelector('table[aria-label="{label}"]');
          const head = [...table.tHead.rows[0].cells].find((cell) => cell.textContent === '{title}');
          head.querySelector('button').click();
          return head.getAttribute('aria-sort');
        }})()""")

    def test_tables_sort(self):
        page = self.open("explain", GEGLU)
        kernels = data_of(page.read_bytes())["traces"][0]["explain"]["kernels"]
        medians = [f"{kernel['median_us']:.1f}" for kernel in kernels]
        self.assertEqual(self.column("Kernels", "median"), medians)
        self.assertEqual(self.sort("Kernels", "median"), "descending")
        self.assertEqual(self.column("Kernels", "median"), sorted(medians, key=float, reverse=True))
        self.assertEqual(self.sort("Kernels", "median"), "ascending")
        self.assertEqual(self.column("Kernels", "median"), sorted(medians, key=float))
        self.assertEqual(self.sort("Kernels", "kernel"), "ascending")
        self.assertEqual(self.column("Kernels", "kernel"), sorted((kernel["short_name"] for kernel in kernels), key=str.lower))
        # What is not known stands last, whichever way is sorted.
        for _ in range(2):
            self.sort("Kernels", "TFLOP/s")
            self.assertEqual(self.column("Kernels", "TFLOP/s")[-3:], ["–"] * 3)

    def test_keys_zoom_and_move(self):
        self.open("explain", GEGLU)
        start, end = self.browser.run(RANGE)
        self.browser.press("w")
        zoomed = self.browser.run(RANGE)
        self.assertAlmostEqual((zoomed[1] - zoomed[0]) / (end - start), 0.7, places=2)
        self.assertAlmostEqual((zoomed[0] + zoomed[1]) / 2, (start + end) / 2, delta=(end - start) / 100)
        self.browser.press("d")
        moved = self.browser.run(RANGE)
        self.assertAlmostEqual(moved[0] - zoomed[0], 0.15 * (zoomed[1] - zoomed[0]), delta=(end - start) / 100)
        self.browser.press("a")
        self.assertAlmostEqual(self.browser.run(RANGE)[0], zoomed[0], delta=(end - start) / 100)
        self.browser.press("s")
        self.assertAlmostEqual(self.browser.run(RANGE)[1], end, delta=(end - start) / 50)
        for _ in range(60):
            self.browser.press("w")
        closest = self.browser.run(RANGE)
        self.assertGreaterEqual(closest[1] - closest[0], 99)  # nanoseconds
        self.browser.press("f")
        self.assertEqual(self.browser.run(RANGE), [start, end])

    def test_wheel_and_drag(self):
        self.open("explain", GEGLU)
        self.browser.run(f"{CANVAS}.scrollIntoView({{block: 'center'}})")
        x, y = self.browser.run(f"(() => {{ const r = {CANVAS}.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; }})()")
        start, end = self.browser.run(RANGE)
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
        self.browser.settle()
        zoomed = self.browser.run(RANGE)
        self.assertLess(zoomed[1] - zoomed[0], 0.8 * (end - start))
        self.browser.mouse("mousePressed", x, y, "left", 1)
        self.browser.mouse("mouseMoved", x - 100, y, "left")
        self.browser.mouse("mouseReleased", x - 100, y, "left", 1)
        self.browser.settle()
        dragged = self.browser.run(RANGE)
        width = self.browser.run(f"{CANVAS}.clientWidth")
        self.assertAlmostEqual(dragged[0] - zoomed[0], 100 / width * (zoomed[1] - zoomed[0]), delta=(end - start) / 100)

    def test_pointing_at_a_kernel_shows_its_facts(self):
        page = self.open("explain", GEGLU)
        self.browser.run(f"{CANVAS}.focus()")
        self.browser.press("ArrowRight")
        facts = self.browser.run("document.querySelector('.facts-box').textContent")
        names = {kernel["short_name"] for kernel in data_of(page.read_bytes())["traces"][0]["explain"]["kernels"]}
        self.assertTrue(any(facts.startswith(name) for name in names), facts)
        self.assertIn("GPU 0, stream 7", facts)
        self.assertIn("part of MLP 8192 × 768 → 3072 gelu_tanh gated", facts)
        self.browser.press("Enter")  # closer to it: in the middle of the picture then
        self.browser.run(f"{CANVAS}.scrollIntoView({{block: 'center'}})")
        box = self.browser.run(f"(() => {{ const r = {CANVAS}.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }})()")
        shown = False
        for up in range(20, 90, 6):  # the device's lane is the last but one
            self.browser.mouse("mouseMoved", box[0] + box[2] / 2, box[1] + box[3] - up)
            self.browser.settle()
            tip = self.browser.run("(() => { const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent; })()")
            shown = shown or any(tip.startswith(name) for name in names)
        self.assertTrue(shown)

    def test_a_step_is_chosen(self):
        page = self.open("explain", LARGE)
        steps = data_of(page.read_bytes())["traces"][0]["timeline"]["steps"]
        self.browser.run("(() => { const s = document.querySelector('select'); s.value = '7'; s.dispatchEvent(new Event('change')); })()")
        self.browser.settle()
        start, end = self.browser.run(RANGE)
        self.assertTrue(start <= steps[7][1] and end >= steps[7][2])
        self.assertLess(end - start, 1.1 * (steps[7][2] - steps[7][1]))
        self.assertIn(steps[7][0], self.browser.run(f"{CANVAS}.getAttribute('aria-label')"))
        self.browser.run("document.querySelector('figure details').open = true")
        self.browser.settle()
        self.assertEqual(self.browser.run("document.querySelectorAll('figure table tbody tr').length"), 25)
        self.browser.run("document.querySelector('figure .more button').click()")
        self.assertEqual(self.browser.run("document.querySelectorAll('figure table tbody tr').length"), 504)  # 480 kernels, 24 memsets

    def test_a_large_trace_paints_soon_and_nothing_shifts(self):
        page = self.make("explain", LARGE)
        paints = []
        for _ in range(5):  # other work on the machine only ever makes it later
            self.browser.open(page)
            self.check_clean(page)
            shift, paint = self.browser.run("""new Promise((done) => {
              let shift = 0;
              new PerformanceObserver((list) => { for (const entry of list.getEntries()) shift += entry.value; }).observe({type: 'layout-shift', buffered: true});
              setTimeout(() => done([shift, performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)[0]]), 300);
            })""")
            self.assertEqual(shift, 0)
            paints.append(paint)
            if paint and paint < 500:
                break
        print(f"first paint of the page of {LARGE.name}, ms: {paints}")
        self.assertLess(paints[-1], 500)

    def test_it_fits_a_phone_and_paper(self):
        for width in (360, 768, 1280):
            for arguments in (("explain", GEGLU), ("diff", GEGLU, COMPILED)):
                self.browser.resize(width)
                self.open(*arguments)
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
        self.browser.paper(PICTURES / "diff.pdf")
        self.assertGreater((PICTURES / "diff.pdf").stat().st_size, 20_000)

    def test_every_recorded_trace(self):
        traces = sorted(TRACES.glob("*.json.gz"))
        self.assertGreater(len(traces), 10)
        for trace in traces:
            with self.subTest(trace.name):
                self.open("explain", trace)
                self.assertGreater(self.browser.run("document.querySelectorAll('table').length"), 1)

    def test_hostile_names_run_nothing(self):
        trace = Path(self.folder.name) / "hostile.json"
        hostile_trace(trace)
        self.open("explain", trace)
        self.browser.run("document.querySelector('figure details').open = true")
        self.browser.settle()
        self.assertEqual(self.browser.run("typeof window.hacked"), "undefined")
        self.assertEqual(self.browser.run("document.querySelectorAll('img, table script').length"), 0)
        self.assertIn("</script><script>window.hacked=1</script>", self.column("Kernels", "operator"))
        self.open("diff", trace, GEGLU)
        self.assertEqual(self.browser.run("typeof window.hacked"), "undefined")

    def test_an_empty_trace(self):
        trace = Path(self.folder.name) / "empty.json"
        trace.write_text(json.dumps({"traceEvents": []}))
        self.open("explain", trace)
        self.assertIn("holds no events", self.browser.run("document.body.textContent"))

    def test_a_ladder(self):
        page = self.open("bench", "--tokens", "64", "--dim", "32", "--hidden", "96", "--seconds", "0.02")
        rungs = data_of(page.read_bytes())["bench"]["ladders"][0]["rungs"]
        self.assertEqual(self.browser.run("document.querySelectorAll('.rung').length"), len(rungs))
        widths = self.browser.run("[...document.querySelectorAll('.fill')].map((fill) => fill.getBoundingClientRect().width)")
        times = [rung["time_us"]["median"] for rung in rungs]
        for width, time in zip(widths, times):
            self.assertAlmostEqual(width / max(widths), time / max(times), delta=0.01)
        self.browser.picture(PICTURES / "bench.png")

    def test_pictures_are_kept(self):
        for name, arguments, width, dark in (("explain", ("explain", GEGLU), 1280, False), ("explain_dark", ("explain", LARGE), 1280, True),
                                             ("explain_phone", ("explain", GEGLU), 360, False), ("diff", ("diff", GEGLU, COMPILED), 1280, False)):
            self.browser.resize(width, dark=dark)
            self.open(*arguments)
            self.browser.picture(PICTURES / f"{name}.png")
            self.assertGreater((PICTURES / f"{name}.png").stat().st_size, 20_000)
            # Something of every lane is drawn: the canvas is not of one colour.
            self.assertGreater(self.browser.run(f"""(() => {{
              const c = {CANVAS}; const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const seen = new Set();
              for (let i = 0; i < pixels.length; i += 4) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
              return seen.size;
            }})()"""), 8)


if __name__ == "__main__":
    if find_browser() is None:
        print("skipped: no Chromium here; Debian has it as chromium-headless-shell")
        sys.exit(77)
    unittest.main()
