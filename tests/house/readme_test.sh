#!/usr/bin/env bash
# The examples of README.md, as printed there: the C one compiles without a warning against the built library and runs,
# the Python one runs, and each prints what the README says it prints (the text block after it).
set -eu
readme=$HANKEL_SOURCE_DIR/README.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# block LANGUAGE: the first fenced block of that language; output LANGUAGE: the first ```text block after it.
block() { awk -v l="$1" '/^```/ {if (on) exit; if ($0 == "```" l) {on = 1; next}} on' "$readme"; }
output() {
  awk -v l="$1" '/^```/ {if (on) exit; if ($0 == "```" l) seen = 1; else if (seen && $0 == "```text") on = 1; next} on' "$readme"
}
same() { # name, file
  diff -u <(output "$1") "$2" || { echo "the $1 example does not print what the README says"; exit 1; }
}
block c > "$dir/example.c"
[ -s "$dir/example.c" ]
san=()
[ -z "${HK_SANITIZE:-}" ] || san=("-fsanitize=$HK_SANITIZE")
"$HK_CC" -std=c11 -Wall -Wextra -Werror "${san[@]}" "-I$HANKEL_SOURCE_DIR/include" "$dir/example.c" -o "$dir/example" \
  "-L$HANKEL_BUILD_DIR/lib" "-Wl,-rpath,$HANKEL_BUILD_DIR/lib" -lhankel
"$dir/example" > "$dir/c.out"
same c "$dir/c.out"
python=$(bash "$HANKEL_SOURCE_DIR/scripts/python.sh" "$HANKEL_SOURCE_DIR")
if [ -z "${HK_SANITIZE:-}" ] && [ -n "$python" ]; then
  block python > "$dir/example.py"
  [ -s "$dir/example.py" ]
  "$python" "$dir/example.py" > "$dir/python.out"
  same python "$dir/python.out"
fi
