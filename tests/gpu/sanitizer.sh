#!/usr/bin/env bash
# The short set of gpu_kernels_test under compute-sanitizer, the shortest where it follows every access to shared memory.
# usage: sanitizer.sh SANITIZER TOOL PROGRAM. Exits with 77 without a device.
set -u
"$HANKEL_BIN" info --device cuda > /dev/null 2>&1 || { echo "no CUDA device"; exit 77; }
exec "$1" --tool "$2" --error-exitcode 1 "$3" "$([ "$2" = racecheck ] && echo shortest || echo short)"
