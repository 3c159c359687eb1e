#!/usr/bin/env bash
# clang-tidy 14 has nothing to say (.clang-tidy): its checks of the syntax tree over all host sources of library, command and
# programs, and the analyzer, which takes seconds per file, over the dozen that changed last. `make lint` analyzes all of
# them. A source with a fault of each kind must be refused, else the test itself is wrong. Other versions are not asked.
set -u
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${HANKEL_BUILD_DIR:-$root/build}
cd "$root" || exit 1
[ -z "${HK_SANITIZE:-}" ] || { echo "runs without sanitizers only"; exit 77; }
clang-tidy --version 2> /dev/null | grep -q 'version 14\.' || { echo "clang-tidy 14 is not installed"; exit 77; }
[ -e "$build/compile_commands.json" ] || { echo "no compile_commands.json in $build"; exit 77; }
git rev-parse HEAD > /dev/null 2>&1 || { echo "not a git checkout"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

cat > "$tmp/bad.c" << 'C'
#include <stdlib.h>
int same(int a) { return a == a; }
void twice(void) {
  void *p = malloc(8);
  free(p);
  free(p);
}
C
said=$(clang-tidy -quiet --config-file="$root/.clang-tidy" "$tmp/bad.c" -- 2> /dev/null)
for check in misc-redundant-expression clang-analyzer-unix.Malloc; do
  grep -q "$check" <<< "$said" || { echo "the fault for $check was not seen"; exit 1; }
done

tidy() { # FLAG: over the files on stdin
  xargs -r -P 2 -n 8 clang-tidy -quiet "$1" -p "$build" > "$tmp/said" 2> /dev/null || { failed=1; head -60 "$tmp/said"; }
}
# only what this build compiles: without jansson, say, some programs are not
known() { grep -Fx -f <(sed -n 's,^ *"file": ".*/\(\(src\|cli\|apps\)/.*\)".*,\1,p' "$build/compile_commands.json" | sort -u); }
scripts/lint.sh library | known > "$tmp/all"
git log -60 --format= --name-only --diff-filter=AM | awk '!seen[$0]++' | grep -Fx -f "$tmp/all" | head -12 > "$tmp/recent"
tidy '-checks=-clang-analyzer-*' < "$tmp/all"
tidy '-checks=-*,clang-analyzer-unix.*,clang-analyzer-deadcode.*' < "$tmp/recent"
echo "tidy: $(wc -l < "$tmp/all") files, $(wc -l < "$tmp/recent") of them analyzed"
exit $failed
