#!/usr/bin/env bash
# The bash completion offers every verb and a verb's options, and the man page names every verb and formats cleanly.
set -u
cd "${HANKEL_SOURCE_DIR:-.}" || exit 1
bin=${HANKEL_BIN:-build/bin/hankel}
failed=0
fail() { echo "completion_test: $*"; failed=1; }
# shellcheck source=/dev/null
source cli/hankel.bash
complete_line() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _hankel; echo " ${COMPREPLY[*]} "; }
verbs=$("$bin" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p' | grep -v '^hankel$')
[ -n "$verbs" ] || fail "--help lists no verbs"
offered=$(complete_line "$bin" "")
for verb in $verbs; do
  case $offered in *" $verb "*) ;; *) fail "verb $verb is not completed" ;; esac
  grep -q "^\.BR\? $verb\b" cli/hankel.1 || fail "verb $verb is not in the man page"
done
case $(complete_line "$bin" check --ra) in *" --random "*) ;; *) fail "check --ra does not complete to --random" ;; esac
case $(complete_line "$bin" plan --layout l) in *" last "*) ;; *) fail "--layout l does not complete to last" ;; esac
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
  words=$(MANWIDTH=100 man -l --warnings cli/hankel.1 2>&1 >/dev/null)
  [ -z "$words" ] || fail "the man page: $words"
fi
exit $failed
