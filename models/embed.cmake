# Writes a C file that holds the files of models/<name> as bytes, for every
# <name> of MODELS. Run by the build:
#
#   cmake -DMODELS=hand -DFOLDER=models -DOUT=builtin_data.c -P embed.cmake
#
# Nothing but CMake and a C compiler is needed, so a cross build works as any.
set(arrays "")
set(tables "")
set(rows "")
string(REPEAT "[0-9a-f]" 64 line)
foreach(model IN LISTS MODELS)
  file(GLOB paths ${FOLDER}/${model}/config.json ${FOLDER}/${model}/*.txt
       ${FOLDER}/${model}/*.safetensors)
  set(files "")
  foreach(path IN LISTS paths)
    get_filename_component(name ${path} NAME)
    string(MAKE_C_IDENTIFIER ${model}_${name} id)
    file(READ ${path} hex HEX)
    string(REGEX REPLACE "(${line})" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    file(SIZE ${path} size)
    string(APPEND arrays "static _Alignas(64) const unsigned char ${id}[] = {\n${hex}};\n\n")
    string(APPEND files "    {\"${name}\", ${id}, ${size}},\n")
  endforeach()
  string(APPEND tables "static const att_builtin_file ${model}_files[] = {\n${files}};\n\n")
  list(LENGTH paths count)
  string(APPEND rows "    {\"${model}\", ${count}, ${model}_files},\n")
endforeach()
list(LENGTH MODELS count)
file(WRITE ${OUT} "/* Made by models/embed.cmake. */\n#include \"model/builtin.h\"\n\n"
     "${arrays}${tables}const att_builtin_model att_builtin_models[] = {\n${rows}};\n"
     "const int att_builtin_count = ${count};\n")
