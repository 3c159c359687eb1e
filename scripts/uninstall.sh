#!/usr/bin/env bash
# Removes what `cmake --install BUILD --prefix PREFIX` puts in place: it installs into an empty folder, and deletes the same
# names under DESTDIR and PREFIX, then the folders of hankel's own that are empty. usage: uninstall.sh BUILD PREFIX
set -eu
build=$1 prefix=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR=$stage cmake --install "$build" --prefix "$prefix" > /dev/null
count=0
while IFS= read -r name; do
  if [ -e "${DESTDIR:-}/$name" ] || [ -L "${DESTDIR:-}/$name" ]; then
    rm -f "${DESTDIR:-}/$name"
    count=$((count + 1))
  fi
done < <(cd "$stage" && find . -type f -o -type l | sed 's,^\./,,')
while IFS= read -r name; do
  rmdir --ignore-fail-on-non-empty "${DESTDIR:-}/$name" 2> /dev/null || true
done < <(cd "$stage" && find . -depth -type d -path '*hankel*' | sed 's,^\./,,')
echo "uninstalled $count files from ${DESTDIR:-}$prefix"
