# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=… -DSEEDS=… -DWORK=… -DRUNS=… -P run.cmake: one reproducible run of a fuzzer, from the seeds alone.
file(GLOB seeds ${SEEDS}/*)
if(NOT seeds)
  message(FATAL_ERROR "no seeds in ${SEEDS}")
endif()
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/corpus)
execute_process(
  COMMAND ${PROGRAM} -runs=${RUNS} -seed=1 -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1
    -artifact_prefix=${WORK}/ ${WORK}/corpus ${SEEDS}
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the fuzzer failed; the input is in ${WORK}")
endif()
