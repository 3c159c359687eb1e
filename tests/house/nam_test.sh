#!/usr/bin/env bash
# The C examples of docs/nam.md, as printed there, compile without a warning against the built libraries and play a small
# model; then the program: info, bench and render, and what render refuses, hostile sounds and models among it: within seconds and
# 1 GiB of memory. Skipped where the player is not built.
set -eu
nam=$HANKEL_BUILD_DIR/bin/hankel-nam
[ -x "$nam" ] || exit 77
models=$HANKEL_SOURCE_DIR/tests/fuzz/corpus/nam
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
awk '/^```/ {if (on) exit; if ($0 == "```c") {on = 1; next}} on' "$HANKEL_SOURCE_DIR/docs/nam.md" > "$dir/example.c"
[ "$(wc -l < "$dir/example.c")" -le 40 ] && [ -s "$dir/example.c" ]
san=()
[ -z "${HK_SANITIZE:-}" ] || san=("-fsanitize=$HK_SANITIZE")
"$HK_CC" -std=c11 -Wall -Wextra -Werror "${san[@]}" "-I$HANKEL_SOURCE_DIR/include" "-I$HANKEL_SOURCE_DIR/apps/nam" "$dir/example.c" \
  -o "$dir/example" "-L$HANKEL_BUILD_DIR/lib" "-Wl,-rpath,$HANKEL_BUILD_DIR/lib" -lhankel-nam -lhankel -lm
"$dir/example" "$models/wavenet.nam" > "$dir/out"
awk '/^```/ {if (on) exit; if ($0 == "```c" && ++seen == 2) {on = 1; next}} on' "$HANKEL_SOURCE_DIR/docs/nam.md" > "$dir/rig.c"
[ "$(wc -l < "$dir/rig.c")" -le 45 ] && [ -s "$dir/rig.c" ]
"$HK_CC" -std=c11 -Wall -Wextra -Werror "${san[@]}" "-I$HANKEL_SOURCE_DIR/include" "-I$HANKEL_SOURCE_DIR/apps/nam" "$dir/rig.c" \
  -o "$dir/rig" "-L$HANKEL_BUILD_DIR/lib" "-Wl,-rpath,$HANKEL_BUILD_DIR/lib" -lhankel-nam -lhankel -lm
[ "$("$dir/rig" "$models/wavenet.nam")" = "1 part(s) came back, 0 frames late" ] || { echo "the rig of docs/nam.md"; exit 1; }
diff -u - "$dir/out" << 'EOF'
WaveNet, 1 size(s), 23 frames of memory
the output is finite
EOF
if "$dir/example" "$dir/absent.nam" 2> "$dir/err"; then exit 1; fi
grep -q "cannot be opened" "$dir/err"

