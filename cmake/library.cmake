# How a library of attend is made: static and shared from the same objects, with
# headers and a pkg-config file when installed.
#
# What a shared library exports is decided by a version script, not by
# visibility: the functions that the public headers declare with ATT_API get the
# version ATTEND_<major>, and the internal ones that libattend-model takes from
# libattend the version ATTEND_PRIVATE_<version>, which fits only the very same
# version. See docs/decisions/0005-shared-libraries.md.

# Sets `out` to the sources of some folders of src/. In WebAssembly x_wasm.c takes
# the place of x.c; elsewhere it is left out.
function(att_sources out)
  set(all)
  foreach(folder ${ARGN})
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.c)
    list(APPEND all ${found})
  endforeach()
  set(other ${all})
  list(FILTER other INCLUDE REGEX "_wasm\\.c$")
  if(ATT_WASM)
    list(TRANSFORM other REPLACE "_wasm\\.c$" ".c")
  endif()
  if(other)
    list(REMOVE_ITEM all ${other})
  endif()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# Writes exports.map for the linker, from the public headers.
function(att_write_exports file)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/attend/*.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(names)
  foreach(header ${headers})
    file(STRINGS ${header} lines REGEX "^ATT_API .*att_[a-z0-9_]+\\(")
    foreach(line ${lines})
      string(REGEX REPLACE ".*(att_[a-z0-9_]+)\\(.*" "\\1" name "${line}")
      string(APPEND names "    ${name}#\n")
    endforeach()
  endforeach()
  string(REPLACE "#" ";" names "${names}")
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
"ATTEND_@PROJECT_VERSION_MAJOR@ {
  global:
@names@  local:
    *;
};
ATTEND_PRIVATE_@PROJECT_VERSION@ {
  global:
    att_*;
};
")
endfunction()

# att_library(NAME NEEDS library… SOURCES file…): the targets NAME (static) and
# NAME-shared, from the same objects.
function(att_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NEEDS;SOURCES")
  add_library(${name}-objects OBJECT ${arg_SOURCES})
  target_include_directories(${name}-objects PRIVATE ${PROJECT_SOURCE_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  add_library(${name} STATIC $<TARGET_OBJECTS:${name}-objects>)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC ${arg_NEEDS})
  install(TARGETS ${name})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  if(ATT_SHARED)
    add_library(${name}-shared SHARED $<TARGET_OBJECTS:${name}-objects>)
    foreach(need ${arg_NEEDS})
      if(TARGET ${need}-shared)
        set(need ${need}-shared)
      endif()
      target_link_libraries(${name}-shared PRIVATE ${need})
    endforeach()
    set_target_properties(${name}-shared PROPERTIES OUTPUT_NAME ${name}
                          VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    if(NOT APPLE)
      set(exports ${PROJECT_BINARY_DIR}/exports.map)
      att_write_exports(${exports})
      target_link_options(${name}-shared PRIVATE LINKER:--version-script=${exports}
                          LINKER:--no-undefined)
      set_target_properties(${name}-shared PROPERTIES LINK_DEPENDS ${exports})
    endif()
    install(TARGETS ${name}-shared)
  endif()
endfunction()
