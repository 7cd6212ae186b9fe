# SPDX-License-Identifier: Apache-2.0
# Files that are part of the library as text, so that an installed Ingot needs none of them: device code, which the
# run-time compiler reads, and the page's template, style and script.
#
#   ingot_embed_files(TARGET FOLDER FUNCTION PATTERN…)
#
# adds the files of FOLDER that match, named by their path in it, behind `std::span<const base::EmbeddedFile> FUNCTION()`;
# FUNCTION is qualified (ingot::jit::kernel_sources).
#
# The same file is the script that writes the generated source, when it is run with -P.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(ingot_embed_files target folder function)
    set(root ${PROJECT_SOURCE_DIR}/${folder})
    list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE patterns)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
    string(REPLACE "::" "_" name ${function})
    set(output ${PROJECT_BINARY_DIR}/generated/${target}/${name}.cpp)
    list(JOIN files "," joined)  # a semicolon would not survive the command line
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DFILES=${joined} -DFUNCTION=${function} -DOUTPUT=${output}
              -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      COMMENT "Embedding ${folder}" VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

string(REPLACE "," ";" FILES "${FILES}")
string(REGEX MATCH "^(.*)::([^:]*)$" whole ${FUNCTION})
set(namespace ${CMAKE_MATCH_1})
set(function ${CMAKE_MATCH_2})
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
// Written by cmake/EmbedFiles.cmake.
#include <array>
#include <span>

#include \"base/embedded_file.h\"

namespace ${namespace} {

namespace {
using std::string_view_literals::operator\"\"sv;
constexpr auto files = std::to_array<base::EmbeddedFile>({
${array}});
}  // namespace

std::span<const base::EmbeddedFile> ${function}();
std::span<const base::EmbeddedFile> ${function}() {
  return files;
}

}  // namespace ${namespace}
")
