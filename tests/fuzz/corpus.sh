#!/usr/bin/env bash
# Packed corpora: one input per line in hexadecimal digits, sorted, so that a change is a readable diff.
#   corpus.sh pack DIR > corpus/plan/inputs.hex     every file of DIR becomes a line
#   corpus.sh unpack corpus/plan/inputs.hex DIR     and back, for libFuzzer, which reads files
# To renew the corpus of the plan fuzzer: configure with clang, -DHK_LIBFUZZER=ON and -DHK_SANITIZE=address,undefined,
# unpack, run plan_fuzz on the folder, shrink it with -merge=1 into an empty one, and pack that.
set -eu
case ${1:-} in
  pack)
    for file in "$2"/*; do od -An -v -tx1 "$file" | tr -d ' \n'; echo; done | sort -u
    ;;
  unpack)
    mkdir -p "$3"
    grep -v '^#' "$2" | while IFS= read -r line; do
      name=$3/$(sha1sum <<< "$line" | cut -c1-16)
      # shellcheck disable=SC2001,SC2059 # the digits become \x escapes
      printf "$(sed 's/../\\x&/g' <<< "$line")" > "$name"
    done
    ;;
  *)
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
