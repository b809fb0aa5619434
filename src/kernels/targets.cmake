# Only these files get instruction-set flags; each is a few lines that pick a
# vector header and emit a kernel table. x86 only so far: avx2, avx512.
file(GLOB ATT_TARGET_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/target/*.c)
set_source_files_properties(${ATT_TARGET_SOURCES} PROPERTIES COMPILE_OPTIONS "-O3")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ATT_FLAGS_plain_fma -mfma)
  set(ATT_FLAGS_generic_fma -mfma)
  set(ATT_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(ATT_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
endif()
foreach(name plain_fma generic_fma avx2 avx512)
  if(ATT_FLAGS_${name})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/target/${name}.c PROPERTIES
                                COMPILE_OPTIONS "-O3;${ATT_FLAGS_${name}}")
  endif()
endforeach()
