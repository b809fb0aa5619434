# The kernel targets of this processor, as rows of targets.inc name them. Only
# these files get instruction-set flags; each is a few lines that pick a vector
# header and emit a kernel table. The compiler's 64-byte vectors of `generic`
# never cross a call, so its note about their ABI has no subject. Sanitized
# bodies are compiled without unrolling. Loops of a few dozen long instructions run some
# per cent slower where they happen to begin late in a line of 64 bytes.
set(targets plain portable generic)
set(ATT_FLAGS_generic -Wno-psabi)
set(ATT_FLAGS_generic_fma -Wno-psabi)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND targets avx512 avx2 sse2 plain_fma generic_fma)
  set(ATT_FLAGS_plain_fma -mfma)
  list(APPEND ATT_FLAGS_generic_fma -mfma)
  set(ATT_FLAGS_avx2 -mavx2 -mfma -mf16c -falign-loops=64)
  set(ATT_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
      -falign-loops=64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND targets neon)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
  list(APPEND targets wasm128)
  set(ATT_FLAGS_wasm128 -msimd128)
endif()
set(ATT_TARGET_OPTIMISE -O3)
if(ATT_SANITIZE)
  set(ATT_TARGET_OPTIMISE -O1)
endif()
set(ATT_TARGET_SOURCES)
foreach(name ${targets})
  set(source ${CMAKE_SOURCE_DIR}/src/kernels/target/${name}.c)
  list(APPEND ATT_TARGET_SOURCES ${source})
  set_source_files_properties(${source} PROPERTIES
                              COMPILE_OPTIONS "${ATT_TARGET_OPTIMISE};${ATT_FLAGS_${name}}")
endforeach()
