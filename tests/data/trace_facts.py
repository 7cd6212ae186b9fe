#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a trace file holds, by Python's json module: the independent account the reader is tested against.

trace_facts.py FILE.json.gz... prints one JSON document (kept as trace_facts.json). For each table of a trace: its rows
and the CRC-32 of all of them written as lines, in file order. Times pass through Decimal, never through a float.
"""
import gzip
import json
import sys
import zlib
from collections import Counter
from decimal import Decimal
from pathlib import Path

KINDS = {"kernel": 0, "gpu_memcpy": 1, "gpu_memset": 2}


def nanoseconds(value):
    return int(Decimal(value) * 1000)


def compact(value):
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def numeric(args, key, missing):
    return int(args.get(key, missing))


class Table:
    def __init__(self):
        self.rows, self.crc = 0, 0

    def add(self, *cells):
        self.rows += 1
        self.crc = zlib.crc32((" ".join(str(cell) for cell in cells) + "\n").encode(), self.crc)


def facts(path):
    document = json.loads(gzip.open(path).read(), parse_float=Decimal)
    events = document["traceEvents"]
    tables = {name: Table() for name in ("ops", "calls", "gpu", "annotations", "gpu_annotations", "overheads")}
    for event in events:
        args, category = event.get("args", {}), event.get("cat")
        if event["ph"] != "X":
            continue
        span = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
        lane = event["pid"], event["tid"]
        external = args.get("External id", "-")
        if category == "cpu_op":
            tables["ops"].add(*span, *lane, event["name"], external, compact(args.get("Input Dims")),
                              compact(args.get("Input type")), compact(args.get("Concrete Inputs")))
        elif category in ("cuda_runtime", "cuda_driver") and "correlation" in args:
            tables["calls"].add(*span, *lane, event["name"], args["correlation"], external)
        elif category in KINDS:
            size = 0 if category == "kernel" else numeric(args, "bytes", 0)
            shape = [*args.get("grid", [0, 0, 0]), *args.get("block", [0, 0, 0]),
                     numeric(args, "registers per thread", 0), numeric(args, "shared memory", 0)]
            tables["gpu"].add(KINDS[category], *span, event["name"], args["device"], args["stream"],
                              args["correlation"], external, size, *shape)
        elif category == "user_annotation":
            tables["annotations"].add(*span, *lane, event["name"], external)
        elif category == "gpu_user_annotation":
            tables["gpu_annotations"].add(*span, *lane, event["name"], external)
        elif category == "overhead":
            tables["overheads"].add(*span, event["name"])
    return {
        "events": len(events),
        "devices": [device.get("name", "") for device in document.get("deviceProperties", [])],
        "categories": dict(sorted(Counter(event.get("cat", "") for event in events).items())),
        "tables": {name: [table.rows, table.crc] for name, table in tables.items()},
    }


def main():
    found = {Path(path).name: facts(path) for path in sys.argv[1:]}
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
