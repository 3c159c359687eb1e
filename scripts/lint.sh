#!/usr/bin/env bash
# `lint.sh format` rewrites the C sources by clang-format, `lint.sh sources` lists them, `lint.sh library` the host sources of
# library, command and programs. `lint.sh check BUILD` looks at the code (cppcheck and clang-tidy), the scripts (a shell
# checker), blanks and tabs, and the size rules of docs/design.md; each tool only when it is installed. It fails on any
# finding. tests/house/format_test.sh checks the format, tests/house/tidy_test.sh what clang-tidy says.
set -u
cd "$(dirname "$0")/.." || exit 1
verb=$1 build=${2:-build}
mapfile -t sources < <(git ls-files 'src/*.[ch]' 'cli/*.[ch]' 'apps/*.[ch]' 'tests/*.[ch]' \
  ':!src/cuda' ':!src/cpu' ':!src/base/*.h' ':!tests/abi' ':!tests/house')
mapfile -t library < <(git ls-files 'src/*.c' 'cli/*.c' 'apps/*.c' ':!src/cpu')
failed=0
case $verb in
  format) exec clang-format -i "${sources[@]}" ;;
  sources) printf '%s\n' "${sources[@]}"; exit ;;
  library) printf '%s\n' "${library[@]}"; exit ;;
esac
have() { command -v "$1" > /dev/null || { echo "lint: $1 is not installed: left out"; return 1; }; }

sizes() { # no source over 800 lines, each opens with a comment
  local file
  while IFS= read -r file; do
    if [ "$(wc -l < "$file")" -gt 800 ]; then echo "$file: over 800 lines"; fi
    if [[ $(head -c 2 "$file") != '/*' && $(head -c 2 "$file") != '//' ]]; then echo "$file: does not open with a comment"; fi
  done < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
}
long=$(sizes)
[ -z "$long" ] || { echo "$long"; failed=1; }
blanks=$(git grep -nIP '\s+$|\t' -- '*.c' '*.h' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' | head -20)
[ -z "$blanks" ] || { echo "tabs or blanks at the end of a line:"; echo "$blanks"; failed=1; }
if have cppcheck; then # a for loop's own condition, and structs filled through a pointer, are beyond it
  cppcheck -q --error-exitcode=1 --enable=warning --inline-suppr --std=c11 -Iinclude -Isrc -Icli -j "$(nproc)" \
    --suppress=nullPointer:src/tune/wisdom_table.c --suppress=ctuuninitvar --suppress=compareBoolExpressionWithInt \
    --suppress=duplicateAssignExpression \
    "${library[@]}" || failed=1
fi
if have clang-tidy; then
  printf '%s\n' "${library[@]}" | xargs -P "$(nproc)" -n 8 clang-tidy -quiet -p "$build" 2> /dev/null || failed=1
fi
if have shellcheck; then
  mapfile -t shells < <(git ls-files '*.sh' .ci/run)
  shellcheck -S warning "${shells[@]}" || failed=1
fi
[ $failed = 0 ] && echo "lint: clean"
exit $failed
