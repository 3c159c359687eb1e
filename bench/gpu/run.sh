#!/usr/bin/env bash
# bench/gpu/run.sh BUILD [arguments of bench.py]: the table of the GPU shapes into bench/results/<date>-dense-<machine>.tsv
# (HK_MACHINE names the machine).
set -eu
build=$1
shift
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1 | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' '-')
exec python3 "$(dirname "$0")/bench.py" --library "$build/lib/libhankel.so" --extra \
  --out "bench/results/$(date -u +%Y-%m-%d)-dense-${HK_MACHINE:-${gpu:-unknown}}.tsv" "$@"