fail() { echo "$1"; exit 1; }
refuses() { # pattern, command...
  local pattern=$1
  shift
  if "$@" > "$dir/log" 2>&1; then fail "not refused: $*"; fi
  grep -q "$pattern" "$dir/log" || { cat "$dir/log"; fail "the sentence lacks \"$pattern\": $*"; }
}
# a second of 16-bit mono at RATE: a ramp that wraps
wav() { # path rate
  python3 - "$1" "$2" << 'EOF'
import struct, sys, wave
rate = int(sys.argv[2])
with wave.open(sys.argv[1], "wb") as w:
    w.setnchannels(1); w.setsampwidth(2); w.setframerate(rate)
    w.writeframes(b"".join(struct.pack("<h", (i * 97) % 8001 - 4000) for i in range(rate)))
EOF
}
"$nam" info "$models/container.nam" | grep -q "sizes  *2; this is number 2" || fail "info of a container"
"$nam" info "$models/container.nam" --size 0 | grep -q "Linear: 2 taps" || fail "the smallest size"
"$nam" bench "$models/lstm.nam" --seconds 0.05 --passes 2 --block 64 | grep -q "^ *64 " || fail "bench"
wav "$dir/in.wav" 48000
wav "$dir/other.wav" 44100
"$nam" render "$models/wavenet.nam" "$dir/in.wav" "$dir/a.wav" --block 64
"$nam" render "$models/wavenet.nam" "$dir/in.wav" "$dir/b.wav" --block 37
cmp "$dir/a.wav" "$dir/b.wav" || fail "the blocks show in the output"
[ "$(stat -c %s "$dir/a.wav")" -ge $((48000 * 4)) ] || fail "the output is too short"
refuses "44100 Hz, the model 48000 Hz" "$nam" render "$models/wavenet.nam" "$dir/other.wav" "$dir/c.wav"
"$nam" render "$models/wavenet.nam" "$dir/other.wav" "$dir/c.wav" --force
"$nam" render "$models/wavenet.nam" "$dir/other.wav" "$dir/d.wav" --resample
[ "$(stat -c %s "$dir/c.wav")" = "$(stat -c %s "$dir/d.wav")" ] || fail "resampling changed the length"
# Gains, normalisation and cabinets go through a rig; the levels by the samples of the files.
impulse() { # path channels: two frames, of 0.5 and 0.25 in every channel
  python3 - "$1" "$2" << 'EOF'
import struct, sys, wave
channels = int(sys.argv[2])
with wave.open(sys.argv[1], "wb") as w:
    w.setnchannels(channels); w.setsampwidth(2); w.setframerate(48000)
    w.writeframes(struct.pack("<h", 16384) * channels + struct.pack("<h", 8192) * channels)
EOF
}
compare() { # got base expression: of b, a sample of base, and of the one before
  python3 - "$@" << 'EOF'
import struct, sys
def read(path):
    data = open(path, "rb").read()
    at = data.index(b"data")
    count = struct.unpack("<I", data[at + 4:at + 8])[0] // 4
    return struct.unpack(f"<{count}f", data[at + 8:at + 8 + 4 * count])
got, base = read(sys.argv[1]), read(sys.argv[2])
want = [eval(sys.argv[3], {"b": b, "before": base[i - 1] if i else 0.0}) for i, b in enumerate(base)]
assert len(got) == len(want), (len(got), len(want))
worst, peak = max(abs(g - w) for g, w in zip(got, want)), max(map(abs, want))
assert worst <= 1e-5 * peak, (worst, peak)
EOF
}
wavenet=$models/wavenet.nam
impulse "$dir/ir.wav" 1
impulse "$dir/ir2.wav" 2
"$nam" render "$wavenet" "$dir/in.wav" "$dir/g.wav" --output-db -20
compare "$dir/g.wav" "$dir/a.wav" "0.1 * b" || fail "--output-db"
"$nam" render "$wavenet" "$dir/in.wav" "$dir/g.wav" --cabinet "$dir/ir.wav"
compare "$dir/g.wav" "$dir/a.wav" "0.5 * b + 0.25 * before" || fail "--cabinet"
"$nam" render "$models/linear.nam" "$dir/in.wav" "$dir/f.wav"
"$nam" render "$models/linear.nam" "$dir/in.wav" "$dir/g.wav" --input-db 20 --output-db -20
compare "$dir/g.wav" "$dir/f.wav" "b + 0.9 * 0.6" || fail "--input-db" # the model adds -0.6
sed 's/"weights"/"metadata":{"loudness":-8},"weights"/' "$models/linear.nam" > "$dir/loud.nam"
"$nam" render "$dir/loud.nam" "$dir/in.wav" "$dir/g.wav" --normalize
compare "$dir/g.wav" "$dir/f.wav" "10 ** -0.5 * b" || fail "--normalize"
"$nam" render "$wavenet" "$dir/in.wav" "$dir/g.wav" --cabinet "$dir/ir2.wav"
[ "$(stat -c %s "$dir/g.wav")" -ge $((48000 * 8)) ] || fail "a stereo cabinet gives no stereo sound"
"$nam" render "$wavenet" "$dir/other.wav" "$dir/g.wav" --cabinet "$dir/ir.wav" --resample
[ "$(stat -c %s "$dir/g.wav")" = "$(stat -c %s "$dir/d.wav")" ] || fail "the rig changed the length"
refuses "44100 Hz, the model 48000 Hz" "$nam" render "$wavenet" "$dir/other.wav" "$dir/g.wav" --cabinet "$dir/ir.wav"
refuses "absent.wav" "$nam" render "$wavenet" "$dir/in.wav" "$dir/g.wav" --cabinet "$dir/absent.wav"
refuses "not JSON" "$nam" info "$dir/in.wav"
refuses "cannot be opened" "$nam" info "$dir/absent.nam"
refuses "usage" "$nam" render "$models/wavenet.nam" "$dir/in.wav"
sed 's/"0.5.4"/"0.9.0"/' "$models/wavenet.nam" > "$dir/new.nam"
refuses "0.9.0 is not one of" "$nam" info "$dir/new.nam"
sed 's/"weights":\[/"weights":[1,/' "$models/wavenet.nam" > "$dir/more.nam"
refuses "1 too many" "$nam" info "$dir/more.nam"

