#!/usr/bin/env bash
# Runs the tests of a build tree and ends with a summary. usage: test.sh BUILD JOBS [ctest arguments]
# A conformance suite may leave a line "name: N passed, N unsupported, N failed" in BUILD/suites/<name>.txt.
set -u
build=$1 jobs=$2
shift 2
mkdir -p "$build/suites"
rm -f "$build"/suites/*
log=$build/test.log
ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@" | tee "$log"
status=${PIPESTATUS[0]}
section() { # title, lines on stdin; silent when there are none
  local lines
  lines=$(cat)
  [ -z "$lines" ] || printf '\n== %s ==\n%s\n' "$1" "$lines"
}
cat "$build"/suites/*.txt 2>/dev/null | section "conformance"
{
  # Each skipped test that is no Python suite (those leave a note of their own), and the last line that it printed.
  awk 'NR == FNR {if (/\*\*\*Skipped/) {sub(/.*: /, ""); skipped[$1]}; next}
       /^[0-9]+\/[0-9]+ Testing: / {name = $3; last = "(it does not say why)"; inside = 0}
       /^<end of output>/ {inside = 0; if (name in skipped && name !~ /\.test_/) print name ": " last}
       inside && NF && !/^-+$/ {last = $0}
       /^Output:/ {inside = 1}' "$log" "$build/Testing/Temporary/LastTest.log"
  grep '^-- hankel:.*skipped' "$build/configure.log" 2>/dev/null | sed 's/^-- hankel: //'
  cat "$build"/suites/*.skipped 2>/dev/null
} | section "skipped"
grep -E '^[0-9]+% tests passed' "$log" | section "result"
exit "$status"
