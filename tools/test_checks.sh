#!/bin/bash
# Shows that each check can fail: gives it a tiny tree with one fault and
# expects a refusal that names it. Ends with the number of cases.
tools=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# A small tree that every check accepts.
sound_tree() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree"/{include/attend,src/{base,kernels/vec,kv,io,model},apps/cli}
  cd "$scratch/tree" || exit 2
  cp "$tools/../.clang-format" .
  printf '#ifndef S_H\n#define S_H\nint att_s(void);\n#endif\n' >include/attend/status.h
  printf '#include "attend/status.h"\nint att_s(void) { return 1; }\n' >src/base/status.c
}

# verdict NAME CHECK EXPECTED: runs CHECK on the tree; EXPECTED is "" for a pass.
verdict() {
  local output
  output=$("$tools/"$2 "$scratch/tree" 2>&1)
  local code=$?
  if [[ $code == $([ -z "$3" ]; echo $?) && $output == *"$3"* ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $2, $1: exit $code, expected ${3:-a pass}, said: $output"
  fi
}

# refuse CHECK EXPECTED FILE LINE…: one fault in an otherwise sound tree.
refuse() {
  local check=$1 expected=$2 file=$3
  shift 3
  sound_tree
  mkdir -p "$(dirname "$file")"
  printf '%b\n' "$@" >"$file"
  verdict "$file" "$check" "$expected"
}

for check in check_layers check_sizes check_text check_headers check_format; do
  sound_tree
  verdict "sound tree" $check ""
done

refuse check_layers 'base (L0) must not see kv (L3)' src/base/a.c '#include "kv/cache.h"'
refuse check_layers 'io (L3) must not see kv (L3)' src/io/a.c '#include "kv/cache.h"'
refuse check_layers 'base (L0) must not see kv (L3)' src/base/a.h '#include "attend/cache.h"'
refuse check_layers 'kv (L3) must not see model (L6)' include/attend/cache.h '#include "attend/model.h"'
refuse check_layers 'programs see' apps/cli/a.c '#include "base/alloc.h"'
refuse check_layers 'not in tools/layers.txt' include/attend/novel.h '#include "attend/status.h"'
refuse check_layers 'not in tools/layers.txt' src/novel/a.c '#include "base/alloc.h"'
refuse check_layers 'includes the source file' src/base/a.c '#include "base/status.c"'
refuse check_layers 'write it as' src/base/a.c '#include "elsewhere/b.h"'
refuse check_layers '<immintrin.h> may' src/kernels/a.c '#include <immintrin.h>'
refuse check_layers '<pthread.h> may' src/model/a.c '#include <pthread.h>'
refuse check_layers '<sys/mman.h> may' src/io/a.c '  #  include <sys/mman.h>'

refuse check_layers 'shows other levels' docs/ARCHITECTURE.md 'L0 base'

refuse check_sizes '701 lines' src/base/a.c "$(yes '/* a */' | head -701)"
refuse check_sizes '701 lines' tests/cli/a.py "$(yes '# a' | head -701)"
refuse check_sizes 'function of 81 lines' src/base/a.c 'int a(void) {' "$(yes '  ;' | head -79)" '}'
sound_tree
for file in a b c d; do yes '/* a */' | head -300 >src/base/$file.c; done
verdict "long files" check_sizes 'median file has 300 lines'

refuse check_text 'src/base/a.c:2: tab' src/base/a.c 'int a;' '\tint b;'
refuse check_text 'trailing blank' README.md 'text '
refuse check_text 'U+200B' README.md 'te\xe2\x80\x8bxt'
refuse check_text 'U+202E' src/base/a.c '/* \xe2\x80\xae */'
refuse check_text 'not UTF-8' README.md 'te\xffxt'
refuse check_text 'one newline' README.md 'text\n'
refuse check_text 'file an issue' src/base/a.c '/* TO''DO */'
refuse check_text 'path of one machine' README.md 'see /ho''me/me/x'
refuse check_text '101 columns' src/base/a.c "/*$(printf '%97s')*/"
refuse check_text 'switched off' src/base/a.c '#if 0'
refuse check_text 'says nothing' src/base/utils.c 'int a;'

refuse check_headers 'c17' include/attend/a.h 'size_t a;'
refuse check_headers 'c++17' include/attend/a.h '#ifndef A' '#define A' 'int class;' '#endif'
refuse check_headers 'c17' include/attend/a.h 'typedef struct a { int b; } a;'

refuse check_format 'make format' src/base/a.c 'int a( void ){return 1 ;}'

# symbols EXPECTED FILE LINE…: the sound tree built, with these lines in FILE.
symbols() {
  local expected=$1 file=$2
  shift 2
  sound_tree
  sed -i 's/^int att_s/ATT_API &/' include/attend/status.h
  printf '%s\n' 'int att_s(void) { return 1; }' "$@" >"$file"
  ${CC:-cc} -w -fno-builtin -fPIC -c "$file" -o "$file.o" && ar rc libattend.a "$file.o"
  verdict "$file: $*" "check_symbols $scratch/tree" "$expected"
}

symbols '' a.c 'void *memcpy(); void att_a(void) { memcpy(0, 0, 0); }'
symbols 'expf' a.c 'float expf(float); float att_a(float x) { return expf(x); }'
symbols 'tanh' a.c 'double tanh(double); double att_a(double x) { return tanh(x); }'
symbols 'malloc' a.c 'void *malloc(); void *att_a(void) { return malloc(1); }'
symbols '' alloc.c 'void *calloc(); void *att_a(void) { return calloc(8, 8); }'
symbols 'printf' a.c 'void printf(); void att_a(void) { printf("a"); }'
symbols 'exit' a.c 'void exit(); void att_a(void) { exit(1); }'
symbols 'getenv' a.c 'void *getenv(); void *att_a(void) { return getenv("A"); }'
symbols 'lacks the prefix' a.c 'int b;'
symbols '' a.c 'int att_b;'
${CC:-cc} -shared a.c.o -o libattend.so
verdict "exports of a shared library" "check_symbols $scratch/tree" 'att_b is exported'
echo 'ATT_API void att_c(void);' >>include/attend/status.h
verdict "a function without a body" "check_symbols $scratch/tree" 'att_c is declared and nowhere'

# instructions EXPECTED FLAGS FILE LINE…: the same with compiler flags.
instructions() {
  local expected=$1 flags=$2 file=$3
  shift 3
  sound_tree
  printf '%s\n' "$@" >"$file"
  ${CC:-cc} -O2 $flags -c "$file" -o "$file.o" && ar rc libattend.a "$file.o"
  verdict "$file $flags" "check_instructions $scratch/tree" "$expected"
}

if [ "$(uname -m)" = x86_64 ]; then
  instructions '' '' a.c 'float a(float x) { return x * x; }'
  instructions 'AVX instructions' -mavx2 a.c 'float a(float x) { return x * x; }'
  instructions 'only 0' -mavx2 avx2.c 'float a(float x) { return x * x; }'
  instructions 'narrower multiply-adds' -mfma avx2.c \
    'float product(float x) { return __builtin_fmaf(x, x, x); }'
fi

# The summary counts crashes as failures and skips as skips.
python3 -m doctest "$tools/counts.py" && passed=$((passed + 1)) || failed=$((failed + 1))

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
