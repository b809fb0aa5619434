# Writes a C file that holds lessons/<name>.lesson as bytes, for every <name> of
# LESSONS. Run by the build; nothing but CMake is needed.
set(arrays "")
set(rows "")
foreach(name IN LISTS LESSONS)
  string(MAKE_C_IDENTIFIER ${name} id)
  set(path ${FOLDER}/${name}.lesson)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(0x0a,)" "\\1\n" hex "${hex}")
  file(SIZE ${path} size)
  string(APPEND arrays "static const unsigned char ${id}[] = {\n${hex}};\n\n")
  string(APPEND rows "    {\"${name}\", \"${name}.lesson\", (const char *)${id}, ${size}},\n")
endforeach()
list(LENGTH LESSONS count)
file(WRITE ${OUT} "/* Made by lessons/embed.cmake. */\n#include \"lessons_data.h\"\n\n"
     "${arrays}const lesson_data lessons[] = {\n${rows}};\nconst int lessons_count = ${count};\n")
