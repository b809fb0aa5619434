# Writes a C file that holds files of models as bytes. A row of MODELS is
# "name|file|file …"; the build runs
#
#   cmake "-DMODELS=hand|hand/config.json|hand/model.safetensors" -DFOLDER=models -DOUT=data.c
#         -P embed.cmake
#
# Inside the program a .gguf is called model.gguf and a .safetensors model.safetensors;
# other files keep their names. Nothing but CMake and a C compiler is needed, so a cross
# build works as any. Bytes are string literals, which compilers read far faster than
# lists of numbers; the zero that C puts behind each is not counted.
cmake_minimum_required(VERSION 3.20)
set(written "")
set(arrays "")
set(tables "")
set(rows "")
string(REPEAT "[0-9a-f]" 64 line)

# The name that a file has inside the program.
function(inner_name out path)
  get_filename_component(name ${path} NAME)
  get_filename_component(ending ${path} LAST_EXT)
  if(ending STREQUAL ".gguf" OR ending STREQUAL ".safetensors")
    set(name model${ending})
  endif()
  set(${out} ${name} PARENT_SCOPE)
endfunction()

foreach(row IN LISTS MODELS)
  string(REPLACE "|" ";" files "${row}")
  list(POP_FRONT files model)
  string(MAKE_C_IDENTIFIER "files_${model}" table)
  string(APPEND tables "static const att_builtin_file ${table}[] = {\n")
  foreach(path IN LISTS files)
    string(MAKE_C_IDENTIFIER "${path}" id)
    if(NOT path IN_LIST written)
      list(APPEND written ${path})
      file(READ ${FOLDER}/${path} hex HEX)
      string(REGEX REPLACE "(${line})" "\\1\"\n\"" hex "${hex}")
      string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" hex "${hex}")
      string(APPEND arrays "static _Alignas(64) const char ${id}[] =\n\"${hex}\";\n\n")
    endif()
    inner_name(name ${path})
    string(APPEND tables "    {\"${name}\", (const unsigned char *)${id}, sizeof ${id} - 1},\n")
  endforeach()
  string(APPEND tables "};\n\n")
  list(LENGTH files count)
  string(APPEND rows "    {\"${model}\", ${count}, ${table}},\n")
endforeach()
list(LENGTH MODELS count)
file(WRITE ${OUT} "/* Made by models/embed.cmake. */\n#include \"model/builtin.h\"\n\n"
     "${arrays}${tables}const att_builtin_model att_builtin_models[] = {\n${rows}};\n"
     "const int att_builtin_count = ${count};\n")
