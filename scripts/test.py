#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and tests every preset, then lints; ends with one line `N passed, N failed[, N skipped]`.

A build that fails counts as one failure, and so does lint; what comes after still runs. A skipped test is never
counted as passed. Exits 1 on any failure, or when a preset that must have tests ran none.
"""
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Preset, and whether it may have no tests: those of tsan are the thread tests alone.
PRESETS = [("host", False), ("asan", False), ("tsan", True)]


def run(title, *command, quiet=False):
    """Runs a command; a quiet one shows its output only when it fails."""
    start = time.monotonic()
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE if quiet else None, text=True)
    if quiet and result.returncode != 0:
        print(result.stdout)
    status = result.returncode
    print(f"== {title}: {'ok' if status == 0 else 'FAILED'}, {time.monotonic() - start:.0f} s")
    return status == 0


def tally(report):
    """Counts of passed, failed and skipped tests in a JUnit file written by ctest."""
    counts = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if case.get("status") == "run":
            counts["passed"] += 1
        elif case.get("status") == "disabled" or (
                skipped is not None and skipped.get("message", "").startswith("SKIP_")):
            counts["skipped"] += 1
        else:  # failed, or not run because its program is missing
            counts["failed"] += 1
    return counts


def settle(ok, counts, may_be_empty):
    """The counts of a preset, with a failure added where ctest failed as a whole or had nothing to run."""
    counts = Counter(counts)
    if (ok and not may_be_empty and counts["passed"] == 0) or (not ok and counts["failed"] == 0):
        counts["failed"] += 1
    return +counts


def closing_line(total):
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    return f"{total['passed']} passed, {total['failed']} failed{skipped}"


def find_nvrtc(build):
    """Sees to it that tests find a compiler of device code, fetched where the machine has none; without, they skip."""
    ingot = build / "src" / "ingot"
    if "INGOT_NVRTC" in os.environ or not ingot.exists():
        return
    result = subprocess.run([sys.executable, ROOT / "scripts" / "get_nvrtc.py", ingot, ROOT / ".cache" / "nvrtc"],
                            stdout=subprocess.PIPE, text=True)
    if result.stdout.strip():
        os.environ["INGOT_NVRTC"] = result.stdout.strip()


def tally_pytest(report):
    """Counts of passed, failed and skipped tests in a JUnit file written by pytest."""
    counts = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        counts["failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"] += 1
    return counts


def test_python():
    """Installs the package with pip, which takes the library that preset host has built, and runs its tests against a real
    PyTorch. Skipped as a whole, with the reason, where PyTorch cannot be fetched."""
    found = subprocess.run([sys.executable, ROOT / "tests" / "python" / "environment.py", ROOT / ".cache" / "python"],
                           stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print("== python: skipped, see the line above")
        return Counter(skipped=1)
    python, report = found.stdout.strip(), ROOT / "build" / "python.xml"
    definitions = [f"-Ccmake.define.{name}=ON" for name in ("INGOT_BUILD_TESTS", "INGOT_BUILD_BENCH")]
    if not run("python: install", python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-build-isolation", "--no-deps", "--force-reinstall", f"-Cbuild-dir={ROOT / 'build' / 'host'}",
               *definitions, ".", quiet=True):
        return Counter(failed=1)
    report.unlink(missing_ok=True)
    ok = run("python: test", python, "-m", "pytest", f"--junit-xml={report}")
    return settle(ok, tally_pytest(report) if report.exists() else Counter(), False)


def test_preset(preset, may_be_empty):
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    # The host build may be of a run that also built the operators for PyTorch, with an environment that has gone.
    if not (run(f"{preset}: configure", "cmake", "--preset", preset, "-DINGOT_BUILD_PYTHON=OFF", "-UINGOT_TORCH", *launcher,
                quiet=True)
            and run(f"{preset}: build", "cmake", "--build", "--preset", preset)):
        return Counter(failed=1)
    find_nvrtc(ROOT / "build" / preset)
    report = ROOT / "build" / preset / "junit.xml"
    report.unlink(missing_ok=True)
    ok = run(f"{preset}: test", "ctest", "--preset", preset, "-j", str(os.cpu_count()), "--output-junit", report)
    return settle(ok, tally(report) if report.exists() else Counter(), may_be_empty)


def main():
    sys.stdout.reconfigure(line_buffering=True)  # in order with what the commands print, in a log too
    total = Counter()
    for preset, may_be_empty in PRESETS:
        counts = test_preset(preset, may_be_empty)
        print(f"== {preset}: {closing_line(counts)}")
        total += counts
    counts = test_python()
    print(f"== python: {closing_line(counts)}")
    total += counts
    lint_ok = run("lint", sys.executable, ROOT / "tests" / "lint" / "lint.py", "--no-static-analysis")
    total["passed" if lint_ok else "failed"] += 1
    print(closing_line(total))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
