#!/usr/bin/env bash
# Installs into an empty prefix, moves it, and builds outside programs against it by pkg-config (shared, and static
# by the manual's command) and by CMake (both), runs each, and runs the installed command. Uninstalling leaves nothing.
set -eu
[ -z "${HK_SANITIZE:-}" ] || { echo "skipped: under sanitizers an outside program would need their run-time"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
outside=$HANKEL_SOURCE_DIR/tests/house/outside
DESTDIR=$dir cmake --install "$HANKEL_BUILD_DIR" --prefix /stage > "$dir/install.log"
mv "$dir/stage" "$dir/moved" # nothing may remember where it was installed
prefix=$dir/moved
pc=$(find "$prefix" -name hankel.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*}

version=$(sed -n 's/^#define HK_VERSION_TEXT "\(.*\)"/\1/p' "$HANKEL_SOURCE_DIR/include/hankel.h")
head -1 "$HANKEL_SOURCE_DIR/debian/changelog" | grep -qF "hankel ($version)" || { echo "debian/changelog is not of $version"; exit 1; }
for wanted in include/hankel.h "${lib#"$prefix"/}/libhankel.so.0" "${lib#"$prefix"/}/libhankel.a"; do
  [ -e "$prefix/$wanted" ] || { echo "not installed: $wanted"; exit 1; }
done
if grep -rlI "$HANKEL_BUILD_DIR" "$prefix"; then echo "the installed files name the build directory"; exit 1; fi

read -ra flags <<< "$(pkg-config --cflags --libs hankel)"
"$HK_CC" -std=c11 -Wall -Werror "$outside/main.c" -o "$dir/shared" "${flags[@]}"
LD_LIBRARY_PATH=$lib "$dir/shared"
readelf -d "$dir/shared" | grep -q 'libhankel.so.0' || { echo "the shared program does not need libhankel.so.0"; exit 1; }

line=$(sed -n '/libhankel\.a/{s/^ *cc program\.c//; s/ # .*//p;q}' "$HANKEL_SOURCE_DIR/docs/manual.md") # as the manual says it
[ -n "$line" ] || { echo "the manual does not link libhankel.a"; exit 1; }
eval "\"$HK_CC\" -std=c11 \"$outside/main.c\" -o \"$dir/static\" $line"
"$dir/static"
if readelf -d "$dir/static" | grep -q libhankel; then echo "the static program needs the shared library"; exit 1; fi

player=()
if [ -e "$prefix/include/hankel_nam.h" ]; then # where the player is built
  player=("-DPLAYER=$dir/player.c")
  read -ra flags <<< "$(pkg-config --cflags --libs hankel-nam)"
  awk '/^```/ {if (on) exit; if ($0 == "```c") {on = 1; next}} on' "$HANKEL_SOURCE_DIR/docs/nam.md" > "$dir/player.c"
  "$HK_CC" -std=c11 -Wall -Werror "$dir/player.c" -o "$dir/player" "${flags[@]}" -lm
  LD_LIBRARY_PATH=$lib "$dir/player" "$HANKEL_SOURCE_DIR/tests/fuzz/corpus/nam/wavenet.nam"
fi

cmake -S "$outside" -B "$dir/cmake" -G Ninja -DCMAKE_C_COMPILER="$HK_CC" -DCMAKE_PREFIX_PATH="$prefix" "${player[@]}" > "$dir/cmake.log" ||
  { cat "$dir/cmake.log"; exit 1; }
cmake --build "$dir/cmake" > "$dir/cmake.log" || { cat "$dir/cmake.log"; exit 1; }
"$dir/cmake/outside_shared"
"$dir/cmake/outside_static"
if [ ${#player[@]} != 0 ]; then
  "$dir/cmake/outside_nam" "$HANKEL_SOURCE_DIR/tests/fuzz/corpus/nam/wavenet.nam"
  "$dir/cmake/outside_nam_static" "$HANKEL_SOURCE_DIR/tests/fuzz/corpus/nam/wavenet.nam"
fi

[ -e "$prefix/share/doc/hankel/docs/manual.md" ] || { echo "the documents are not installed"; exit 1; }
if [ -x "$HANKEL_BIN" ]; then
  "$prefix/bin/hankel" --version
  [ -e "$prefix/share/man/man1/hankel.1" ] || { echo "no man page"; exit 1; }
  [ -e "$prefix/share/bash-completion/completions/hankel" ] || { echo "no completion"; exit 1; }
fi
if [ -x "$prefix/bin/hankel-nam" ] && ! [ -e "$prefix/share/man/man1/hankel-nam.1" ]; then echo "no man page of hankel-nam"; exit 1; fi

mkdir -p "$dir/again/usr/bin"
touch "$dir/again/usr/bin/other" # somebody else's
DESTDIR=$dir/again cmake --install "$HANKEL_BUILD_DIR" --prefix /usr > "$dir/install.log"
DESTDIR=$dir/again bash "$HANKEL_SOURCE_DIR/scripts/uninstall.sh" "$HANKEL_BUILD_DIR" /usr
left=$(find "$dir/again" -type f -o -type l)
[ "$left" = "$dir/again/usr/bin/other" ] || { echo "uninstalling left: $left"; exit 1; }
if find "$dir/again" -ipath '*hankel*' | grep .; then echo "uninstalling left folders"; exit 1; fi
