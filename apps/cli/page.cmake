# The page of `attend look -o FILE.html` as C: two texts, before and behind its data.
#
#   cmake -DPAGE=look_page.html -DOUT=look_page.c -P page.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${PAGE} hex HEX)
  string(FIND "${hex}" "404441544140" place) # @DATA@
  string(SUBSTRING "${hex}" 0 ${place} before)
  math(EXPR place "${place} + 12")
  string(SUBSTRING "${hex}" ${place} -1 behind)
  set(out "/* Made by apps/cli/page.cmake. */\n#include \"look_export.h\"\n\n")
  foreach(part before behind)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${${part}}")
    string(REGEX REPLACE "('....',){16}" "\\0\n" bytes "${bytes}")
    string(APPEND out "const char look_page_${part}[] = {\n${bytes}0};\n")
  endforeach()
  file(WRITE ${OUT} "${out}")
  return()
endif()

set(ATT_PAGE_SOURCES ${CMAKE_BINARY_DIR}/generated/look_page.c)
set(att_page ${CMAKE_CURRENT_LIST_DIR}/look_page.html)
add_custom_command(
  OUTPUT ${ATT_PAGE_SOURCES}
  COMMAND ${CMAKE_COMMAND} -DPAGE=${att_page} -DOUT=${ATT_PAGE_SOURCES} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${att_page} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Embedding the page of maps" VERBATIM)
set_source_files_properties(${ATT_PAGE_SOURCES} PROPERTIES
                            INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/apps/cli)
