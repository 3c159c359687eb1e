#!/usr/bin/env bash
# A GPU test under compute-sanitizer. usage: sanitizer.sh SANITIZER TOOL PROGRAM [arguments]. Exits with 77 without a device.
set -u
"$HANKEL_BIN" info --device cuda > /dev/null 2>&1 || { echo "no CUDA device"; exit 77; }
sanitizer=$1 tool=$2
shift 2
exec "$sanitizer" --tool "$tool" --error-exitcode 1 "$@"
