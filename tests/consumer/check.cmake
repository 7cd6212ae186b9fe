# SPDX-License-Identifier: Apache-2.0
# Installs a build into a fresh prefix, builds the outside project against it, runs it and compares what it prints.
file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${text}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${INGOT_BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${PROJECT} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix} -DINGOT_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK}/build)

execute_process(COMMAND ${WORK}/build/consumer ${TRACE}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
set(expected "15 kernels\n")  # events of category "kernel" in the trace: 3 calls of 5
if(NOT status EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "the consumer returned ${status} and printed '${output}', expected '${expected}'")
endif()

# The command was installed too, and starts from there.
run(${prefix}/bin/ingot --version)
