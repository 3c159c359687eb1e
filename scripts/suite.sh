#!/usr/bin/env bash
# Runs one pytest file as one ctest: exit 77 (skipped) when every test of it was skipped, and the reasons are left in
# BUILD/suites/<name>.skipped for the summary of make test. usage: suite.sh PYTHON BUILD FILE
set -u
python=$1 build=$2 file=$3
mkdir -p "$build/suites"
note=$build/suites/$(basename "$file" .py).skipped
rm -f "$note"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$python" -m pytest -q -rs -p no:cacheprovider "$file" 2>&1 | tee "$out"
status=${PIPESTATUS[0]}
grep '^SKIPPED' "$out" | sed "s#^#$(basename "$file"): #" > "$note"
[ -s "$note" ] || rm -f "$note"
last=$(tail -1 "$out")
case $status in
  0 | 5) if [[ $last != *passed* && $last == *skipped* ]]; then exit 77; fi ;;
esac
exit "$status"
