#!/usr/bin/env bash
# The functions of hankel.h and tests/abi/hankel.symbols are the same list, and the shared library exports them and those
# of tests/abi/legacy.symbols, which left the header and stay for programs built against an older one. Nothing that
# hankel 0.1 declared is gone. After adding a function to the header: tests/house/symbols_test.sh --update
set -eu
root=${HANKEL_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
list=$root/tests/abi/hankel.symbols
legacy=$root/tests/abi/legacy.symbols
# The header as the compiler sees it, one declaration a line: the name before the first parenthesis.
declared() { # [header]
  "${HK_CC:-cc}" -E -P "${1:-$root/include/hankel.h}" | tr '\n' ' ' | tr ';' '\n' |
    grep 'visibility("default")' | sed 's/.*visibility("default")))//' | sed -E 's/^[^(]*[ *](hk_[a-z0-9_]+) *\(.*/\1/' |
    LC_ALL=C sort
}
if [ "${1:-}" = --update ]; then
  declared > "$list"
  exit 0
fi
exported() {
  nm -D --defined-only "$LIBHANKEL" | awk '$2 ~ /[A-Z]/ && $2 != "A" {print $3}' | sed 's/@.*//' | LC_ALL=C sort
}
[ "$(wc -l < "$list")" -gt 0 ]
diff -u "$list" <(declared) || { echo "hankel.h and $list differ (see --update)"; exit 1; }
diff -u <(LC_ALL=C sort "$list" "$legacy") <(exported) ||
  { echo "the library does not export what $list and $legacy say"; exit 1; }
gone=$(LC_ALL=C comm -23 <(declared "$root/tests/abi/hankel_0_1.h") <(exported))
[ -z "$gone" ] || { echo "hankel 0.1 had $gone"; exit 1; }
nm -D --with-symbol-versions --defined-only "$LIBHANKEL" | grep -q '@@HANKEL_0' || { echo "no symbol version"; exit 1; }
# Nothing but libc, libm, pthread and dl is needed at run time.
needed=$(objdump -p "$LIBHANKEL" | awk '$1 == "NEEDED" {print $2}' |
  grep -vE '^(libc|libm|libpthread|libdl|ld-linux.*)\.so\.' | grep -vE '^lib[alt]*san|^libubsan' || true)
[ -z "$needed" ] || { echo "unexpected dependency: $needed"; exit 1; }
objdump -p "$LIBHANKEL" | grep -q 'SONAME *libhankel.so.0$' || { echo "the soname is not libhankel.so.0"; exit 1; }
echo "$(wc -l < "$list") symbols"
