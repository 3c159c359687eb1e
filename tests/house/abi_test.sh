#!/usr/bin/env bash
# A program built against the header of hankel 0.1 runs with today's library: symbols, struct sizes, meanings.
set -eu
san=()
[ -z "${HK_SANITIZE:-}" ] || san=("-fsanitize=$HK_SANITIZE")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
abi=$HANKEL_SOURCE_DIR/tests/abi
"$HK_CC" -std=c11 -Wall -Wextra -Werror "${san[@]}" "-I$abi" "$abi/program_0_1.c" -o "$dir/program" "$LIBHANKEL" -lm \
  "-Wl,-rpath,$(dirname "$LIBHANKEL")"
"$dir/program"
echo "a program of hankel 0.1 runs"
