#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All lint checks: formatting, static analysis of src/, and the rules of rules.py. Needs build/host configured.

With --no-static-analysis, formatting and rules alone: what `make test` runs, to stay within its twenty minutes.

Exits 1 when anything is found. A file whose static analysis was clean is not analysed again until it, a project
header it includes, or the configuration changes.
"""
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rules

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "host"
CLEAN = ROOT / "build" / "lint"  # one empty file per clean analysis, named by what was analysed


def check_format():
    files = [name for name in rules.project_files(ROOT) if Path(name).suffix in rules.CPP_SUFFIXES]
    return subprocess.run(["clang-format", "--dry-run", "-Werror", *files], cwd=ROOT).returncode == 0


def check_rules():
    violations, warnings = rules.check(ROOT)
    for name, line, message in warnings:
        print(f"{name}:{line}: warning: {message}")
    for name, line, message in violations:
        print(f"{name}:{line}: {message}")
    return not violations


def project_headers(entry):
    """Files of this project that a compile command reads, by the compiler's own account; None if it fails."""
    words = shlex.split(entry["command"])
    command = [word for word in words if word != "-c"]
    output = command.index("-o")
    del command[output:output + 2]
    result = subprocess.run([*command, "-MM"], cwd=entry["directory"], capture_output=True, text=True)
    if result.returncode != 0:
        return None
    names = result.stdout.replace("\\\n", " ").split(":", 1)[1].split()
    paths = [Path(entry["directory"], name).resolve() for name in names]
    return [path for path in paths if path.is_relative_to(ROOT)]


def fingerprint(entry, tool):
    headers = project_headers(entry)
    if headers is None:
        return None
    digest = hashlib.sha256(f"{tool}\n{entry['command']}\n".encode())
    for path in [ROOT / ".clang-tidy", *headers]:
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def tidy(entry, tool):
    """Analyses one file; returns its name, whether it is clean, its messages and the seconds spent."""
    start, name = time.monotonic(), os.path.relpath(entry["file"], ROOT)
    key = fingerprint(entry, tool)
    if key and (CLEAN / key).exists():
        return name, True, "", 0.0
    result = subprocess.run(["clang-tidy", "--quiet", "-p", BUILD, entry["file"]], capture_output=True, text=True)
    clean = result.returncode == 0
    if clean and key:
        (CLEAN / key).touch()
    return name, clean, "" if clean else result.stdout + result.stderr, time.monotonic() - start


def check_tidy():
    CLEAN.mkdir(parents=True, exist_ok=True)
    tool = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True, text=True).stdout
    with open(BUILD / "compile_commands.json", encoding="utf-8") as commands:
        entries = [entry for entry in json.load(commands) if Path(entry["file"]).is_relative_to(ROOT / "src")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda entry: tidy(entry, tool), entries))
    for _, clean, messages, _ in results:
        if not clean:
            print(messages)
    analysed = [seconds for *_, seconds in results if seconds]
    print(f"clang-tidy: {len(results)} files, {len(analysed)} analysed, {sum(analysed):.0f} s of work")
    return bool(results) and all(clean for _, clean, *_ in results)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    ok = True
    checks = [("format", check_format), ("rules", check_rules)]
    if "--no-static-analysis" not in sys.argv[1:]:
        checks.append(("static analysis", check_tidy))
    for name, check in checks:
        passed = check()
        print(f"lint: {name}: {'ok' if passed else 'FAILED'}")
        ok &= passed
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
