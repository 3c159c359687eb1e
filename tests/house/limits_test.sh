#!/usr/bin/env bash
# Functions of more than 60 lines outside templates, functions of more than 7 parameters and repeated blocks become no more
# (LIMITS in scripts/house.py). A tree that breaks each limit must be refused, else the test itself is wrong.
set -eu
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
command -v python3 > /dev/null && command -v git > /dev/null || { echo "no python3 or git"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
git -C "$dir" init -q
{
  for n in one two; do
    echo "void long_$n(void) {"
    for i in $(seq 60); do echo "  call_$n($i);"; done
    echo '}'
  done
  for i in $(seq 100); do echo "int wide_$i(int a, int b, int c, int d, int e, int f, int g, int h) { return $i; }"; done
} > "$dir/src/one.c"
for i in $(seq 100); do sed -n 2,10p "$dir/src/one.c" > "$dir/src/copy_$i.c"; done
git -C "$dir" add -A
if python3 "$root/scripts/house.py" --check "$dir" > "$dir/out"; then echo "a tree of bad functions passed"; exit 1; fi
for row in functions parameters duplicates; do grep -q "^$row: " "$dir/out" || { echo "not seen: $row"; exit 1; }; done
git -C "$root" rev-parse HEAD > /dev/null 2>&1 || { echo "not a git checkout"; exit 77; }
python3 "$root/scripts/house.py" --check "$root"
