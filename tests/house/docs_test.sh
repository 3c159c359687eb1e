#!/usr/bin/env bash
# The docs keep up with the code: relative links lead somewhere, and the manual names every environment variable that the
# sources read, every status, every activation word, every field of hk_options and
# every function, and no variable that nothing reads. The documents use the words of the field (scripts/dialect.tsv lists
# what they replace; limits.md quotes the planner) and name files and kernels that exist; the README's speed comes from bench/results, whose files are named in
# one order and listed in its index.
set -u
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$root" || exit 1
manual=docs/manual.md
failed=0
complain() { echo "$1"; failed=1; }

while IFS=: read -r file link; do
  target=$(dirname "$file")/${link%%#*}
  [ -z "${link%%#*}" ] || [ -e "$target" ] || complain "$file: broken link $link"
done < <(find . -name '*.md' -not -path './build*' -exec grep -oHE '\]\([^)]+\)' {} + |
  sed -E 's/\]\(([^)]*)\)/\1/' | grep -vE ':(https?|mailto):')

read_names=$(grep -rhoE '"HANKEL_[A-Z_]+"' src cli apps python --include='*.c' --include='*.h' --include='*.py' 2>/dev/null |
  tr -d '"' | sort -u)
for name in $read_names; do
  grep -q "\`$name\`" $manual || complain "$manual does not name $name"
done
for name in $(grep -oE '`HANKEL_[A-Z_]+`' $manual | tr -d '\`' | sort -u); do
  grep -qx "$name" <<< "$read_names" || complain "$manual names $name, which nothing reads"
done
for name in $(sed -n '/^typedef enum hk_status/,/^}/p' include/hankel.h | grep -oE 'HK_[A-Z_]+' | sort -u); do
  grep -q "\`$name\`" $manual || complain "$manual does not name $name"
done
for name in $(sed -n '/^typedef enum hk_act/,/^}/p' include/hankel.h | grep -oE 'HK_ACT_[A-Z_]+' | sed 's/HK_ACT_//' | tr "[:upper:]" "[:lower:]"); do
  grep -qE "\`${name}[:\`[]" $manual || complain "$manual does not name the activation $name"
done
for name in $(sed -n '/^typedef struct hk_options/,/^}/p' include/hankel.h |
  sed -E 's,/\*.*,,; s/;//; s/^ *(int32_t|uint32_t|double|size_t|const char \*|void \*|hk_[a-z_]+) *//' | tr ',' '\n' |
  grep -oE '^ *[a-z_]+ *$' | tr -d ' ' | grep -v '^size$'); do
  grep -q "\`$name\`" $manual || complain "$manual does not name the option $name"
done
while IFS= read -r name; do
  grep -q "\`$name\`" $manual || complain "$manual does not name the function $name"
done < tests/abi/hankel.symbols
while IFS=: read -r file path; do
  [ -e "$path" ] || complain "$file: there is no $path"
done < <(grep -oHE '(src|cli|apps|python|include|cmake|tests|bench|scripts|docs)/[A-Za-z0-9_./-]+\.(c|h|cu|cuh|inc|py|sh|tsv|md|html|svg|cmake)\b' \
  README.md CONTRIBUTING.md python/README.md docs/*.md docs/decisions/*.md | sort -u)
while IFS=: read -r file name; do
  grep -qw "$name" src/cpu/kernels.inc || complain "$file: there is no kernel $name"
done < <(grep -oHE 'hk_[a-z]+_[a-z0-9]+_[0-9]+x[0-9]+_(avx2|avx512|avx512vl|neon|scalar)' README.md docs/*.md cli/hankel.1 | sort -u)
while IFS= read -r file; do
  name=${file##*/}
  [ "$name" = README.md ] && continue
  [[ $name =~ ^20[0-9]{2}-[01][0-9]-[0-3][0-9]-[a-z0-9-]+\.(csv|md|tsv|txt)$ ]] || complain "$file: not <date>-<what>-<machine>.<ext>"
  grep -qF "($name)" bench/results/README.md || complain "bench/results/README.md does not list $name"
done < <(git ls-files bench/results 2> /dev/null)
if command -v python3 > /dev/null; then
  python3 bench/plot.py --check || failed=1
  python3 docs/algorithms.py --check || failed=1
  if git rev-parse HEAD > /dev/null 2>&1; then
    words=$(python3 scripts/house.py --list words | grep -E '^(README|CHANGELOG|CONTRIBUTING|python/README|docs/)' | grep -v '^docs/limits.md')
    [ -z "$words" ] || complain "words of the old dialect (scripts/dialect.tsv):
$words"
  fi
fi
[ $failed = 0 ] && echo "the docs keep up"
exit $failed
