# Toolchain: aarch64 Linux from Debian's cross compiler, tests under qemu.
# tools/fetch_aarch64 brings the libraries that attend links; without them only
# libattend and what needs nothing else can be built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(packages ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-packages)
set(CMAKE_FIND_ROOT_PATH ${packages} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${packages}/usr/include)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu
                                  -E ATT_TEST_EMULATED=aarch64
                                  -E LD_LIBRARY_PATH=${packages}/usr/lib/aarch64-linux-gnu)
