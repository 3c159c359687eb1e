#!/usr/bin/env bash
# Folders show the architecture: every folder below src, cli and apps that holds sources, and each of these three, has a
# README.md of one paragraph (a title, then at most 12 lines) and at most 40 files. `--self-test` shows that a folder
# without one and a folder of 41 files are seen.
set -u
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
most=40 lines=12

# check_tree DIR: prints a line for each folder that breaks a rule.
check_tree() {
  local tree=$1 folder files
  while IFS= read -r folder; do
    files=$(find "$tree/$folder" -maxdepth 1 -type f ! -name README.md | wc -l)
    [ "$files" -le $most ] || echo "$folder: $files files; at most $most, split it"
    if [ ! -e "$tree/$folder/README.md" ]; then
      echo "$folder: no README.md"
    elif [ "$(grep -c . "$tree/$folder/README.md")" -gt $((lines + 1)) ]; then
      echo "$folder/README.md: more than one paragraph of $lines lines"
    fi
  done < <(cd "$tree" && { ls -d src cli apps; find src cli apps -type f \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) -printf '%h\n'; } 2> /dev/null | sort -u)
}

self_test() {
  local dir found
  dir=$(mktemp -d)
  mkdir -p "$dir"/src/{full,bare,good}
  echo "# src" | tee "$dir/src/README.md" "$dir/src/full/README.md" > "$dir/src/good/README.md"
  touch "$dir/src/bare/a.c" "$dir/src/good/a.c" "$dir"/src/full/{1..41}.c
  found=$(check_tree "$dir")
  rm -rf "$dir"
  [ "$(wc -l <<< "$found")" = 2 ] && grep -q 'src/bare: no README' <<< "$found" && grep -q 'src/full: 41 files' <<< "$found"
}

self_test || { echo "the test does not see a bad folder"; exit 1; }
[ "${1:-}" = --self-test ] && exit 0
found=$(check_tree "$root")
[ -z "$found" ] || { echo "$found"; exit 1; }
echo "folders: each has a README.md and at most $most files"
