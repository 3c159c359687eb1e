#!/usr/bin/env bash
# Runs the tests of the PyTorch and JAX bindings with the newest PyTorch and JAX, in a venv of its own (build/frameworks):
# torch.compile, torch.export, opcheck and autocast need more than Debian's. Several gigabytes are downloaded the first time, so CI leaves
# it out. usage: frameworks.sh BUILD [pytest arguments]
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
venv=$build/frameworks
if [ ! -f "$venv/.ready" ]; then
  python3 -m venv "$venv"
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check numpy pytest hypothesis torch torchvision jax
  touch "$venv/.ready"
fi
export PYTHONPATH=$PWD/python:$PWD/tests/python LIBHANKEL=$PWD/$build/lib/libhankel.so
exec "$venv/bin/python3" -m pytest -q tests/python/test_torch.py tests/python/test_torch_layers.py \
  tests/python/test_jax_layers.py tests/python/test_causal.py tests/python/test_longconv.py tests/python/test_repeat.py tests/python/test_devices.py "$@"
