# Models compiled into libattend-model, the default one first. A row is a name, which
# -m takes, and the files of the model, below this folder: a .gguf, or what a model
# folder has. They become a C file at build time; files may be in several rows.
set(ATT_BUILTIN_MODELS "")
function(att_builtin_model name)
  list(JOIN ARGN "|" files)
  set(ATT_BUILTIN_MODELS ${ATT_BUILTIN_MODELS} "${name}|${files}" PARENT_SCOPE)
endfunction()

# The trained ones are no part of the module for JavaScript, which pages load whole: there a
# model comes as a file, and the default one is hand.
if(NOT ATT_WASM)
  att_builtin_model(story story/story.gguf)
endif()
att_builtin_model(hand hand/config.json hand/words.txt hand/model.safetensors)
if(NOT ATT_WASM)
  # induction as it was at each checkpoint of its training, induction@0 …, and at the end.
  set(shared induction/checkpoints/config.json induction/checkpoints/tokenizer.json)
  file(GLOB steps RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_LIST_DIR}/induction/checkpoints/step-*.safetensors)
  list(SORT steps COMPARE NATURAL)
  foreach(path IN LISTS steps)
    string(REGEX REPLACE ".*step-([0-9]+).safetensors" "\\1" step ${path})
    att_builtin_model(induction@${step} ${shared} ${path})
  endforeach()
  if(steps)
    list(GET steps -1 path)
    att_builtin_model(induction ${shared} ${path})
  endif()
endif()

set(ATT_BUILTIN_SOURCES ${CMAKE_BINARY_DIR}/generated/builtin_data.c)
set(att_builtin_inputs ${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
foreach(row IN LISTS ATT_BUILTIN_MODELS)
  string(REPLACE "|" ";" files "${row}")
  list(POP_FRONT files)
  list(TRANSFORM files PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
  list(APPEND att_builtin_inputs ${files})
endforeach()
list(REMOVE_DUPLICATES att_builtin_inputs)
add_custom_command(
  OUTPUT ${ATT_BUILTIN_SOURCES}
  COMMAND ${CMAKE_COMMAND} "-DMODELS=${ATT_BUILTIN_MODELS}" -DFOLDER=${CMAKE_CURRENT_LIST_DIR}
          -DOUT=${ATT_BUILTIN_SOURCES} -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${att_builtin_inputs}
  COMMENT "Embedding models" VERBATIM)
