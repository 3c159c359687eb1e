#!/usr/bin/env bash
# Runs the tests of a build tree and ends with a summary. usage: test.sh BUILD JOBS [ctest arguments]
set -u
build=$1 jobs=$2
shift 2
log=$build/test.log
ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@" | tee "$log"
status=${PIPESTATUS[0]}
echo
echo "== suites (passed / unsupported / failed) =="
# A conformance suite leaves one line per suite in build/suites/*.txt.
cat "$build"/suites/*.txt 2>/dev/null || echo "none ran"
echo "== skipped =="
grep -E '\*\*\*Skipped|SKIPPED' "$log" | sed 's/^[ \t]*//' | sort -u || true
echo "== result =="
grep -E 'tests passed|tests failed' "$log" || echo "no tests ran"
exit "$status"
