#!/usr/bin/env bash
# bench/gpu/run.sh BUILD [arguments of bench.py]: the table of the GPU shapes into bench/results/.
set -eu
build=$1
shift
exec python3 "$(dirname "$0")/bench.py" --library "$build/lib/libhankel.so" --extra \
  --out "bench/results/$(date +%Y-%m-%d)-gpu.tsv" "$@"
