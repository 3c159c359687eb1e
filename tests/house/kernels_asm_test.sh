#!/usr/bin/env bash
# Kernels keep their accumulators in registers: disassembles every kernel object of the build, and the dense families once
# more as clang compiles them, and fails on vector loads or stores to the stack inside an innermost loop. A spilled copy
# of a working kernel must be caught, else the test itself is wrong.
set -u
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -z "${HK_SANITIZE:-}" ] || { echo "sanitizers spill on purpose"; exit 77; }
command -v objdump > /dev/null || { echo "no objdump"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "x86-64 only"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# inner loops: from the target of a backward jump to the jump, one straight line of code with multiply-adds
cat > "$tmp/loops.awk" << 'AWK'
/^[0-9a-f]+ <.*>:$/ { name = $2; n = 0; next }
/^ *[0-9a-f]+:/ {
  addr = $1; sub(/:/, "", addr); n++; at[n] = addr; text[n] = $0; index_of[addr] = n
  if ($2 ~ /^j/ && $3 in index_of && index_of[$3] <= n) {
    first = index_of[$3]
    for (i = first; i < n; i++) if (text[i] ~ /\tj[a-z]+ /) next
    fma = 0; spill = 0
    for (i = first; i <= n; i++) {
      if (text[i] ~ /vf(n?)m(add|sub)|vdpbf16ps|vpdpbusd/) fma++
      if (text[i] ~ /\tv[a-z0-9]+ .*[xyz]mm/ && text[i] ~ /\(%rsp/) { spill++; line = text[i] }
    }
    if (fma >= 2) { loops++; if (spill) { bad++; print name " loop at " $3 ": " spill " vector accesses to the stack, e.g." line } }
  }
  if ($2 ~ /^ret/) delete index_of
}
END { print loops + 0 " loops, " bad + 0 " bad"; exit bad > 0 }
AWK

check() { objdump -d --no-show-raw-insn "$1" | awk -f "$tmp/loops.awk"; }

flags=(-O3 -DNDEBUG -fPIC -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-tree-vectorize
  -I"$root/include" -I"$root/src" -DHK_HAVE_AVX2=1 -DHK_HAVE_AVX512=1)
avx2=(-mavx2 -mfma -mf16c)
avx512=(-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)

# the test of the test: a tile too large for 16 registers
cat > "$tmp/spilled.c" << 'C'
#include <immintrin.h>
void spilled(const float *a, const float *b, float *c, long n) {
  __m256 s[24];
  for (int i = 0; i < 24; i++) s[i] = _mm256_loadu_ps(c + 8 * i);
  for (; n > 0; n--, a += 24, b += 8) {
    __m256 v = _mm256_loadu_ps(b);
#if defined(__clang__)
#pragma clang loop unroll(full)
#else
#pragma GCC unroll 24
#endif
    for (int i = 0; i < 24; i++) s[i] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + i), v, s[i]);
  }
  for (int i = 0; i < 24; i++) _mm256_storeu_ps(c + 8 * i, s[i]);
}
C

# Loops that may spill: polynomials of activations have more constants than AVX2 has registers, and a few remainders of
# dwc and point keep one address vector on the stack. A 16-point FFT has more values than registers.
declare -A allowed=([act_avx2]=4 [act_avx512]=1 [map_avx2]=4 [map_avx512]=1 [causalg_avx2]=1 [dwc_avx2]=2 [point_avx2]=1
  [longfft_avx2]=2 [longfft_avx512]=2)
failed=0 objects=0
judge() { # label, family_isa, object, whether a family without loops is a fault
  local out last bad
  out=$(check "$3")
  last=$(tail -1 <<< "$out")
  bad=${last#*, } bad=${bad% bad}
  echo "$1 $2: $last"
  objects=$((objects + 1))
  if [ "$bad" -gt "${allowed[$2]:-0}" ]; then grep -v ' loops, ' <<< "$out" | head -5; failed=1; fi
  case $4$last in yes0\ *) echo "no loop found"; failed=1 ;; esac
}
dense='^(igemm|pgemm|dots?|strip|outer)'
build=${HANKEL_BUILD_DIR:-$root/build}
for object in "$build"/CMakeFiles/hk_objects.dir/cpu/*_avx*.c.o; do
  [ -e "$object" ] || continue
  name=$(basename "$object" .c.o)
  [[ $name =~ $dense ]] && loops=yes || loops=no
  judge build "$name" "$object" "$loops"
done
for cc in gcc clang; do
  command -v "$cc" > /dev/null || continue
  "$cc" -O3 "${avx2[@]}" -c "$tmp/spilled.c" -o "$tmp/spilled.o" || exit 1
  check "$tmp/spilled.o" > /dev/null && { echo "$cc: the spilled kernel was not caught"; exit 1; }
done
for isa in avx2 avxvnni avx512 avx512vnni avx512bf16; do
  command -v clang > /dev/null || break
  case $isa in
    avx2) extra=("${avx2[@]}") ;;
    avxvnni) extra=("${avx2[@]}" -mavxvnni) ;;
    avx512) extra=("${avx512[@]}") ;;
    *) extra=("${avx512[@]}" "-m$isa") ;;
  esac
  for unit in $(sed -n 's/^#if defined HK_UNIT_//p' "$root/src/cpu/x86/$isa.inc" | grep -E "$dense"); do
    clang "${flags[@]}" "${extra[@]}" "-DHK_UNIT_$unit" -x c -c "$root/src/cpu/x86/$isa.inc" -o "$tmp/k.o" ||
      { failed=1; continue; }
    judge clang "${unit}_$isa" "$tmp/k.o" yes
  done
done
[ "$objects" -gt 0 ] || exit 77
exit $failed
