#!/usr/bin/env bash
# scripts/house.py counts a small tree of known figures, and prints the tree it stands in.
set -eu
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
command -v python3 > /dev/null && command -v git > /dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/src/plan" "$dir/docs"
git -C "$dir" init -q
{
  echo '/* x lies turned on its desk, 8 channels a thread: "f(a, b) {". */'
  echo 'int wide(int a, int b, int c, int d, int e, int f, int g, int h) { return a; }'
  echo 'static double predict(const int (*p)[3], int n) { return n * 1.5 + 2 * 0.25; }'
  echo 'void (*table[2])(int) = {0, 0};'
  echo 'void long_one(void) {'
  for i in $(seq 60); do echo "  call($i);"; done
  echo '}'
} > "$dir/src/plan/one.c"
{ echo '/* Repeats. */'; sed -n 10,19p "$dir/src/plan/one.c"; printf '%121s\n' x; } > "$dir/src/plan/two.c"
printf 'HK_ALGO(igemm)\nHK_ALGO(relay_igemm)\n' > "$dir/src/plan/algos.inc"
echo 'The copy engine, and `relay_igemm`.' > "$dir/docs/page.md"
git -C "$dir" add -A
git -C "$dir" -c user.name=t -c user.email=t@t commit -qm one
python3 "$root/scripts/house.py" "$dir" > "$dir/out"
expect() { grep -qF "| $1 | $2 |" "$dir/out" || { echo "expected: $1 | $2"; cat "$dir/out"; exit 1; }; }
expect "algorithm rows" 2
expect "product rows" 1
expect "functions over 60 lines (+ in templates)" "1 (+ 0)"
expect "functions over 7 parameters" 1
expect "literals in cost code (files)" "2 (1)"
expect "words of the old dialect: code / documents" "4 / 1"
expect "repeated blocks of 8 lines and more" 1
expect "lines over 120 columns" 1
if git -C "$root" rev-parse HEAD > /dev/null 2>&1; then python3 "$root/scripts/house.py" "$root"; fi
