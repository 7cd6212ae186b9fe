# SPDX-License-Identifier: Apache-2.0
# Device code is read by the run-time compiler, so its text is part of the library: an installed Ingot needs no file of it.
#
#   ingot_embed_kernels(TARGET)   adds kernels/**.cuh as text, named by their path in kernels/ as their includes name them
#
# The same file is the script that writes the generated source, when it is run with -P.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(ingot_embed_kernels target)
    set(root ${PROJECT_SOURCE_DIR}/kernels)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${root}/*.cuh)
    set(output ${PROJECT_BINARY_DIR}/generated/${target}/kernel_sources.cpp)
    list(JOIN files "," joined)  # a semicolon would not survive the command line
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DFILES=${joined} -DOUTPUT=${output} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      COMMENT "Embedding device code" VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

string(REPLACE "," ";" FILES "${FILES}")
set(array "")
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${ROOT} ${file})
  file(READ ${file} text)
  if(text MATCHES "\\)ingot\"")
    message(FATAL_ERROR "${file} holds the mark that ends an embedded file")
  endif()
  string(APPEND array "    {\"${name}\", R\"ingot(${text})ingot\"sv},\n")
endforeach()
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0
// Written by cmake/EmbedKernels.cmake from kernels/.
#include \"jit/sources.h\"

#include <array>

namespace ingot::jit {

namespace {
using std::string_view_literals::operator\"\"sv;
constexpr auto files = std::to_array<SourceFile>({
${array}});
}  // namespace

std::span<const SourceFile> kernel_sources() {
  return files;
}

}  // namespace ingot::jit
")
