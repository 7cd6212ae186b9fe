#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds NVRTC for the tests that compile device code: get_nvrtc.py INGOT FOLDER

INGOT is the built command; where its doctor finds a compiler nothing is done and nothing printed. Otherwise the libraries of
the package nvidia-cuda-nvrtc are fetched into FOLDER, unless they lie there, and FOLDER is printed, for INGOT_NVRTC. Exits 1
with one line on standard error when neither works: those tests are then skipped.
"""
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "nvidia-cuda-nvrtc==13.0.*"  # what docs/measured-gpu.md was measured with


def doctor_finds_one(ingot):
    result = subprocess.run([ingot, "doctor", "--json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["gpu"]["device_compiler"] is not None


def fetch(folder):
    with tempfile.TemporaryDirectory() as download:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary", ":all:", "--dest", download, PACKAGE], check=True, capture_output=True, text=True)
        [wheel] = Path(download).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                name = Path(member).name
                # NVRTC itself last: a fetch that was cut off is not taken for a whole one.
                if name.startswith("libnvrtc-builtins.so"):
                    (folder / name).write_bytes(archive.read(member))
            library = next(m for m in archive.namelist() if Path(m).name.startswith("libnvrtc.so.13"))
            part = folder / "part"
            part.write_bytes(archive.read(library))
            part.rename(folder / "libnvrtc.so.13")


def main():
    ingot, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    try:
        if doctor_finds_one(ingot):
            return 0
        if not (folder / "libnvrtc.so.13").exists():
            fetch(folder)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or [str(error)]
        print(f"no NVRTC: {last[0]}", file=sys.stderr)
        return 1
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        print(f"no NVRTC: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
