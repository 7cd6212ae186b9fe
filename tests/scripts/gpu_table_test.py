#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/mlp_gpu/table.py on figures whose shares are plain. Usage: gpu_table_test.py [unittest arguments]"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "bench/mlp_gpu/table.py"


def rung(name, burst, sustained, ok=True):
    return {"name": name, "ok": ok, "time_us": {"median": burst, "min": burst, "max": burst} if ok else None,
            "sustained_us": sustained if ok else None, "launches": 2, "error": 0.003, "framework_error": 0.002,
            "tile": "a, b" if name == "two_kernel" else None, "forecast_us": 70.0}


def ladder(name, rungs, flops=8e10):
    return {"name": name, "floor": {"flops": flops}, "rungs": rungs}


class Table(unittest.TestCase):
    def rows(self, ladders, *arguments, **files):
        """Cells by shape of the table made of these ladders and files."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "ladder.json")
            path.write_text(json.dumps({"device": "Some GPU", "rows": ladders}))
            command = [sys.executable, str(TABLE), str(path), *arguments]
            for option, document in files.items():
                file = Path(folder, option)
                file.write_text(json.dumps(document))
                command += [f"--{option}", str(file)]
            out = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]
        self.assertEqual(len({len(line) for line in lines}), 1, "every line has as many cells")
        return {line[0]: dict(zip(lines[0][1:], line[1:])) for line in lines[2:]}

    def test_share_is_against_the_best_whoever_measured_it(self):
        rows = self.rows([ladder("one", [rung("unfused", 100, 110), rung("two_kernel", 80, 99)])],
                         peers={"rows": [{"name": "one", "eager": {"gpu_us": 120, "sustained_us": 130},
                                          "compile": {"gpu_us": 90, "sustained_us": 132}}]})
        # burst: 80 of the compiler's 90; sustained: 99 of the library's 110.
        self.assertEqual(rows["one"]["share"], "0.889, 0.900")
        self.assertEqual(rows["one"]["eager"], "120.0, 130.0")
        self.assertEqual(rows["one"]["epilogue"], "–")
        self.assertEqual(rows["one"]["tiles"], "a, b")

    def test_tiles_script_adds_its_peers_and_keeps_its_pairs_out(self):
        rows = self.rows([ladder("one", [rung("two_kernel", 80, 99)])],
                         tiles={"rows": [{"name": "one", "results": {
                             "eager": {"us": 160, "sustained": 198}, "t1/16+t2/16": {"us": 40, "sustained": None}}}]})
        self.assertEqual(rows["one"]["share"], "0.500, 0.500")

    def test_a_failed_rung_has_no_share(self):
        rows = self.rows([ladder("one", [rung("unfused", 100, 110), rung("two_kernel", 80, 99, ok=False)])])
        self.assertEqual(rows["one"]["share"], "failed")

    def test_the_faster_of_one_and_two_kernels_counts(self):
        one = rung("one_kernel", 40, 60)
        one.update(launches=1, tile="n2")
        rows = self.rows([ladder("one", [rung("unfused", 100, 120), rung("two_kernel", 80, 90), one]),
                          ladder("two", [rung("unfused", 100, 120), rung("two_kernel", 30, 48), one]),
                          ladder("bad", [rung("unfused", 100, 120), rung("two_kernel", 80, 90), rung("one_kernel", 1, 1, ok=False)])])
        self.assertEqual([rows[name]["share"] for name in ("one", "two", "bad")],
                         ["0.400, 0.500", "0.300, 0.400", "0.800, 0.750"])
        self.assertEqual([rows["one"]["**two_kernel**"], rows["one"]["**one_kernel**"]], ["80.0, 90.0", "40.0, 60.0"])
        self.assertEqual([rows["one"]["launches"], rows["one"]["tiles"]], ["1", "n2"])
        self.assertEqual([rows["two"]["launches"], rows["two"]["tiles"]], ["2", "a, b"])
        self.assertEqual(rows["bad"]["**one_kernel**"], "–")

    def test_share_of_the_ceiling(self):
        # 8e10 operations in 200 us are 400 TFLOP/s.
        rows = self.rows([ladder("one", [rung("two_kernel", 200, 210)])], "--ceiling", "800")
        self.assertEqual(rows["one"]["of the ceiling"], "0.50")


if __name__ == "__main__":
    unittest.main()
