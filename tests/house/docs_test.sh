#!/usr/bin/env bash
# The docs keep up with the code: relative links lead somewhere, and the manual names every environment variable that the
# sources read, every status, every activation word, every field of hk_options and
# every function, and no variable that nothing reads. The documents use the words of the field (scripts/dialect.tsv lists
# what they replace; limits.md quotes the planner), the README's speed comes from bench/results, whose files are named in
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
while IFS= read -r file; do
  name=${file##*/}
  [ "$name" = README.md ] && continue
  [[ $name =~ ^20[0-9]{2}-[01][0-9]-[0-3][0-9]-[a-z0-9-]+\.(csv|md|tsv|txt)$ ]] || complain "$file: not <date>-<what>-<machine>.<ext>"
  grep -qF "($name)" bench/results/README.md || complain "bench/results/README.md does not list $name"
done < <(git ls-files bench/results 2> /dev/null)
if command -v python3 > /dev/null; then
  python3 bench/plot.py --check || failed=1
  if git rev-parse HEAD > /dev/null 2>&1; then
    words=$(python3 scripts/house.py --list words | grep -E '^(README|CHANGELOG|CONTRIBUTING|python/README|docs/)' | grep -v '^docs/limits.md')
    [ -z "$words" ] || complain "words of the old dialect (scripts/dialect.tsv):
$words"
  fi
fi
[ $failed = 0 ] && echo "the docs keep up"
exit $failed
