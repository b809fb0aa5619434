# Only these files get instruction-set flags; each is a few lines that pick a
# vector header and emit a kernel table. x86 only so far: avx2, avx512. The
# compiler's 64-byte vectors of `generic` never cross a call, so its note about
# their ABI has no subject. Sanitized bodies are compiled without unrolling.
file(GLOB ATT_TARGET_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/target/*.c)
set(ATT_FLAGS_generic -Wno-psabi)
set(ATT_FLAGS_generic_fma -Wno-psabi)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ATT_FLAGS_plain_fma -mfma)
  list(APPEND ATT_FLAGS_generic_fma -mfma)
  set(ATT_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(ATT_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
endif()
set(ATT_TARGET_OPTIMISE -O3)
if(ATT_SANITIZE)
  set(ATT_TARGET_OPTIMISE -O1)
endif()
foreach(source ${ATT_TARGET_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  set_source_files_properties(${source} PROPERTIES
                              COMPILE_OPTIONS "${ATT_TARGET_OPTIMISE};${ATT_FLAGS_${name}}")
endforeach()
