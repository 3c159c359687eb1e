#!/usr/bin/env bash
# NEON: the library, its kernel tests and the command cross-compiled for aarch64 and run under qemu, in a build of their own.
set -eu
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${HANKEL_BUILD_DIR:-$root/build}/aarch64
[ -z "${HK_SANITIZE:-}" ] || { echo "not under sanitizers"; exit 77; }
command -v aarch64-linux-gnu-gcc > /dev/null || { echo "no aarch64-linux-gnu-gcc"; exit 77; }
command -v qemu-aarch64 > /dev/null || { echo "no qemu-aarch64"; exit 77; }
command -v ninja > /dev/null && generator=Ninja || generator="Unix Makefiles"
cmake -S "$root" -B "$build" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake" \
  -DHK_CUDA=OFF -DHK_BENCH=OFF > "$build.log" 2>&1 || { tail -20 "$build.log"; exit 1; }
cmake --build "$build" -j 2 --target act_test kernels_test decision_bits_test stream_chain_test \
  stream_fir_test hk_cli > "$build.log" 2>&1 || { tail -40 "$build.log"; exit 1; }
for test in act_test kernels_test stream_chain_test stream_fir_test; do
  qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/tests/$test" > "$build.log" 2>&1 || { tail -20 "$build.log"; echo "$test failed"; exit 1; }
  grep -q neon "$build.log" || [ "$test" != act_test ] || { echo "$test met no NEON row"; exit 1; }
  tail -1 "$build.log"
done
qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/bin/hankel" check 2d_n1_c8_i9x9_k16_w3x3_p1_last > "$build.log" 2>&1 ||
  { tail -20 "$build.log"; echo "the command failed"; exit 1; }
tail -1 "$build.log"