# The extension says the format; what the file then holds is read from its first bytes.
for pair in wav:RIFF w64:riff rf64:RF64 caf:caff aiff:FORM aif:FORM au:.snd flac:fLaC FLAC:fLaC; do
  extension=${pair%%:*}
  "$nam" render "$models/wavenet.nam" "$dir/in.wav" "$dir/format.$extension"
  [ "$(head -c 4 "$dir/format.$extension")" = "${pair#*:}" ] || fail ".$extension is not what the file holds"
done
"$nam" render "$models/linear.nam" "$dir/format.flac" "$dir/again.wav"
[ "$(stat -c %s "$dir/again.wav")" = "$(stat -c %s "$dir/a.wav")" ] || fail "the FLAC file has another length"
for path in out.mp3 out out.d/out .wav/out; do
  refuses "the extension must be" "$nam" render "$models/wavenet.nam" "$dir/in.wav" "$dir/$path"
done
refuses "standard output is not supported" "$nam" render "$models/wavenet.nam" "$dir/in.wav" -
[ "$("$nam" render "$models/wavenet.nam" "$dir/in.wav" - 2> "$dir/log" | wc -c)" = 0 ] || fail "- was written to"
# A call that is wrong: exit 2, and the first line names the word.
wrong() { # pattern, words...
  local pattern=$1 code=0
  shift
  "$nam" "$@" > "$dir/out" 2> "$dir/log" || code=$?
  [ $code = 2 ] || fail "exit $code: $*"
  head -1 "$dir/log" | grep -q -- "$pattern" || { cat "$dir/log"; fail "the first line lacks \"$pattern\": $*"; }
  grep -q "^usage:" "$dir/log" || fail "no usage: $*"
}
wrong "a verb is needed"
wrong "no verb 'play'" play "$models/lstm.nam"
wrong "no option --loud" info "$models/lstm.nam" --loud
wrong "--size: '2' is not a number from 0 to 1" info "$models/lstm.nam" --size 2
wrong "--size: 'x' is not" info "$models/lstm.nam" --size x
wrong "--size needs a value" info "$models/lstm.nam" --size
wrong "--block: '2.5' is not a whole number" bench "$models/lstm.nam" --block 2.5
wrong "--isa: 'mmx' is not one of" info "$models/lstm.nam" --isa mmx
wrong "--force excludes" render "$models/lstm.nam" "$dir/in.wav" "$dir/e.wav" --force --normalize
wrong "--cabinet needs a value" render "$models/lstm.nam" "$dir/in.wav" "$dir/e.wav" --cabinet
wrong "--output-db: '900' is not a number" render "$models/lstm.nam" "$dir/in.wav" "$dir/e.wav" --output-db 900
wrong "--seconds is no option of render" render "$models/lstm.nam" "$dir/in.wav" "$dir/e.wav" --seconds 1
wrong "--resample is no option of info" info "$models/lstm.nam" --resample
wrong "'two.nam' is one word too many" info "$models/lstm.nam" two.nam
wrong "render needs MODEL.nam, IN.wav and OUT.wav" render "$models/lstm.nam"
wrong "exclude each other" render "$models/lstm.nam" "$dir/in.wav" "$dir/e.wav" --resample --force
# A cap that this machine cannot have is not what is printed.
case $(uname -m) in x86_64) none=neon ;; *) none=avx2 ;; esac
"$nam" info "$models/lstm.nam" --isa $none > "$dir/log"
if grep -q "kernels for $none" "$dir/log"; then fail "kernels for $none on $(uname -m)"; fi
# A model without a sample rate plays at the file's, and says so.
sed 's/"sample_rate":48000/"sample_rate":null/g' "$models/lstm.nam" > "$dir/unknown.nam"
"$nam" render "$dir/unknown.nam" "$dir/other.wav" "$dir/e.wav" 2> "$dir/log"
grep -q "gives no sample rate; it plays at the 44100 Hz" "$dir/log" || fail "the unknown rate is not mentioned"
"$nam" bench "$dir/unknown.nam" --seconds 0.05 --passes 1 --block 64 > "$dir/log"
grep -q "48000 Hz (assumed" "$dir/log" || fail "bench assumes in silence"

