#!/usr/bin/env bash
# `lint.sh format` rewrites the C sources in the house style. `lint.sh check BUILD` looks at style (by clang-format),
# at the code (by cppcheck and clang-tidy), at the scripts (by a shell checker), and at the size rules of
# docs/design.md; each tool only when it is installed. It fails on any finding.
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
if have clang-format; then
  clang-format --dry-run -Werror "${sources[@]}" || failed=1
fi
if have cppcheck; then
  cppcheck -q --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 -Iinclude -Isrc \
    --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective src/base src/core src/plan src/tune src/api cli || failed=1
fi
if have clang-tidy; then
  mapfile -t library < <(git ls-files 'src/base/*.c' 'src/core/*.c' 'src/plan/*.c' 'src/tune/*.c' 'src/api/*.c' 'cli/*.c')
  clang-tidy -quiet -p "$build" "${library[@]}" || failed=1
fi
if have shellcheck; then
  mapfile -t shells < <(git ls-files '*.sh' .ci/run)
  shellcheck -S warning "${shells[@]}" || failed=1
fi
[ $failed = 0 ] && echo "lint: clean"
exit $failed
