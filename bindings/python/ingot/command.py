# SPDX-License-Identifier: Apache-2.0
"""The command line tool that comes with the package. Imports no PyTorch."""
import os
import subprocess
import sys
from pathlib import Path


def path():
    """The program, as installed beside this file. Raises FileNotFoundError where the installation is not whole."""
    program = Path(__file__).parent / "bin" / "ingot"
    if not program.exists():
        raise FileNotFoundError(f"{program} is missing: install the package again")
    return str(program)


class CommandError(RuntimeError):
    """The command failed. `code` is its exit code: 2 usage, 3 unreadable input, 4 device or feature missing, 5 a result
    failed its check."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def run(*words, accept=(0,)):
    """Standard output of `ingot WORDS…`. Raises CommandError with its message, unless the exit code is in `accept`."""
    result = subprocess.run([path(), *map(str, words)], capture_output=True, text=True)
    if result.returncode not in accept:
        message = result.stderr.strip().removeprefix("ingot: ")
        raise CommandError(result.returncode, message or f"ingot {words[0]} ended with code {result.returncode}")
    return result.stdout


def main():
    """Becomes the command, with this process's arguments."""
    program = path()
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])
