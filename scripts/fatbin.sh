#!/usr/bin/env bash
# Compiles one CUDA source into a fatbin, or takes it from the cache: clean builds and other build trees need not compile the
# same device code again. usage: fatbin.sh NVCC OUT SOURCE FLAG...   The key is the source and all it includes without
# comments, the flags and nvcc's version. HK_FATBIN_CACHE= (empty) turns the cache off.
set -eu
nvcc=$1 out=$2 source=$3
shift 3
root=${source%%/src/cuda/*}/src
cache=${HK_FATBIN_CACHE-${XDG_CACHE_HOME:-$HOME/.cache}/hankel/fatbin}
if [ -z "$cache" ] || ! mkdir -p "$cache" 2> /dev/null; then
  exec "$nvcc" "$@" -o "$out" "$source"
fi
# files FILE...: the files and all that they include from src/, each once
files() {
  local seen=" " todo=("$@") file name
  while [ ${#todo[@]} -gt 0 ]; do
    file=${todo[0]}
    todo=("${todo[@]:1}")
    case $seen in *" $file "*) continue ;; esac
    seen+="$file "
    for name in $(sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$file"); do
      [ -f "$root/$name" ] && todo+=("$root/$name")
    done
  done
  echo "$seen"
}
# shellcheck disable=SC2046
key=$({ "$nvcc" --version; printf '%s\n' "$@" | sed "s,-I.*,,"
        cat $(files "$source") | perl -0pe 's{/\*.*?\*/}{}gs; s/^\s+|\s+$//gm'; } | sha256sum | cut -c1-32)
entry=$cache/$(basename "$out" .fatbin)-$key
exec 9> "$entry.lock"
flock 9
if [ ! -s "$entry" ]; then
  "$nvcc" "$@" -o "$entry.part" "$source"
  mv "$entry.part" "$entry"
fi
cp "$entry" "$out"
