#!/bin/bash
# Installs a build into an empty folder and uses it as a stranger would: each
# program of examples/ is compiled with a plain compiler and pkg-config, against
# the shared and the static libraries, must exit with 0 and print what its .txt
# says, where it has one.
# test_install.sh [BUILD]; ends with the number of cases.
cd "$(dirname "$0")/.." || exit 2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
passed=0 failed=0
cmake --install "${1:-build/release}" --prefix "$prefix" >/dev/null || exit 1
export PKG_CONFIG_PATH LD_LIBRARY_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name attend.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")

# verdict NAME COMMAND…: counts a case that succeeds or fails.
verdict() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $name"
  fi
}

# example SOURCE FLAGS…: compiles, runs, compares.
example() {
  local source=$1
  shift
  ${CC:-cc} -std=c17 -Wall -Wextra -Werror "$source" -o "$prefix/a" "$@" -lm &&
    "$prefix/a" >"$prefix/printed" || return 1
  [ ! -e "${source%.c}.txt" ] || diff "${source%.c}.txt" "$prefix/printed"
}

header_is_cxx() {
  echo "#include <attend/$1>" | ${CXX:-c++} -I"$prefix/include" -fsyntax-only -x c++ -
}

for source in examples/*.c; do
  package=attend
  grep -Eq 'attend/(attend|model|session|capture|generate|tokenizer)\.h' "$source" &&
    package=attend-model
  flags=$(pkg-config --cflags --libs $package)
  verdict "$source, shared" example "$source" $flags
  flags=$(pkg-config --cflags --libs --static $package)
  # The linker prefers shared libraries; name our static ones by their files.
  flags=$(sed "s|-l\(attend[a-z-]*\)|$LD_LIBRARY_PATH/lib\1.a|g" <<<"$flags")
  verdict "$source, static" example "$source" $flags
done
for header in "$prefix"/include/attend/*.h; do
  verdict "$(basename "$header")" header_is_cxx "$(basename "$header")"
done
verdict "attend --help" "$prefix/bin/attend" --help >/dev/null

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
