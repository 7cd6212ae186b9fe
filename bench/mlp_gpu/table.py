#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/measured-gpu.md from what one device call measured.

python3 table.py INGOT_GPU_BENCH.json [--peers PEERS.json] [--tiles BENCH.json] [--ceiling TFLOPS]

INGOT_GPU_BENCH.json is of `ingot_gpu_bench --json`; PEERS.json of a script that times the framework, with rows of `name` and,
for each contender, `gpu_us` and `sustained_us`; BENCH.json of tests/device/bench.py. A share is the time of the faster of Ingot's rungs over the best of
the framework's eager mode, its compiler and the library's epilogue, whoever measured that one: those of PEERS.json, of
BENCH.json, and the ladder's own rungs. TFLOPS is the tensor cores' rate measured in the same call.
"""
import argparse
import json

# Names of contenders in the three kinds of file, by column.
PEER_NAMES = {"eager": "eager", "compile": "compile", "lt_epilogue": "epilogue", "epilogue": "epilogue"}

OWN_RUNGS = ("two_kernel", "one_kernel")


def read_ladder(path):
    """Rows of the ladder by shape: (row, times by rung as (burst, sustained))."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    rows = {}
    for row in document["rows"]:
        times = {r["name"]: (r["time_us"]["median"], r["sustained_us"]) for r in row["rungs"] if r["ok"] and r["time_us"]}
        rows[row["name"]] = (row, times)
    return document["device"], rows


def read_peers(path):
    """{shape: {column: (burst, sustained)}}"""
    out = {}
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    for row in rows:
        out[row["name"]] = {column: (row[key]["gpu_us"], row[key].get("sustained_us"))
                            for key, column in PEER_NAMES.items() if isinstance(row.get(key), dict)}
    return out


def read_tiles(path):
    """Peers of tests/device/bench.py, and its best pair under "pair"."""
    out = {}
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    for row in rows:
        results = row["results"]
        found = {column: (results[key]["us"], results[key]["sustained"])
                 for key, column in PEER_NAMES.items() if key in results}
        pairs = [(r["us"], r["sustained"]) for key, r in results.items() if "+" in key]
        if pairs:
            found["pair"] = min(pairs, key=lambda pair: pair[0])
        out[row["name"]] = found
    return out


def least(values):
    known = [v for v in values if v]
    return min(known) if known else None


def best_peer(ladder_times, peers):
    """Burst and sustained of the fastest of eager, compile and epilogue; each figure by itself."""
    rivals = [t for column, t in peers.items() if column != "pair"]
    rivals += [ladder_times[name] for name in ("unfused", "epilogue") if name in ladder_times]
    return least(t[0] for t in rivals), least(t[1] for t in rivals)


def merged(one, other):
    """The lesser burst of each column; its sustained time comes with it."""
    out = dict(one)
    for column, times in other.items():
        if column not in out or times[0] < out[column][0]:
            out[column] = times
    return out


def microseconds(value):
    if not value:
        return "–"
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def both(times):
    return "–" if not times else f"{microseconds(times[0])}, {microseconds(times[1])}"


def share(ours, theirs):
    return f"{ours / theirs:.3f}" if ours and theirs else "–"


def table(rows, peers, ceiling):
    out = ["| shape | eager | compile | epilogue | library: unfused | library: epilogue | **two_kernel** | **one_kernel** | share | launches | error, "
           "framework's | tiles | forecast |" + (" of the ceiling |" if ceiling else ""),
           "|---" * (14 if ceiling else 13) + "|"]
    for name, (row, times) in rows.items():
        found = peers.get(name, {})
        own = [r for r in row["rungs"] if r["name"] in OWN_RUNGS]
        # The fastest that is right; where none is, the first says so.
        right = sorted((r for r in own if r["name"] in times), key=lambda r: times[r["name"]][0])
        rung = next(iter(right + own), None)
        ours = times[right[0]["name"]] if right else None
        peer = best_peer(times, found)
        shares = f"{share(ours[0], peer[0])}, {share(ours[1], peer[1])}" if ours else "failed"
        cells = [name, both(found.get("eager")), both(found.get("compile")), both(found.get("epilogue")),
                 both(times.get("unfused")), both(times.get("epilogue")),
                 *(both(times.get(name)) for name in OWN_RUNGS), shares]
        if rung:
            cells += [str(rung["launches"]), f"{rung['error']:.2e}, {rung['framework_error']:.2e}", rung["tile"] or "–",
                      microseconds(rung["forecast_us"])]
        else:
            cells += ["–"] * 4
        if ceiling:
            rate = row["floor"]["flops"] / ours[0] * 1e-6 if ours else None
            cells.append(f"{rate / ceiling:.2f}" if rate else "–")
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ladder")
    parser.add_argument("--peers")
    parser.add_argument("--tiles")
    parser.add_argument("--ceiling", type=float)
    arguments = parser.parse_args()
    device, rows = read_ladder(arguments.ladder)
    peers = read_peers(arguments.peers) if arguments.peers else {}
    if arguments.tiles:
        for name, found in read_tiles(arguments.tiles).items():
            peers[name] = merged(peers.get(name, {}), found)
    print(f"{device}; microseconds a call: burst, sustained\n")
    print(table(rows, peers, arguments.ceiling))


if __name__ == "__main__":
    main()
