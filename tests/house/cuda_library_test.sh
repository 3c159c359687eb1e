#!/usr/bin/env bash
# The device code is a library of its own. A program beside libhankel without it hears which file is missing, with one of another
# version that the versions differ, and with the right one everything but the device is there. libhankel-cuda exports one symbol.
set -eu
[ -z "${HK_SANITIZE:-}" ] || { echo "skipped: under sanitizers"; exit 77; }
problem=2d_n1_c64_i28x28_k64_w3x3_p1_bf16_last
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$HANKEL_BIN" "$dir/hankel"
cp -L "$HANKEL_BUILD_DIR/lib/libhankel.so.0" "$dir/"
say() { LD_LIBRARY_PATH=$dir "$dir/hankel" plan $problem --device cuda 2>&1 || true; }

say | grep -q 'libhankel-cuda.so.0 cannot be loaded: install it' || { echo "without the library: $(say)"; exit 1; }

cat > "$dir/other.c" << 'C'
struct { const char *name; const void *code; } hk_cuda_images[] = {{"9.9.9", 0}, {0, 0}};
C
"$HK_CC" -shared -fPIC "$dir/other.c" -o "$dir/libhankel-cuda.so.0"
say | grep -q 'has version 9.9.9, libhankel .*install the same of both' || { echo "another version: $(say)"; exit 1; }

[ -e "$HANKEL_BUILD_DIR/lib/libhankel-cuda.so.0" ] || { echo "this build has no device code: the rest is left out"; exit 0; }
cp -L "$HANKEL_BUILD_DIR/lib/libhankel-cuda.so.0" "$dir/"
if say | grep -q 'libhankel-cuda'; then echo "the right version: $(say)"; exit 1; fi
exported=$(nm -D --defined-only "$dir/libhankel-cuda.so.0" | awk '{print $3}')
[ "$exported" = hk_cuda_images ] || { echo "libhankel-cuda exports $exported"; exit 1; }
images=$(grep -c '^IMAGE(' "$HANKEL_SOURCE_DIR/src/cuda/driver/images.inc")
echo "$images images"
