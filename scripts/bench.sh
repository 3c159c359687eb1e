#!/usr/bin/env bash
# Times the public shape lists and keeps what it found, with the machine and the commit, in bench/results/.
# usage: bench.sh BUILD [--device cuda]
set -eu
build=$1
shift
device=cpu
[ "${1:-}" = --device ] && device=$2
mkdir -p bench/results
out=bench/results/$(date +%Y-%m-%d)-$device.csv
{
  echo "# command: $build/bin/hankel bench --batch bench/shapes/$device.tsv --csv $*"
  echo "# machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
  [ "$device" = cuda ] && echo "# gpu: $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
  echo "# commit: $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  echo "# date: $(date -u +%Y-%m-%dT%H:%MZ)"
  "$build/bin/hankel" bench --batch "bench/shapes/$([ "$device" = cuda ] && echo gpu || echo cpu).tsv" --csv "$@"
} | tee "$out"
echo "kept in $out" >&2
