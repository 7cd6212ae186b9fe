# SPDX-License-Identifier: Apache-2.0
"""Reads the data out of a page, and the events of a trace, with nothing of Ingot's code."""
import gzip
import json
import re
from pathlib import Path


def data_of(page):
    """The JSON inside of a page (bytes)."""
    found = re.findall(rb'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(found) == 1, len(found)
    return json.loads(found[0])


def lanes_of(timeline):
    """Events of every lane as dictionaries; times in nanoseconds since the first event of the trace."""
    lanes = []
    for lane in timeline["lanes"]:
        events, at, call, mlp = [], 0, 0, 0
        for i, step in enumerate(lane["start"]):
            at += step
            event = {"start": at, "dur": lane["dur"][i], "kind": timeline["kinds"][lane["kind"][i] % 16], "row": lane["kind"][i] // 16,
                     "name": lane["name"][i]}
            if lane["device"]:
                call += lane["call"][i]
                mlp += lane["mlp"][i]
                event |= {"lane": lane["lane"][i], "call": call, "mlp": mlp}
            events.append(event)
        lanes.append({"label": lane["label"], "device": lane["device"], "rows": lane["rows"], "events": events})
    return lanes


def trace_events(path):
    opener = gzip.open if Path(path).suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def hostile_trace(path):
    """A trace whose names try to break out of the page: markup, quotes, control characters, megabytes."""
    names = ["</script><script>window.hacked=1</script>", "<img src=x onerror='window.hacked=2'>", "\"'`${window.hacked=3}&amp;&lt;",
             "<!--<script>", "a\u0000b\u0001c\u001b[31m\u007f\u202eevil\u2028\u2029", "]]>", "\ud83d\ude00" * 200, "{{data}}{{title}}",
             "y" * 7_000_000, "x" * 10_000_000]  # an event of more than 8 MiB is skipped, and counted
    events = []
    for i, name in enumerate(names):
        ts = 1000 + 100 * i
        events += [
            {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 90, "args": {"External id": 100 + i}},
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts + 1, "dur": 60, "args": {"External id": 200 + i}},
            {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": ts + 2, "dur": 5,
             "args": {"External id": 200 + i, "correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts + 20, "dur": 40,
             "args": {"External id": 200 + i, "correlation": i + 1, "device": 0, "stream": 7}}]
    document = {"deviceProperties": [{"id": 0, "name": "</title><script>window.hacked=4</script>"}], "traceEvents": events}
    Path(path).write_text(json.dumps(document), encoding="utf-8")
    return names
