#!/usr/bin/env bash
# The words of the command are the same everywhere: the verbs of --help in the manual's section 5 and in the man page;
# every option of `hankel VERB --help`, with its sentence, in the man page; every environment variable that
# the library and the command read in the manual's section 4 and in the man page, and no HANKEL_ variable that nothing
# reads; and every `hankel VERB ... --option` that the documents show is an option of that verb.
set -u
cd "${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}" || exit 1
bin=${HANKEL_BIN:-${HANKEL_BUILD_DIR:-build}/bin/hankel}
[ -x "$bin" ] || exit 77
manual=docs/manual.md man=cli/hankel.1
planning="plan run check bench tune"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
complain() { echo "$1"; failed=1; }

verbs=$("$bin" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p' | grep -v '^hankel$')
[ -n "$verbs" ] || complain "--help lists no verbs"
listed=$(sed -n 's/^`hankel \([a-z |]*\)`, each with.*/\1/p' $manual | tr -d '|' | xargs)
helped=$(xargs <<< "$verbs")
[ "$listed" = "$helped" ] || complain "$manual lists the verbs '$listed', --help lists '$helped'"
described=$(awk '/^\.S[SH]/ {on = $0 == ".SH VERBS"} on && /^\.TP/ {getline; print $2}' $man | xargs)
[ "$described" = "$helped" ] || complain "$man describes the verbs '$described', --help lists '$helped'"

# ---- options: "--name ARGUMENT<tab>sentence"; those that all planning verbs share stand once
export LC_ALL=C
help_options() { "$bin" "$1" --help | sed -nE 's/^  (--[^ ]+( [A-Z][^ ]*)?) +(.*)/\1\t\3/p' | grep -v '^--help'; }
for verb in $verbs; do help_options "$verb" | sort | tee "$dir/all.$verb" > "$dir/$verb"; done
cp "$dir/plan" "$dir/planning"
for verb in $planning; do comm -12 "$dir/planning" "$dir/$verb" > "$dir/both" && mv "$dir/both" "$dir/planning"; done
[ -s "$dir/planning" ] || complain "the planning verbs share no options"
for verb in $planning; do comm -23 "$dir/all.$verb" "$dir/planning" > "$dir/$verb"; done
man_options() { # the options below ".SS Options of WHAT" in the same form
  awk -v section=".SS Options of $1" '$0 == section {on = 1; next} /^\.S[SH]/ {on = 0}
    on && /^\.TP/ {getline name; getline text; sub(/^\.BI? /, "", name); print name "\t" text}' $man |
    sed 's/\\fI//; s/\\fR//; s/\\-/-/g; s/\\&//g' | sort
}
for verb in $verbs planning; do
  what=$verb
  [ "$verb" = planning ] && what="plan, run, check, bench and tune"
  man_options "$what" > "$dir/man"
  diff "$dir/man" "$dir/$verb" > "$dir/diff" || complain "$man (<) and --help (>) have other options of $what:
$(grep '^[<>]' "$dir/diff")"
done

# ---- environment
read_names=$(grep -rhoE 'getenv\("[A-Z_]+"\)|"HANKEL_[A-Z_]+"' src cli --include='*.c' --include='*.h' |
  grep -oE '[A-Z_]+' | sort -u)
section=$(sed -n '/^## 4\. Environment/,/^## 5/p' $manual)
entries=$(sed -n '/^\.SH ENVIRONMENT/,/^\.SH EXAMPLES/p' $man)
for name in $read_names; do
  grep -qE "[\`\$]$name\b" <<< "$section" || complain "$manual, section 4, does not name $name"
  grep -qE "\b$name\b" <<< "$entries" || complain "$man, ENVIRONMENT, does not name $name"
done
for name in $(grep -oE '\bHANKEL_[A-Z_]+' <<< "$entries" | sort -u); do
  grep -qx "$name" <<< "$read_names" || complain "$man names $name, which nothing reads"
done

# ---- what the documents show people typing
shown=0
while IFS=: read -r file line; do
  verb=$(sed -E 's/^hankel ([a-z]+).*/\1/' <<< "$line")
  [ -e "$dir/all.$verb" ] || { complain "$file: hankel has no verb $verb: $line"; continue; }
  for option in $(grep -oE -- '(^| )--[a-z][a-z-]*' <<< "${line%%|*}"); do
    case $option in --help | --strides) continue ;; esac
    cut -f1 "$dir/all.$verb" | cut -d' ' -f1 | grep -qx -- "$option" ||
      complain "$file: hankel $verb has no $option: $line"
    shown=$((shown + 1))
  done
done < <(sed 's/\\-/-/g' $man > "$dir/hankel.1"
  grep -oHE '(^ *|`|\$ )hankel [a-z]+ [^`#]*' README.md docs/*.md "$dir/hankel.1" | sed -E 's/:( *|`|\$ )/:/' |
    grep -E ' --[a-z]')
[ $shown -gt 0 ] || complain "the documents show no option"
[ $failed = 0 ] && echo "words agree: $(wc -w <<< "$verbs") verbs, $(wc -w <<< "$read_names") variables, $shown uses"
exit $failed
