"""`hankel-nam live`: against a stand-in for libjack (tests/cli/libjack.c), whose output is compared with what render writes
to the bit; and, where jackd is installed, against a server with the dummy driver."""
import os
import shutil
import signal
import struct
import subprocess
import time

import numpy as np
import pytest

BUILD = os.environ.get("HANKEL_BUILD_DIR", "build")
SOURCE = os.environ.get("HANKEL_SOURCE_DIR", ".")
NAM = f"{BUILD}/bin/hankel-nam"
MODELS = f"{SOURCE}/tests/fuzz/corpus/nam"
MODEL, OTHER = f"{MODELS}/wavenet.nam", f"{MODELS}/features.nam"
FRAMES = 20000

pytestmark = pytest.mark.skipif(not os.path.exists(NAM), reason="hankel-nam is not built")


def write_wav(path, samples, rate=48000):
    data = np.asarray(samples, np.float32).tobytes()
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, rate, rate * 4, 4, 32) +
                b"data" + struct.pack("<I", len(data)) + data)


def read_wav(path):
    with open(path, "rb") as f:
        data = f.read()
    at = data.index(b"data")
    return np.frombuffer(data[at + 8:at + 8 + 4 * FRAMES], np.float32)


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A folder with libjack.so.0, a signal as raw floats and as .wav, and an impulse response."""
    folder = tmp_path_factory.mktemp("live")
    subprocess.run([os.environ.get("HK_CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread",
                    "-o", folder / "libjack.so.0", f"{SOURCE}/tests/cli/libjack.c"], check=True)
    t = np.arange(FRAMES) / 48000
    x = (0.3 * np.sin(2 * np.pi * 196 * t) * np.exp(-3 * t)).astype(np.float32)
    x.tofile(folder / "in.f32")
    write_wav(folder / "in.wav", x)
    write_wav(folder / "cabinet.wav", np.random.default_rng(1).normal(size=300) * np.exp(-np.arange(300) / 40) * 0.2)
    return folder


class Live:
    """The program, running; lines to it and from it."""

    def __init__(self, stage, *words, fault="", close_input=False, libraries=None):
        self.out, self.log = stage / "out.f32", stage / "connections"
        for path in (self.out, self.log):
            path.unlink(missing_ok=True)
        env = {**os.environ, "STANDIN_IN": str(stage / "in.f32"), "STANDIN_OUT": str(self.out), "STANDIN_LOG": str(self.log),
               "STANDIN_FAULT": fault, "LD_LIBRARY_PATH": str(libraries or stage)}
        self.process = subprocess.Popen([NAM, "live", *map(str, words)], env=env, text=True, bufsize=1,
                                        stdin=subprocess.DEVNULL if close_input else subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def until(self, text):
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"the program ended without '{text}': {self.process.stderr.read()}")

    def say(self, line):
        self.process.stdin.write(line + "\n")

    def end(self, code=0):
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == code, (self.process.returncode, out, err)
        return out, err

    def played(self):
        deadline = time.time() + 60
        while not self.out.exists() or self.out.stat().st_size < 4 * FRAMES:
            assert time.time() < deadline, "the file is not played"
            time.sleep(0.02)
        return np.fromfile(self.out, np.float32)


def rendered(stage, model):
    subprocess.run([NAM, "render", model, stage / "in.wav", stage / "want.wav", "--quiet"], check=True, timeout=60)
    return read_wav(stage / "want.wav")


@pytest.mark.parametrize("words", [[], ["--stereo"], ["--no-connect", "--name", "guitar"]])
def test_bits(stage, words):
    live = Live(stage, MODEL, *words)
    live.until("quit ends")
    got = live.played()
    live.say("quit")
    live.end()
    assert np.array_equal(got, rendered(stage, MODEL))
    log = live.log.read_text().split("\n")[:-1] if live.log.exists() else []
    name, two = "hankel-nam", "--stereo" in words
    assert log == ([] if "--no-connect" in words else
                   [f"system:capture_1 {name}:in_1"] + [f"system:capture_2 {name}:in_2"] * two +
                   [f"{name}:out_1 system:playback_1", f"{name}:out_{2 if two else 1} system:playback_2"])


def test_cabinet_and_gains(stage):
    live = Live(stage, MODEL, "--cabinet", stage / "cabinet.wav", "--output-db", "-6", "--input-db=0")
    got = live.played()
    live.say("quit")
    live.end()
    ir = read_wav(stage / "cabinet.wav")[:300]
    want = np.convolve(rendered(stage, MODEL).astype(np.float64), ir)[:FRAMES] * 10 ** (-6 / 20)
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_lines(stage):
    live = Live(stage, MODEL)
    live.until("quit ends")
    live.played()
    live.say(OTHER)
    assert live.until("amp: ").strip() == f"amp: {OTHER}"
    live.say(f"  {stage / 'cabinet.wav'}\t")
    live.until(f"cabinet: {stage / 'cabinet.wav'}")
    live.say("off")
    live.say("status")
    assert live.until("xruns").strip().endswith("off")
    live.say("on")
    for line in ("--output-db -3", "--gate-db=-60", "--size 0.5", "--normalize", "no cabinet", "no amp", MODEL):
        live.say(line)
    live.say("")
    assert "off" not in live.until("xruns")
    for line in ("--loud", "--output-db", "--output-db x", "--name other", "--stereo", "--passes 3", "/nowhere/amp.nam",
                 "/nowhere/cabinet.wav", OTHER + ".wav", "x" * 5000):
        live.say(line)
    live.say("quit")
    out, err = live.end()
    sentences = err.strip().split("\n")
    words = ["no option --loud", "--output-db needs a value", "'x' is not a number from -200 to 200", "--name cannot change",
             "--stereo cannot change", "--passes is no option of live", "/nowhere/amp.nam", "/nowhere/cabinet.wav",
             "features.nam.wav", "a line of 4096 bytes"]
    assert len(sentences) >= len(words)
    for sentence, word in zip(sentences, words):
        assert sentence.startswith("hankel-nam: ") and word in sentence, (sentence, word)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(stage, number):
    """The end of standard input ends nothing; a signal does."""
    live = Live(stage, MODEL, close_input=True, fault="xruns")
    live.until("quit ends")
    live.played()
    time.sleep(0.3)
    assert live.process.poll() is None
    live.process.send_signal(number)
    out, err = live.end()
    assert out == "3 xruns\n" and err == ""


@pytest.mark.parametrize("fault,words", [
    ("server", "no JACK server is running"), ("client", "refuses a client named hankel-nam"), ("ports", "gives no port"),
    ("activate", "does not start"), ("shutdown", "the JACK server has ended"), ("rate", "changed its rate")])
def test_refusals(stage, fault, words):
    out, err = Live(stage, MODEL, fault=fault).end(1)
    assert err.startswith("hankel-nam: ") and words in err and err.count("\n") == 1


def test_refused_files(stage):
    for words, sentence in (([f"{MODELS}/absent.nam"], "cannot be opened"), ([MODEL, "--cabinet", MODEL], "wavenet.nam: ")):
        out, err = Live(stage, *words).end(1)
        assert err.startswith("hankel-nam: ") and sentence in err, err


def test_bad_library(stage, tmp_path):
    """libjack.so.0 cannot be loaded, or lacks a function."""
    (tmp_path / "libjack.so.0").write_text("")
    out, err = Live(stage, MODEL, libraries=tmp_path).end(1)
    assert "live needs JACK: " in err and "libjack-jackd2-0" in err and err.count("\n") == 1
    (tmp_path / "empty.c").write_text("int nothing;")
    subprocess.run([os.environ.get("HK_CC", "cc"), "-shared", "-fPIC", "-o", tmp_path / "libjack.so.0", tmp_path / "empty.c"],
                   check=True)
    out, err = Live(stage, MODEL, libraries=tmp_path).end(1)
    assert "has no function jack_client_open" in err and err.count("\n") == 1


@pytest.mark.skipif(not shutil.which("jackd"), reason="jackd is not installed")
def test_jackd(stage, tmp_path):
    """A true server with the dummy driver: connected, playing, without xruns while nothing changes, ended by its end."""
    server = f"hankel-{os.getpid()}"
    env = {**os.environ, "JACK_NO_AUDIO_RESERVATION": "1"}
    with open(tmp_path / "log", "w") as log:
        jackd = subprocess.Popen(["jackd", "-r", "-n", server, "-d", "dummy", "-r", "48000", "-p", "256"], stdout=log,
                                 stderr=subprocess.STDOUT, env=env)
    try:
        time.sleep(1)
        if jackd.poll() is not None:
            pytest.skip("jackd does not start here: " + (tmp_path / "log").read_text().strip().split("\n")[-1])
        live = subprocess.Popen([NAM, "live", MODEL, "--server", server], text=True, bufsize=1, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert "48000 Hz, blocks of 256 frames" in [live.stdout.readline() for _ in range(2)][1]
        live.stdin.write(f"{OTHER}\nstatus\n")
        assert live.stdout.readline() == f"amp: {OTHER}\n"
        assert "xruns" in live.stdout.readline()
        jackd.terminate()
        out, err = live.communicate(timeout=30)
        assert live.returncode == 1 and "the JACK server has ended" in err, (out, err)
    finally:
        jackd.kill()
        jackd.wait()
