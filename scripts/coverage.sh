#!/usr/bin/env bash
# Which lines of src/plan and src/cpu random problems alone reach. Builds build-coverage (gcc --coverage, -O1), runs
# `hankel check --random N` with each ISA of this host as the cap, and prints line coverage per file and in total; the
# lines that were not reached go to build-coverage/coverage/unreached.txt. Fails when a check fails.
# usage: coverage.sh JOBS [N] [CHECK OPTIONS...]
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${1:-$(nproc)} count=${2:-20000}
shift $(($# < 2 ? $# : 2))
build=build-coverage out=build-coverage/coverage failed=0
# CMAKE_ARGS is split into words on purpose
# shellcheck disable=SC2086
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHK_COVERAGE=ON -DHK_CUDA=OFF -DHK_BENCH=OFF -DHK_TESTS=OFF \
  ${CMAKE_ARGS:-} > /dev/null && cmake --build $build -j "$jobs" --target hk_cli > $build/build.log 2>&1 || {
  tail -40 $build/build.log
  exit 1
}
best=$($build/bin/hankel info | sed -n 's/^isa *\([a-z0-9]*\) .*(best)/\1/p')
find $build -name '*.gcda' -delete
mkdir -p $out
export HANKEL_WISDOM=none
seed=${SEED:-1}
for isa in scalar avx2 avx512 neon; do
  case $isa:$best in
    scalar:* | avx2:avx* | avx512:avx512* | avx512:amx | avx2:amx | neon:neon) ;;
    *) echo "coverage: $isa is left out: this host has ${best:-an unknown ISA}"; continue ;;
  esac
  # The first run logs every call, to nobody.
  [ $isa = scalar ] && export HANKEL_VERBOSE=profile_exec HANKEL_LOGFILE=/dev/null || unset HANKEL_VERBOSE HANKEL_LOGFILE
  $build/bin/hankel check --random "$count" --seed "$seed" --isa $isa --jobs "$jobs" --stats "$@" \
    > $out/check-$isa.txt || failed=1
  tail -1 $out/check-$isa.txt
done
python3 scripts/coverage.py $build $out || failed=1
exit $failed
