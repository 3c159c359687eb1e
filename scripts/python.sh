#!/usr/bin/env bash
# Prints the Python that runs the suites: the first of $HK_PYTHON, build/venv, Debian's and the PATH's python3 that has
# numpy and pytest. Prints nothing when there is none. usage: python.sh [SOURCE_DIR]
set -u
source_dir=${1:-.}
for python in "${HK_PYTHON:-}" "$source_dir/build/venv/bin/python3" /usr/bin/python3 "$(command -v python3)"; do
  if [ -x "$python" ] && "$python" -c 'import numpy, pytest' 2>/dev/null; then
    echo "$python"
    exit 0
  fi
done
exit 0
