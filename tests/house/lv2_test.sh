#!/usr/bin/env bash
# The bundle hankel.lv2: lv2_validate has nothing to say, and sees a wrong property; the shared object exports lv2_descriptor
# and nothing else, and needs no library of hankel; ports stand in hankel.ttl in the order that plugin.h numbers them;
# `cmake --install` puts the bundle where it is found, whole.
set -eu
bundle=$HANKEL_BUILD_DIR/lib/lv2/hankel.lv2
[ -e "$bundle/hankel.so" ] || { echo "the plugin is not built"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }

exported=$(nm -D --defined-only "$bundle/hankel.so" | awk '{print $3}' | grep -vE '^__(asan|odr_asan|ubsan|tsan|sanitizer)' | xargs)
[ "$exported" = lv2_descriptor ] || fail "hankel.so exports $exported"
needed=$(objdump -p "$bundle/hankel.so" | awk '$1 == "NEEDED" {print $2}')
if grep -q hankel <<< "$needed"; then fail "hankel.so needs $(xargs <<< "$needed")"; fi

# PORT_INPUT of the enum is the symbol input_gain or input, as hankel.ttl has them by index.
named=$(sed -n '/^typedef enum port_index/,/^}/s/^ *PORT_\([A-Z]*\).*/\1/p' "$HANKEL_SOURCE_DIR/apps/lv2/plugin.h" | grep -v AUDIO |
  tr '[:upper:]' '[:lower:]' | xargs)
for uri in urn:hankel:amp urn:hankel:amp-stereo; do
  described=$(awk -v uri="<$uri>" '$1 == uri {on = 1} on && /lv2:symbol/ {print $2} on && /\] \.$/ {exit}' "$bundle/hankel.ttl" |
    tr -d '"' | sed 's/_gain$//; s/_level$//; s/^model_//' | head -"$(wc -w <<< "$named")" | xargs)
  [ "$described" = "$named" ] || fail "$uri has the ports $described, plugin.h $named"
done

if [ -z "${HK_SANITIZE:-}" ]; then
  DESTDIR=$dir cmake --install "$HANKEL_BUILD_DIR" --prefix /stage > "$dir/log"
  installed=$(dirname "$(find "$dir/stage" -path '*/lv2/hankel.lv2/manifest.ttl')")
  for file in manifest.ttl hankel.ttl hankel.so; do [ -e "$installed/$file" ] || fail "not installed: $file"; done
  if readelf -d "$installed/hankel.so" | grep -qE 'R(UN)?PATH'; then fail "hankel.so has a search path of its own"; fi
fi

command -v lv2_validate > /dev/null && command -v sord_validate > /dev/null ||
  { echo "lv2_validate (lv2-dev) and sord_validate (sordi) are not both installed"; exit 77; }
# The validator complains of Debian's own core.lv2/lv2core.doap.ttl, which is no part of the bundle.
validate() { lv2_validate "$@" 2>&1 | grep -v '^Skipping file /usr/'; }
validate "$bundle/manifest.ttl" "$bundle/hankel.ttl" > "$dir/said" || true
grep -q 'Found 0 errors' "$dir/said" || { cat "$dir/said"; fail "lv2_validate finds faults"; }
sed 's/lv2:symbol "gate"/lv2:symbol 5 ; lv2:colour "red"/' "$bundle/hankel.ttl" > "$dir/hankel.ttl"
validate "$bundle/manifest.ttl" "$dir/hankel.ttl" > "$dir/said" || true
if grep -q 'Found 0 errors' "$dir/said"; then fail "lv2_validate sees no fault in a bad file"; fi
echo "the bundle is valid: $(wc -w <<< "$named") ports before the audio ports"
