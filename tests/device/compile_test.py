#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles one of every form of the sm_90a kernels through NVRTC, with no GPU: compile_test.py FOLDER

Fails on a compile error, a warning that a kernel must not have, or a register spill. Exits 77 (skipped) where there is no
NVRTC.
"""
import os
import sys

import cases
import specs


def main():
    try:
        specs.Nvrtc()
    except (OSError, RuntimeError) as error:
        print(f"no NVRTC: {error}")
        return 77
    pairs = list(dict.fromkeys(cases.pairs(True)))
    unfit = specs.compile_all(pairs, sys.argv[1], verbose=False, processes=os.cpu_count() or 1)
    print(f"{len(pairs)} kernels, {unfit} unfit")
    return 1 if unfit or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