# Sounds whose headers lie: rate, channels and data bytes as given, then a few frames of silence.
header() { # path rate channels data-bytes frames
  python3 - "$@" << 'EOF'
import struct, sys
rate, channels, claimed, frames = map(int, sys.argv[2:])
data = bytes(2 * channels * frames)
with open(sys.argv[1], "wb") as f:
    f.write(b"RIFF" + struct.pack("<I", min(36 + claimed, 2**32 - 1)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * 2 * channels % 2**32, 2 * channels % 2**16, 16) +
            b"data" + struct.pack("<I", claimed) + data)
EOF
}
bounded() { # command..., which may take 10 s and, unless a sanitizer reserves address space, 1 GiB
  (if [ -z "${HK_SANITIZE:-}" ]; then ulimit -v 1048576; fi; exec timeout 10 "$@")
}
render="bounded $nam render $models/wavenet.nam"
for rate in 2130754432 768001 7999 1 0; do
  header "$dir/rate.wav" $rate 1 400 200
  refuses "hankel-nam: .*rate" $render "$dir/rate.wav" "$dir/e.wav" --resample
  refuses "hankel-nam: .*rate" $render "$dir/rate.wav" "$dir/e.wav" --force
done
header "$dir/cut.wav" 48000 1 4294967000 200
$render "$dir/cut.wav" "$dir/e.wav"
[ "$(stat -c %s "$dir/e.wav")" -lt 2000 ] || fail "a header of 4 GB was believed"
header "$dir/many.wav" 48000 1000 400000 200
$render "$dir/many.wav" "$dir/e.wav"
header "$dir/none.wav" 48000 0 400 200
refuses "hankel-nam: " $render "$dir/none.wav" "$dir/e.wav"
header "$dir/prime.wav" 767999 1 400 200
refuses "filter taps; at most 8388608" $render "$dir/prime.wav" "$dir/e.wav" --resample
header "$dir/slow.wav" 8000 1 400 200
$render "$dir/slow.wav" "$dir/e.wav" --resample
# A FLAC file without a frame that says it has 2^36 - 1 of them
python3 - "$dir/long.flac" << 'EOF'
import struct, sys
streaminfo = struct.pack(">HH6s", 4096, 4096, bytes(6)) + ((48000 << 44) | (15 << 36) | (2**36 - 1)).to_bytes(8, "big") + bytes(16)
open(sys.argv[1], "wb").write(b"fLaC" + b"\x80" + len(streaminfo).to_bytes(3, "big") + streaminfo)
EOF
if $render "$dir/long.flac" "$dir/e.wav" 2> "$dir/log"; then
  [ "$(stat -c %s "$dir/e.wav")" -lt 2000 ] || fail "a header of 2^36 frames was believed"
else
  grep -q "hankel-nam: " "$dir/log" || { cat "$dir/log"; fail "long.flac"; }
fi
# Models: 60 MB of nothing, a file longer than a model may be, the rate of a radio
python3 -c 'print("[" + "{}," * (20 << 20) + "{}]")' > "$dir/bomb.nam"
refuses "values of the file need more" bounded "$nam" info "$dir/bomb.nam"
truncate -s 5G "$dir/bomb.nam"
refuses "has 5368709120 bytes; a model file has at most 67108864" bounded "$nam" info "$dir/bomb.nam"
sed 's/"sample_rate":48000/"sample_rate":10000000/' "$models/lstm.nam" > "$dir/radio.nam"
refuses "sample_rate is 1e+07; 8000 to 768000 Hz" bounded "$nam" info "$dir/radio.nam"
echo "the example, info, bench and render behave"
