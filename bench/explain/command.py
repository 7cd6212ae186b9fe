#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `ingot explain` as a whole command beside Python's json.loads alone, and measures its memory.

    command.py INGOT TRACE.json.gz [--large-gb 2]

Both are pinned to one core and run in turn; figures are medians of the CPU time (user and system) of a whole process,
with minimum and maximum, and rates are of uncompressed text. json.loads is timed inside its process on text already
read and decoded, so that neither start-up nor reading the file counts against it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# This process stays small: a child's peak memory starts from that of the process it was forked from. What needs the
# whole text therefore runs in a child of its own.
PREPARE = """
import gzip, json, sys
packed, plain, large, gigabytes = sys.argv[1:]
text = gzip.open(packed).read()
open(plain, "wb").write(text)
start, end = text.index(b"[", text.index(b'"traceEvents"')) + 1, text.rindex(b"]")
times = max(1, round(float(gigabytes) * 1e9 / (end - start)))
with open(large, "wb") as out:
    out.write(text[:start])
    for i in range(times):
        out.write(text[start:end] + (b"," if i + 1 < times else b""))
    out.write(text[end:])
print(len(text), len(json.loads(text)["traceEvents"]), times)
"""

PYTHON = """
import json, sys, time
text = open(sys.argv[1], encoding="utf-8").read()
start = time.process_time()
document = json.loads(text)
print(time.process_time() - start, len(document["traceEvents"]))
"""


def measured(*command):
    """Runs a command; returns its output, CPU seconds and peak resident bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed with status {status}")
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def row(name, seconds, size, note=""):
    middle = statistics.median(seconds)
    print(f"{name:34s} {size / middle * 1e-6:8.0f} MB/s   {middle * 1e3:8.1f} ms "
          f"(min {min(seconds) * 1e3:.1f}, max {max(seconds) * 1e3:.1f}){note}")
    return middle


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("ingot")
    arguments.add_argument("trace")
    arguments.add_argument("--runs", type=int, default=11)
    arguments.add_argument("--large-gb", type=float, default=2.0)
    args = arguments.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    with tempfile.TemporaryDirectory() as folder:
        plain, large = Path(folder) / "plain.json", Path(folder) / "large.json"
        size, count, times = map(int, measured(sys.executable, "-c", PREPARE, args.trace, plain, large, str(args.large_gb))[0].split())

        for path in (plain, args.trace):
            events = json.loads(measured(args.ingot, "explain", "--json", path)[0])["trace"]["events"]
            if events != count:
                sys.exit(f"{path}: {events} events, Python counts {count}: nothing is timed")

        seconds = {"plain": [], "gzip": [], "page": [], "python": []}
        page = Path(folder) / "page.html"
        peak = 0
        for _ in range(args.runs):
            _, cpu, memory = measured(args.ingot, "explain", plain)
            seconds["plain"].append(cpu)
            peak = max(peak, memory)
            seconds["gzip"].append(measured(args.ingot, "explain", args.trace)[1])
            seconds["page"].append(measured(args.ingot, "explain", plain, "--html", page)[1])
            seconds["python"].append(float(measured(sys.executable, "-c", PYTHON, plain)[0].split()[0]))
        print(f"{size * 1e-6:.1f} MB, {count} events, one core, {args.runs} runs in turn")
        ours = row("ingot explain, plain", seconds["plain"], size)
        row("ingot explain, gzip", seconds["gzip"], size)
        paged = row("ingot explain --html, plain", seconds["page"], size)
        print(f"{'--html over without':34s} {paged / ours:8.2f} x     page of {page.stat().st_size * 1e-6:.2f} MB")
        theirs = row("Python json.loads alone", seconds["python"], size, f"   {sys.version.split()[0]}")
        print(f"{'ingot over json.loads':34s} {theirs / ours:8.1f} x")
        print(f"{'peak memory':34s} {peak * 1e-6:8.1f} MB     {peak / size:.2f} of the text")

        # One file far larger than any buffer: the same events again and again.
        large_size = large.stat().st_size
        output, cpu, memory = measured(args.ingot, "explain", "--json", large)
        found = json.loads(output)["trace"]["events"]
        if found != count * times:
            sys.exit(f"the large file: {found} events, expected {count * times}")
        kept = (memory - peak) / (found - count)
        print(f"{'large file':34s} {large_size * 1e-9:8.2f} GB     {found} events, {large_size / cpu * 1e-6:.0f} MB/s, peak "
              f"{memory * 1e-6:.0f} MB ({memory / large_size:.2f} of the text), {kept:.0f} bytes an event more")


if __name__ == "__main__":
    main()
