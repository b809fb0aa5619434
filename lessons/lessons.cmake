# Lessons compiled into the program, in teaching order: lessons/<name>.lesson
# become a C file at build time. A further lesson is a file and a name here.
set(ATT_LESSONS mortgage dot-and-scale cosine mixing river-bank why-root-d causal-mask padding
                causal-shift two-softmaxes eight-heads grouped-heads rope pre-norm-block
                prefill-decode-cache)

set(ATT_LESSON_SOURCES ${CMAKE_BINARY_DIR}/generated/lessons_data.c)
list(TRANSFORM ATT_LESSONS REPLACE "(.+)" "${CMAKE_CURRENT_LIST_DIR}/\\1.lesson"
     OUTPUT_VARIABLE att_lesson_files)
add_custom_command(
  OUTPUT ${ATT_LESSON_SOURCES}
  COMMAND ${CMAKE_COMMAND} "-DLESSONS=${ATT_LESSONS}" -DFOLDER=${CMAKE_CURRENT_LIST_DIR}
          -DOUT=${ATT_LESSON_SOURCES} -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${att_lesson_files} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  COMMENT "Embedding lessons" VERBATIM)
set_source_files_properties(${ATT_LESSON_SOURCES} PROPERTIES
                            INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/apps/cli)
