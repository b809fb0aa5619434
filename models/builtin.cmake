# Models compiled into libattend-model, the default one first: the files of
# models/<name> become a C file at build time. A further model is a further name.
set(ATT_BUILTIN_MODELS hand)

set(ATT_BUILTIN_SOURCES ${CMAKE_BINARY_DIR}/generated/builtin_data.c)
set(att_builtin_inputs ${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
foreach(model IN LISTS ATT_BUILTIN_MODELS)
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${model}/config.json
       ${CMAKE_CURRENT_LIST_DIR}/${model}/*.txt ${CMAKE_CURRENT_LIST_DIR}/${model}/*.safetensors)
  list(APPEND att_builtin_inputs ${found})
endforeach()
add_custom_command(
  OUTPUT ${ATT_BUILTIN_SOURCES}
  COMMAND ${CMAKE_COMMAND} "-DMODELS=${ATT_BUILTIN_MODELS}" -DFOLDER=${CMAKE_CURRENT_LIST_DIR}
          -DOUT=${ATT_BUILTIN_SOURCES} -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${att_builtin_inputs}
  COMMENT "Embedding models: ${ATT_BUILTIN_MODELS}" VERBATIM)
