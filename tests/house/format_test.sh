#!/usr/bin/env bash
# The C sources are as clang-format 14 writes them (.clang-format, `make format`), and no line of C or CUDA is longer than
# 120 columns. Kernel templates, lists and device sources, laid out by hand, and the public header are left to the second
# rule. Other versions of clang-format lay out some lines otherwise and are not asked.
set -u
cd "${HANKEL_SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
failed=0
long=$(git ls-files '*.c' '*.h' '*.inc' '*.cu' '*.cuh' ':!tests/abi' | xargs awk 'length > 120 {print FILENAME ":" FNR}')
[ -z "$long" ] || { echo "lines of more than 120 columns:"; echo "$long" | head -20; failed=1; }
if clang-format --version 2> /dev/null | grep -q 'version 14\.'; then
  mapfile -t sources < <(scripts/lint.sh sources)
  clang-format --dry-run -Werror "${sources[@]}" 2>&1 | head -20
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
else
  echo "clang-format 14 is not installed: only the length of lines was checked"
fi
exit $failed
