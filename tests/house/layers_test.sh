#!/usr/bin/env bash
# Who may include whom (docs/design.md). Reads every #include "..." of the tree:
#   base < core < cost < cpu, cuda < plan < tune < stream, causal < longconv < api: a folder includes only itself and
#   folders to its left, and cpu
#   and cuda never each other; kernel sources (src/cpu/{x86,arm,scalar,tmpl}) see only base, ukernel.h, their vocabulary
#   and their template; cli, apps and bench see hankel.h and their own headers.
# `--self-test` shows that a forbidden include is seen.
set -u
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}

declare -A level=([base]=0 [core]=1 [cost]=2 [cpu]=3 [cuda]=3 [plan]=4 [tune]=5 [stream]=6 [causal]=6 [longconv]=7
  [api]=8)

# check_tree DIR: prints a line for each forbidden include.
check_tree() {
  local tree=$1 file folder include target from to
  while IFS= read -r line; do
    file=${line%%:*}
    include=${line#*\"}
    include=${include%%\"*}
    [ "$include" = hankel.h ] && continue
    # What the name means: beside the file, or under src/.
    folder=${file%/*}
    if [ -e "$tree/$folder/$include" ]; then
      target=$folder/$include
      while [[ $target =~ ^(.*/)?[^/]+/\.\./(.*)$ ]]; do target=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
    else
      target=src/$include
    fi
    case $file in
      src/cpu/x86/* | src/cpu/arm/* | src/cpu/scalar/* | src/cpu/tmpl/*)
        case $target in
          src/base/* | src/cpu/ukernel.h | src/cpu/kernels.inc | src/cpu/tmpl/* | "$folder"/*) ;;
          *) echo "$file: a kernel source includes $include" ;;
        esac
        ;;
      src/*)
        case $target in
          src/*)
            from=${file#src/} to=${target#src/}
            from=${from%%/*} to=${to%%/*}
            if [ "$from" != "$to" ] && [ "${level[$to]:-9}" -ge "${level[$from]:-0}" ]; then
              echo "$file: $from includes $include of $to"
            fi
            ;;
          *) echo "$file: the library includes $include, outside src/" ;;
        esac
        ;;
      cli/* | apps/* | bench/*)
        case $target in
          src/*) [ ! -e "$tree/$target" ] || echo "$file: includes $include; only hankel.h is allowed here" ;;
        esac
        ;;
    esac
  done < <(cd "$tree" && find src cli apps bench \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) \
    -exec grep -HE '^[ ]*#[ ]*include[ ]*"' {} + 2>/dev/null)
}

self_test() {
  local dir
  dir=$(mktemp -d)
  mkdir -p "$dir"/src/{base,core,cpu/x86,cpu/tmpl,cuda,plan} "$dir/cli"
  touch "$dir"/src/{base/base.h,core/core.h,cpu/ukernel.h,cpu/tmpl/a.tmpl.h,cuda/cuda.h,plan/plan.h} "$dir/cli/cli.h"
  echo '#include "plan/plan.h"' > "$dir/src/core/bad.c"
  echo '#include "cuda/cuda.h"' > "$dir/src/cpu/bad.c"
  echo '#include "core/core.h"' > "$dir/src/cpu/x86/bad_avx2.c"
  echo '#include "base/base.h"' > "$dir/cli/bad.c"
  printf '#include "hankel.h"\n#include "core/core.h"\n#include "cpu/ukernel.h"\n' > "$dir/src/plan/good.c"
  printf '#include "cpu/ukernel.h"\n#include "../tmpl/a.tmpl.h"\n#include "base/base.h"\n' > "$dir/src/cpu/x86/good_avx2.c"
  echo '#include "cli.h"' > "$dir/cli/good.c"
  found=$(check_tree "$dir")
  rm -rf "$dir"
  if [ "$(grep -c bad <<< "$found")" != 4 ] || grep -q good <<< "$found"; then
    printf 'the checker itself is wrong:\n%s\n' "$found"
    exit 1
  fi
}

self_test
[ "${1:-}" = --self-test ] && exit 0
wrong=$(check_tree "$root")
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
echo "every include goes to the left"
