#!/usr/bin/env bash
# hankel.h compiles alone, as the first and only include, without a warning: C11, C17, C++11 and C++17, by every compiler
# here. Every section that declares functions says which threads may call them; no function takes more than 7 arguments.
set -eu
include=$HANKEL_SOURCE_DIR/include
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo '#include <hankel.h>
int main(void) { return hk_version() == 0; }' > "$dir/alone.c"
cp "$dir/alone.c" "$dir/alone.cc"
tried=0
check() { # compiler standard file
  command -v "$1" > /dev/null || return 0
  "$1" -std="$2" -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$include" "$3"
  echo "ok: $1 $2"
  tried=$((tried + 1))
}
for cc in "$HK_CC" gcc clang; do
  check "$cc" c11 "$dir/alone.c"
  check "$cc" c17 "$dir/alone.c"
done
for cxx in g++ clang++; do
  check $cxx c++11 "$dir/alone.cc"
  check $cxx c++17 "$dir/alone.cc"
done
[ $tried -gt 2 ]
awk '/^\/\* -----/ { if (functions && !threads) { print "no \"Threads:\" line: " section; bad = 1 }
                      section = $0; functions = threads = 0 }
     /Threads:/ && section { threads = 1 }
     /^HK_API/ { functions = 1 }
     END { if (functions && !threads) { print "no \"Threads:\" line: " section; bad = 1 } exit bad }' "$include/hankel.h"
long=$("$HK_CC" -E -P "$include/hankel.h" | tr '\n' ' ' | tr ';' '\n' | grep 'visibility("default")' |
  awk -F, 'NF > 7 { print }')
[ -z "$long" ] || { echo "more than 7 arguments: $long"; exit 1; }
