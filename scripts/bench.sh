#!/usr/bin/env bash
# Times the public shape lists, beside every peer that was built, and keeps what it found, with command, machine, commit
# and date, in bench/results/<date>-<device>-<machine>.csv (HK_MACHINE names the machine). usage: bench.sh BUILD cpu|cuda
# [more options of hankel bench]
set -eu
build=$1 device=$2
shift 2
list=bench/shapes/cpu.tsv
options=(--device "$device" --csv)
if [ "$device" = cuda ]; then
  list=bench/shapes/gpu.tsv
  options+=(--types column)
fi
peers=()
for peer in "$build"/lib/hankel/peers/hankel_peer_*.so; do
  [ "$device" = cpu ] && [ -e "$peer" ] || continue
  peer=${peer##*/hankel_peer_}
  peers+=(--peer "${peer%.so}")
done
command=("$build/bin/hankel" bench --batch "$list" "${options[@]}" "${peers[@]}" "$@")
mkdir -p bench/results
name() { if [ "$device" = cuda ]; then nvidia-smi --query-gpu=name --format=csv,noheader; else sed -n 's/^model name.*: //p' /proc/cpuinfo; fi; }
machine=${HK_MACHINE:-$(name | head -1 | tr '[:upper:]' '[:lower:]' | sed -E 's/\((r|tm)\)//g; s/[^a-z0-9]+/-/g; s/^-|-$//g')}
out=bench/results/$(date -u +%Y-%m-%d)-$device-${machine:-unknown}.csv
{
  echo "# command: ${command[*]}"
  echo "# machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
  if [ "$device" = cuda ]; then echo "# gpu: $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"; fi
  echo "# commit: $(git describe --always --dirty 2> /dev/null || echo unknown)"
  echo "# date: $(date -u +%Y-%m-%dT%H:%MZ)"
  "${command[@]}"
  if [ "$device" = cpu ] && [ $# -eq 0 ]; then # gradients of filters, without peers: see bench/grad_cpu.py
    for layout in last first; do
      echo "# gradients of filters, channels-$layout"
      "$build/bin/hankel" bench --batch bench/shapes/grad.tsv --grad filter --layout $layout --csv
    done
  fi
} | tee "$out"
echo "kept in $out" >&2
