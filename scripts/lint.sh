#!/usr/bin/env bash
# lint.sh format: rewrites the sources in the house style. lint.sh check BUILD: clang-format, clang-tidy or cppcheck, and
# shellcheck, each when present; fails on any finding.
set -u
cd "$(dirname "$0")/.."
verb=$1 build=${2:-build}
mapfile -t sources < <(git ls-files '*.c' '*.h')
mapfile -t shells < <(git ls-files '*.sh' .ci/run)
failed=0

if [ "$verb" = format ]; then
  exec clang-format -i "${sources[@]}"
fi
have() { command -v "$1" >/dev/null || { echo "lint: $1 is not installed: skipped"; return 1; }; }
if have clang-format; then
  clang-format --dry-run -Werror "${sources[@]}" || failed=1
fi
if have cppcheck; then
  cppcheck -q --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 -Iinclude -Isrc \
    --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective src cli || failed=1
fi
if have clang-tidy; then
  mapfile -t library < <(git ls-files 'src/base/*.c' 'src/core/*.c' 'src/plan/*.c' 'src/tune/*.c' 'src/api/*.c')
  [ ${#library[@]} -eq 0 ] || clang-tidy -quiet -p "$build" "${library[@]}" || failed=1
fi
if have shellcheck; then
  shellcheck "${shells[@]}" || failed=1
fi
[ $failed = 0 ] && echo "lint: clean"
exit $failed
