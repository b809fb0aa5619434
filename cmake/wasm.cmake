# Toolchain: WebAssembly with SIMD128 by clang and wasi-libc (Debian's), programs
# run by node. Relaxed SIMD stays off: its results depend on the host.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_SYSROOT /usr)
set(CMAKE_C_FLAGS_INIT "-D_WASI_EMULATED_MMAN -D_WASI_EMULATED_GETPID -Wno-unused-command-line-argument")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-lwasi-emulated-mman -lwasi-emulated-getpid -Wl,-z,stack-size=1048576")
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-warnings ${CMAKE_CURRENT_LIST_DIR}/../wasm/run.mjs)
