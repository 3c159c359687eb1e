#!/usr/bin/env bash
# The words of hankel-nam are the same everywhere: the verbs of --help and those that the man page describes; every option of
# `hankel-nam VERB --help`, with its sentence, in the man page and the other way round; every `hankel-nam VERB ... --option`
# that documents and man page show is an option of that verb; every control of the plugin stands in docs/nam.md. The man page
# is installed, and man finds no fault in it.
set -u
cd "${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}" || exit 1
nam=${HANKEL_BUILD_DIR:-build}/bin/hankel-nam
[ -x "$nam" ] || { echo "hankel-nam is not built"; exit 77; }
man=apps/nam/program/hankel-nam.1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
complain() { echo "$1"; failed=1; }
export LC_ALL=C

verbs=$("$nam" --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' | xargs)
[ "$(wc -w <<< "$verbs")" -ge 4 ] || complain "--help lists the verbs '$verbs'"
described=$(awk '/^\.S[SH]/ {on = $0 == ".SH VERBS"} on && /^\.TP/ {getline; print $2}' $man | xargs)
[ "$described" = "$verbs" ] || complain "$man describes the verbs '$described', --help lists '$verbs'"

for verb in $verbs; do
  "$nam" "$verb" --help > "$dir/text" || complain "$verb --help fails"
  "$nam" help "$verb" | cmp -s - "$dir/text" || complain "help $verb and $verb --help differ"
  sed -nE 's/^  (--[^ ]+( [A-Z]+)?) +(.*)/\1\t\3/p' "$dir/text" | grep -v '^--help' | sort > "$dir/$verb"
  awk -v section=".SS Options of $verb" '$0 == section {on = 1; next} /^\.S[SH]/ {on = 0}
    on && /^\.TP/ {getline name; getline text; sub(/^\.BI? /, "", name); print name "\t" text}' $man |
    sed 's/\\fI//; s/\\fR//; s/\\-/-/g' | sort > "$dir/man"
  diff "$dir/man" "$dir/$verb" > "$dir/diff" || complain "$man (<) and --help (>) have other options of $verb:
$(grep '^[<>]' "$dir/diff")"
done

shown=0
while IFS=: read -r file line; do
  verb=$(sed -E 's/^hankel-nam ([a-z]+).*/\1/' <<< "$line")
  [ -e "$dir/$verb" ] || { complain "$file: hankel-nam has no verb $verb: $line"; continue; }
  for option in $(grep -oE -- ' --[a-z][a-z-]*' <<< "${line%%|*}"); do
    cut -f1 "$dir/$verb" | cut -d' ' -f1 | grep -qx -- "$option" || complain "$file: hankel-nam $verb has no $option: $line"
    shown=$((shown + 1))
  done
done < <(sed 's/\\-/-/g' $man > "$dir/hankel-nam.1"
  grep -oHE '(^ *|`|\$ )hankel-nam [a-z]+ [^`#]*' README.md docs/*.md "$dir/hankel-nam.1" | sed -E 's/:( *|`|\$ )/:/' | grep -E ' --[a-z]')
[ $shown -gt 0 ] || complain "the documents show no option"

controls=0
while IFS= read -r name; do
  grep -qF "| $name |" docs/nam.md || complain "docs/nam.md does not describe the control '$name'"
  controls=$((controls + 1))
done < <(awk '/lv2:InputPort , lv2:ControlPort/ {on = 1} on && /lv2:name/ {on = 0; print}' apps/lv2/ports.ttl.in | sed 's/.*"\(.*\)".*/\1/')
[ $controls -ge 7 ] || complain "ports.ttl.in has $controls controls"

if command -v man > /dev/null && ! MANWIDTH=100 man --warnings -l -E UTF-8 $man > /dev/null 2> "$dir/said"; then complain "man cannot show $man"; fi
[ ! -s "$dir/said" ] || complain "man says: $(head -3 "$dir/said")"
if [ -z "${HK_SANITIZE:-}" ]; then
  DESTDIR=$dir cmake --install "$HANKEL_BUILD_DIR" --prefix /stage > "$dir/log"
  [ -e "$dir/stage/share/man/man1/hankel-nam.1" ] || complain "the man page is not installed"
fi
[ $failed = 0 ] && echo "words agree: $(wc -w <<< "$verbs") verbs, $shown uses, $controls controls"
exit $failed
