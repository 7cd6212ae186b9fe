#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh CUBINS OUT STEP...: device steps, each with its log in OUT. Steps: compile=WHAT, check, sanitize, bench=ARGS,
# probe=FILE; of the portable kernels portable-check, portable-sanitize, portable-time; of the narrow kernel mlp-check,
# mlp-sanitize, mlp-bench=ARGS; of the cluster kernel cluster-check, cluster-sanitize, cluster-time.
# A kernel that hangs ends its process; the step goes on behind it.
here=$(cd "$(dirname "$0")" && pwd); cubins=$1; out=$2; shift 2
export PYTHONUNBUFFERED=1

# sanitized SECONDS PREFIX SCRIPT [ARGUMENT...]: the script under each tool of compute-sanitizer, logs as PREFIXtool.log.
sanitized() {
  local seconds=$1 prefix=$2 script=$3 tool; shift 3
  for tool in memcheck racecheck initcheck synccheck; do
    timeout -s KILL "$seconds" compute-sanitizer --tool $tool --error-exitcode 9 python3 "$here/$script" "$cubins" "$@" > "$out/$prefix$tool.log" 2>&1
    echo "$tool rc $?"; grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|checked' "$out/$prefix$tool.log" | tail -2
  done
}

for step in "$@"; do
  case $step in
    compile=*)
      python3 "$here/specs.py" "$cubins" ${step#compile=}
      ;;
    probe=*)
      timeout -s KILL 40 python3 "$here/probe.py" "$cubins" $(cat "${step#probe=}") > "$out/probe.log" 2>&1; cat "$out/probe.log"
      ;;
    check)
      start=0
      for attempt in 1 2 3; do
        timeout -s KILL 40 python3 "$here/check.py" "$cubins" --start $start >> "$out/check.log" 2>&1; rc=$?
        [ $rc -ne 3 ] && break
        start=$(grep '^next' "$out/check.log" | tail -1 | cut -d' ' -f2)
      done
      grep -v '^ok' "$out/check.log" | tail -40; grep -c '^ok' "$out/check.log"
      grep '^ok' "$out/check.log" | awk '{for(i=1;i<=NF;i++) if($i=="ratio") print $(i+1), $2, $3}' | sort -rn | head -5
      [ "$(grep -c -E '^(FAIL|HANG)' "$out/check.log")" -gt 60 ] && { echo 'too many failures: stopping'; exit 1; }
      ;;
    sanitize)
      sanitized 150 "" sanitize.py
      ;;
    mlp-check)
      python3 "$here/mlp_specs.py" "$cubins" check
      timeout -s KILL 60 python3 "$here/mlp_check.py" "$cubins" > "$out/mlp-check.log" 2>&1
      grep -v '^ok' "$out/mlp-check.log" | tail -40
      ;;
    mlp-sanitize)
      python3 "$here/mlp_specs.py" "$cubins" small
      sanitized 240 mlp- mlp_sanitize.py
      ;;
    mlp-bench=*)
      python3 "$here/mlp_specs.py" "$cubins" bench
      timeout -s KILL 150 python3 "$here/mlp_bench.py" "$cubins" --peers ${step#mlp-bench=} > "$out/mlp-bench.log" 2>&1; cat "$out/mlp-bench.log"
      ;;
    portable-check)
      python3 "$here/portable.py" "$cubins" compile all
      timeout -s KILL 240 python3 "$here/portable.py" "$cubins" check > "$out/portable-check.log" 2>&1
      grep -v '^ok' "$out/portable-check.log" | tail -40
      timeout -s KILL 60 python3 "$here/portable.py" "$cubins" large
      ;;
    portable-sanitize)
      python3 "$here/portable.py" "$cubins" compile small
      sanitized 240 portable- portable.py small
      ;;
    portable-time)
      python3 "$here/portable.py" "$cubins" compile time
      timeout -s KILL 240 python3 "$here/portable.py" "$cubins" time > "$out/portable-time.log" 2>&1; cat "$out/portable-time.log"
      ;;
    cluster-check)
      python3 "$here/whole_cluster.py" "$cubins" compile all
      timeout -s KILL 120 python3 "$here/whole_cluster.py" "$cubins" check > "$out/cluster-check.log" 2>&1
      grep -v '^ok' "$out/cluster-check.log" | tail -40
      ;;
    cluster-sanitize)
      python3 "$here/whole_cluster.py" "$cubins" compile small
      sanitized 120 cluster- whole_cluster.py small
      ;;
    cluster-time)
      python3 "$here/whole_cluster.py" "$cubins" compile time
      timeout -s KILL 120 python3 "$here/whole_cluster.py" "$cubins" time > "$out/cluster-time.log" 2>&1; cat "$out/cluster-time.log"
      ;;
    bench=*)
      for attempt in 1 2 3 4; do
        timeout -s KILL 150 python3 "$here/bench.py" "$cubins" --json "$out/bench.json" ${step#bench=} >> "$out/bench.out" 2>&1; rc=$?
        [ $rc -ne 3 ] && break
      done
      tail -c 9000 "$out/bench.out"
      ;;
  esac
done
