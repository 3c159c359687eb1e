#!/usr/bin/env bash
# `lint.sh format` rewrites the C sources by clang-format. `lint.sh check BUILD` looks at the code (cppcheck and
# clang-tidy), the scripts (a shell checker), blanks and tabs, and the size rules of docs/design.md; each tool only when
# it is installed. It fails on any finding, but only counts what clang-format would change.
set -u
cd "$(dirname "$0")/.." || exit 1
verb=$1 build=${2:-build}
mapfile -t sources < <(git ls-files 'src/*.c' 'cli/*.c' 'apps/*.c' 'tests/*.c' 'bench/*.c')
failed=0
if [ "$verb" = format ]; then
  exec clang-format -i "${sources[@]}"
fi
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
if have clang-format; then # advice: tables and one-line structs laid out by hand may stay so
  echo "lint: $(clang-format --dry-run "${sources[@]}" 2>&1 | grep -c 'clang-format-violations') places differ from make format"
fi
mapfile -t library < <(git ls-files 'src/base/*.c' 'src/core/*.c' 'src/plan/*.c' 'src/tune/*.c' 'src/stream/*.c' 'src/api/*.c' \
  'cli/*.c')
if have cppcheck; then # a for loop's own condition, and structs filled through a pointer, are beyond it
  cppcheck -q --error-exitcode=1 --enable=warning --inline-suppr --std=c11 -Iinclude -Isrc -j "$(nproc)" \
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
