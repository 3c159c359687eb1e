"""The command's verbs, formats and exit codes: 0 ok, 1 mismatch or failure, 2 usage, 3 unsupported."""
import csv
import io
import json
import os
import subprocess

import numpy as np
import pytest

HANKEL = os.environ.get("HANKEL_BIN", "build/bin/hankel")
SMALL = "2d_n1_c4_i6x7_k5_w3x3_p1_f32_last"


def hankel(*words, env=None, stdin=None):
    done = subprocess.run([HANKEL, *map(str, words)], capture_output=True, text=True, input=stdin,
                          env={**os.environ, **(env or {})}, timeout=300)
    return done.returncode, done.stdout, done.stderr


def ok(*words, **more):
    code, out, err = hankel(*words, **more)
    assert code == 0, err
    return out


# ---- the program itself
def test_version_and_help():
    assert ok("--version").startswith("hankel ")
    for verb in ("info", "plan", "run", "check", "bench", "demo"):
        assert f"usage: hankel {verb}" in ok(verb, "--help")
        assert ok("help", verb) == ok(verb, "--help")
    assert "usage:" in ok("--help")


@pytest.mark.parametrize("words", [
    [], ["nonsense"], ["plan"], ["plan", SMALL, "two"], ["plan", SMALL, "--nonsense"], ["plan", SMALL, "--threads"],
    ["plan", SMALL, "--threads", "many"], ["plan", SMALL, "--why=1"], ["plan", SMALL, "--isa", "mmx"],
    ["plan", SMALL, "--grad", "nonsense"], ["check", "--random", "3", "--grad", "filter"],
    ["plan", SMALL, "--epilogue", "bias+nonsense"], ["plan", "2d_n1_nonsense"], ["plan", "2d_n1_c4_i6x7_k5_w3x3_s0_last"],
    ["check"], ["check", SMALL, "--random", "3"], ["check", SMALL, "--with", "nonsense"], ["check", SMALL, "--jobs", "0"],
    ["check", "--batch", "/nonexistent"], ["bench"], ["bench", SMALL, "--csv", "--json"], ["run", "--x", "a.npy"],
    ["bench", "--batch", "/nonexistent.tsv", "--layout", "sideways"], ["info", "--device", "abacus"]])
def test_usage_errors(words):
    code, out, err = hankel(*words)
    assert code == 2
    assert out == "" and err != ""


def test_gradients():
    layer = "2d_n1_c64_i28x28_k64_w3x3_p1_f32_last"
    assert "decision   outer" in ok("plan", layer, "--grad", "filter")
    assert "decision   tapsum" in ok("plan", layer.replace("_f32", "_g64_f32"), "--grad", "filter")
    assert "_w3x3_p1_flip_" in ok("plan", layer, "--grad", "input").splitlines()[0]
    assert "1 passed" in ok("check", "2d_n2_c6_i9x9_k7_w3x3_p1_f32_last", "--grad", "filter")
    assert "20 passed" in ok("check", "--random", "20", "--family", "grad")


def test_unsupported():
    code, out, err = hankel("plan", "1d_n1_c3_i5_k3_w2_f8e4m3:f64:f32_first", "--forbid-fallback")
    assert code == 3 and out == "" and "HK_FALLBACK" in err
    code, _, _ = hankel("bench", SMALL, "--peer", "nobody")
    assert code == 3


@pytest.mark.parametrize("more", [[], ["--epilogue", "gated:tanh:sigmoid"]])
def test_no_device(more):
    if hankel("info", "--device", "cuda")[0] == 0:
        pytest.skip("there is a CUDA device")
    code, out, err = hankel("plan", SMALL.replace("k5", "k6"), "--device", "cuda", *more)
    assert code == 3 and out == "" and "CUDA" in err  # the device, not what some algorithm would have asked next


def test_no_color_off_a_terminal():
    for env in ({}, {"NO_COLOR": "1"}):
        _, out, err = hankel("plan", SMALL, "--why", env=env)
        assert "\033" not in out + err


# ---- info, plan
def test_info():
    data = json.loads(ok("info", "--json", "--quick"))
    assert data["cores"] >= 1 and data["isas"]
    measured = ok("info")
    assert "GFLOP/s" in measured and "GB/s" in measured


def test_plan():
    text = ok("plan", SMALL, "--why")
    assert "symbols" in text and "gk" in text and "ref" in text
    reasons = [line.split(": ", 1)[1] for line in text.split("\nrefused\n")[1].splitlines()]
    assert reasons and len(reasons) == len(set(reasons)), "refusals are grouped by reason"
    data = json.loads(ok("plan", SMALL, "--json", "--why", "--epilogue", "bias+relu"))
    assert data["symbols"]["gk"] == 36 and data["symbols"]["gm"] == 42
    assert any(c["decision"] == "ref" and c["refusal"] is None for c in data["candidates"])
    forced = json.loads(ok("plan", SMALL, "--json", "--decision", "ref"))
    assert forced["decision"] == "ref"


@pytest.mark.parametrize("problem, words", [
    ("2d_n1_c128_i28x28_k128_w3x3_p1_f32_last", []), ("2d_n1_c256_i33x33_k256_w3x3_p18_d18_f32_first", []),
    ("1d_n1_c1024_i4096_k1024_w3_g1024_f32_last", []), ("1d_n1_c512_i65536_k512_w4_p3:0_g512_f32_last", ["--threads", 2]),
    ("2d_n1_c64_i512x512_k64_w3x3_p1_g64_f32_first", []), ("2d_n1_c1024_i14x14_k2048_w1x1_s2_f32_last", []),
    ("2d_n1_c32_i14x14_k32_w4x4_p2_l2_flip_f32_last", []), ("2d_n1_c64_i56x56_k64_w3x3_p1_bf16_last", []),
    ("2d_n1_c64_i56x56_k64_w3x3_p1_f64_last", []), ("2d_n1_c64_i56x56_k64_w3x3_p1_u8:s8:s8_last", []),
    ("1d_n1_c16_i64_k16_w1_f32_last", ["--isa", "scalar"]), ("2d_n0_c4_i6x7_k5_w3x3_f32_last", [])])
def test_no_prediction_is_below_the_floor(problem, words):
    plan = json.loads(ok("plan", problem, "--why", "--json", *(words or ["--threads", 1]), env={"HANKEL_WISDOM": "none"}))
    floor = max(plan["floor_flops_s"], plan["floor_bytes_s"])
    assert floor > 0 or "_n0_" in problem
    assert all(c["predicted_s"] >= floor for c in plan["candidates"] if not c["refusal"])


def test_plan_reads_benchdnn():
    data = json.loads(ok("plan", 'g1mb1ic4ih6oc5oh6kh3ph1n"x"', "--json"))
    assert data["symbols"]["gm"] == 36


# ---- run
def direct(x, f, stride=1, pad=0):
    """NHWC by KHWC, in double."""
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    r, s = f.shape[1:3]
    p, q = (x.shape[1] - r) // stride + 1, (x.shape[2] - s) // stride + 1
    y = np.zeros((x.shape[0], p, q, f.shape[0]))
    for i in range(r):
        for j in range(s):
            y += np.einsum("npqc,kc->npqk", x[:, i:i + p * stride:stride, j:j + q * stride:stride][:, :p, :q], f[:, i, j])
    return y


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 9, 8, 3)).astype(np.float32)
    f = rng.standard_normal((4, 3, 2, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", f)
    return tmp_path, x, f


def test_run_layouts(arrays):
    tmp, x, f = arrays
    expected = direct(x, f, stride=2, pad=1)
    files = ["--x", tmp / "x.npy", "--f", tmp / "f.npy", "--out", tmp / "y.npy"]
    ok("run", *files, "--stride", "2", "--padding", "1")
    y = np.load(tmp / "y.npy")
    assert y.shape == expected.shape and np.allclose(y, expected, atol=1e-4)
    np.save(tmp / "x.npy", np.asfortranarray(x.transpose(0, 3, 1, 2)))
    np.save(tmp / "f.npy", np.ascontiguousarray(f.transpose(0, 3, 1, 2)))
    ok("run", *files, "--stride", "2x2", "--padding", "1:1x1:1", "--layout", "first")
    assert np.allclose(np.load(tmp / "y.npy").transpose(0, 2, 3, 1), expected, atol=1e-4)
    np.save(tmp / "x.npy", x)
    np.save(tmp / "f.npy", np.ascontiguousarray(f.transpose(1, 2, 3, 0)))
    ok("run", *files, "--stride", "2", "--padding", "1", "--spec", "NHWC,HWIO,NCHW")
    assert np.allclose(np.load(tmp / "y.npy").transpose(0, 2, 3, 1), expected, atol=1e-4)


def test_run_epilogue(arrays):
    tmp, x, f = arrays
    bias = np.arange(4, dtype=np.float32)
    c = np.ones((2, 7, 7, 4), np.float32)
    np.save(tmp / "b.npy", bias)
    np.save(tmp / "c.npy", c)
    files = ["--x", tmp / "x.npy", "--f", tmp / "f.npy", "--out", tmp / "y.npy", "--bias", tmp / "b.npy", "--c",
             tmp / "c.npy", "--epilogue", "bias+relu+sum:0.5"]
    ok("run", *files)
    assert np.allclose(np.load(tmp / "y.npy"), np.maximum(direct(x, f) + bias, 0) + 0.5, atol=1e-4)
    np.save(tmp / "b.npy", bias[:3])
    code, _, err = hankel("run", *files)
    assert code == 2 and "bias" in err


def test_run_problem_string_and_int8(tmp_path):
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 16, 1)
    f = np.ones((1, 3, 1), np.int8)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", f)
    files = ["--x", tmp_path / "x.npy", "--f", tmp_path / "f.npy", "--out", tmp_path / "y.npy"]
    ok("run", "1d_n1_c1_i16_k1_w3_s8:s8:s32_last", *files)
    expected = np.convolve(x.ravel().astype(int), [1, 1, 1], "valid")
    assert (np.load(tmp_path / "y.npy").ravel() == expected).all()
    code, _, err = hankel("run", "1d_n1_c1_i17_k1_w3_s8:s8:s32_last", *files)
    assert code == 2 and "16 elements" in err


def test_run_transposed(tmp_path):
    x = np.array([1, 2, 3], np.float32).reshape(1, 1, 3)
    f = np.array([1, 10], np.float32).reshape(1, 1, 2)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", f)
    ok("run", "--x", tmp_path / "x.npy", "--f", tmp_path / "f.npy", "--out", tmp_path / "y.npy", "--transposed",
       "--stride", 2, "--layout", "first")
    assert np.load(tmp_path / "y.npy").ravel().tolist() == [1, 10, 2, 20, 3, 30]


# ---- .npy files nobody should trust
def npy(header, data=b"", version=b"\x01\x00", length=None):
    text = header.encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY" + version + size.to_bytes(2 if version[0] == 1 else 4, "little") + text + data


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 1), }"
HOSTILE = {
    "empty": b"", "short": b"\x93NUM", "magic": b"\x93NUMPX" + npy(HEADER)[6:], "version": npy(HEADER, version=b"\x09\x00"),
    "cut header": npy(HEADER)[:30], "long header": npy(HEADER, length=60000), "huge header": npy(HEADER, b"", b"\x02\x00", 2**32 - 1),
    "cut data": npy(HEADER, bytes(11)), "extra data": npy(HEADER, bytes(13)),
    "huge shape": npy(HEADER.replace("(1, 3, 1)", "(1, 4611686018427387904, 1)")),
    "overflow": npy(HEADER.replace("(1, 3, 1)", "(4294967296, 4294967296, 4294967296)")),
    "overflow by zero": npy(HEADER.replace("(1, 3, 1)", "(0, 4294967296, 4294967296, 4294967296)")),
    "beyond 63 bits": npy(HEADER.replace("(1, 3, 1)", "(1, 99999999999999999999, 1)")),
    "negative": npy(HEADER.replace("(1, 3, 1)", "(1, -3, 1)")), "nine axes": npy(HEADER.replace("(1, 3, 1)", "(1,1,1,1,1,1,1,1,1)")),
    "open shape": npy(HEADER.replace("(1, 3, 1), }", "(1, 3")), "no shape": npy("{'descr': '<f4', 'fortran_order': False}", bytes(12)),
    "records": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 3, 1)}", bytes(12)),
    "objects": npy(HEADER.replace("<f4", "|O"), bytes(24)), "big-endian": npy(HEADER.replace("<f4", ">f4"), bytes(12)),
    "odd order": npy(HEADER.replace("False", "Maybe"), bytes(12)), "not a dict": npy("[1, 2]"), "open text": npy("{'descr"),
    "unknown key": npy(HEADER.replace("'shape'", "'size'"), bytes(12)), "one axis": npy(HEADER.replace("(1, 3, 1)", "(3,)"), bytes(12)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_npy(name, tmp_path):
    (tmp_path / "x.npy").write_bytes(HOSTILE[name])
    np.save(tmp_path / "f.npy", np.ones((1, 2, 1), np.float32))
    code, out, err = hankel("run", "--x", tmp_path / "x.npy", "--f", tmp_path / "f.npy", "--out", tmp_path / "y.npy")
    assert code == 2 and out == "" and "hankel: error: " in err
    assert not (tmp_path / "y.npy").exists()


def test_npy_good_twin(tmp_path):
    """The header the hostile ones are made from is fine when the data is there."""
    (tmp_path / "x.npy").write_bytes(npy(HEADER, np.arange(3, dtype=np.float32).tobytes()))
    np.save(tmp_path / "f.npy", np.ones((1, 2, 1), np.float32))
    ok("run", "--x", tmp_path / "x.npy", "--f", tmp_path / "f.npy", "--out", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").ravel().tolist() == [1, 3]


# ---- check
@pytest.mark.parametrize("problem", ["2d_n1_c0_i3x3_k0_w1x1_f32_last", "2d_n1_c0_i3x3_k0_w1x1_f32_first", "1d_n1_c0_i3_k4_w1_f32_last",
                                     "1d_n0_c0_i0_k0_w1_f32_last", "2d_n1_c3_i3x3_k0_w1x1_f32_first"])
def test_check_without_channels(problem):
    assert ok("check", problem).splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_check_like_of_parts():
    """Phases of different windows that begin at the same element of f: one stride of f is 0."""
    problem = "1d_n2_c5_i13_k1_w4_p5:-2_l3_flip_f32_xs=0.2.150.4.10_fs=0.67.1.1.0_ys=0.0.37.37.1"
    assert ok("check", problem, "--with", "like").splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_check_problem():
    out = ok("check", SMALL, "--epilogue", "bias+gelu+sum:0.5")
    assert out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("problem", ["2d_n2_c5_i7x6_k70_w1x1_f32_last", "2d_n1_c8_i9x9_k16_w3x3_p1_f32_last",
                                     "2d_n1_c6_i11x9_k20_w3x3_d2_p2_g2_f32_last", "1d_n2_c3_i40_k24_w5_s2_p2_f32_last"])
@pytest.mark.parametrize("epilogue", ["bias+silu", "scale+prelu", "scale1+bias+presum:0.5+tanh", "gelu"])
def test_check_activations_that_follow_the_store(problem, epilogue):
    """Every decision: igemm applies these over finished rows, lines and blocks of y."""
    assert ok("check", problem, "--epilogue", epilogue).endswith("1 passed, 0 failed, 0 skipped\n")


def test_check_random_same_for_any_jobs():
    one = ok("check", "--random", 300, "--seed", 5, "--stats")
    three = ok("check", "--random", 300, "--seed", 5, "--stats", "--jobs", 3)
    assert one == three and one.splitlines()[-1] == "300 passed, 0 failed, 0 skipped"
    assert ok("check", "--random", 20, "--list") == ok("check", "--random", 20, "--list")


def test_check_batch(tmp_path):
    (tmp_path / "list").write_text(
        "# comment\n--reset\n\nmb1ic4ih6oc4oh6kh3ph1n\"a\"\n--strides=252x1x42x6::180x1x30x5 mb1ic4ih6oc4oh6kh3ph1n\"b\" # x\n")
    assert ok("check", "--batch", tmp_path / "list").endswith("2 passed, 0 failed, 0 skipped\n")
    (tmp_path / "deconv").write_text('mb1ic4iw5oc8ow9kw3sw2pw1n"t"\n')
    assert ok("check", "--batch", tmp_path / "deconv", "--deconv").endswith("1 passed, 0 failed, 0 skipped\n")
    (tmp_path / "s.tsv").write_text("#name\tN\na\t1\t4\t6\t6\t4\t3\t3\t1\t1\t1\t1\nb 1 4 1 9 4 1 3 1 2 2 4\n")
    for layout in ("first", "last"):
        out = ok("check", "--batch", tmp_path / "s.tsv", "--layout", layout, "--types", "f32,bf16")
        assert out.endswith("4 passed, 0 failed, 0 skipped\n")
    (tmp_path / "bad.tsv").write_text("a 1 2 3\n")
    code, _, err = hankel("check", "--batch", tmp_path / "bad.tsv")
    assert code == 2 and "bad.tsv:1" in err


def test_check_reads_stdin():
    assert ok("check", "--batch", "-", stdin=SMALL + "\n").endswith("1 passed, 0 failed, 0 skipped\n")


def test_check_sample_of_a_large_problem():
    code, out, err = hankel("check", "2d_n1_c64_i20x20_k64_w3x3_p1_f32_last", "--reduce", "0.001")
    assert code == 0 and "sample" in err and out.endswith("1 passed, 0 failed, 0 skipped\n")


# ---- bench
COLUMNS = ["name", "problem", "layout", "threads", "us", "gflops", "pct_peak", "decision", "best_peer", "ratio"]


def test_bench_csv(tmp_path):
    (tmp_path / "s.tsv").write_text("one 1 4 6 6 4 3 3 1 1 1 1\ntwo 1 4 1 9 4 1 3 1 2 2 4\n")
    out = ok("bench", "--batch", tmp_path / "s.tsv", "--csv", "--rounds", 3, "--threads", 1)
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == COLUMNS and [r[0] for r in rows[1:]] == ["one", "two"]
    assert all(len(r) == len(COLUMNS) and float(r[4]) > 0 and r[3] == "1" for r in rows[1:])


def test_bench_json_and_table():
    data = json.loads(ok("bench", SMALL, "--json", "--rounds", 3))
    assert {"context", "benchmarks"} <= data.keys()
    first = data["benchmarks"][0]
    assert first["run_type"] == "aggregate" and first["aggregate_name"] == "median" and first["time_unit"] == "us"
    assert first["real_time"] > 0
    assert "GFLOP/s" in ok("bench", SMALL, "--rounds", 3, "--cold")


PEER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/bench/peer.h"
static int state;
static void *make(const hk_peer_job *job, char *why) {
  const char *held[] = {getenv("HANKEL_PEER_ISA"), getenv("ONEDNN_MAX_CPU_ISA"), getenv("OPENBLAS_CORETYPE")};
  if (held[0]) { snprintf(why, 200, "held to %s %s %s", held[0], held[1], held[2]); return NULL; }
  if (job->problem->c != 4) { strcpy(why, "four channels only"); return NULL; }
  return &state;
}
static void run(void *s) { for (volatile int i = 0; i < 1000; i++) ++*(int *)s; }
static void destroy(void *s) { (void)s; }
const hk_peer *hk_peer_get(void) {
  static const hk_peer peer = {HK_PEER_VERSION, "toy", "a loop", make, run, destroy};
  return &peer;
}
"""


def test_bench_peer(tmp_path):
    source = os.environ.get("HANKEL_SOURCE_DIR", ".")
    (tmp_path / "toy.c").write_text(PEER)
    subprocess.run([os.environ.get("HK_CC", "cc"), "-shared", "-fPIC", "-I", source, "-I", f"{source}/include", "-o",
                    tmp_path / "hankel_peer_toy.so", tmp_path / "toy.c"], check=True)
    out = ok("bench", SMALL, "--peer", "toy", "--csv", "--rounds", 3, env={"HANKEL_PEERS": str(tmp_path)})
    head, row = list(csv.reader(io.StringIO(out)))
    assert head == COLUMNS[:8] + ["toy_us"] + COLUMNS[8:] and row[-2] == "toy" and float(row[-1]) > 0
    two = ok("bench", SMALL, "--peer", f"toy,{tmp_path / 'hankel_peer_toy.so'}", "--csv", "--rounds", 3, env={"HANKEL_PEERS": str(tmp_path)})
    assert list(csv.DictReader(two.splitlines()))[0]["best_peer"] == "toy" and two.splitlines()[0].count("toy_us") == 2
    code, _, err = hankel("bench", SMALL, "--peer", "toy,nobody", env={"HANKEL_PEERS": str(tmp_path)})
    assert code != 0 and "nobody" in err
    code, out, err = hankel("bench", SMALL.replace("c4", "c3"), "--peer", tmp_path / "hankel_peer_toy.so", "--csv",
                            "--rounds", 3)
    assert code == 0 and "four channels only" in err and out.splitlines()[1].endswith(",,,")
    for core, more in ("Haswell", {}), ("Zen", {"OPENBLAS_CORETYPE": "Zen"}):  # what the caller set stands
        _, _, err = hankel("bench", SMALL, "--peer", "toy", "--rounds", 3, "--isa", "avx2", env={"HANKEL_PEERS": str(tmp_path), **more})
        assert f"held to avx2 AVX2 {core}" in err


# ---- demo
def test_demo():
    out = ok("demo")
    assert out.count(" ok ") == 4 and "WRONG" not in out


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_check_holds_transforms_to_their_stretch(seed):
    """At a padded edge an output's own terms may be tiny, while the error is that of the whole stretch."""
    out = ok("check", "1d_n2_c48_i777_k48_w31_p30:0_g48_f32_last", "--math", "fast", "--seed", seed)
    assert "1 passed" in out
    # every output of a channel misses every weight but one, which is zero: the bound is not
    out = ok("check", "1d_n1_c33_i10_k33_w81_p2720_d68_g33_f32_last", "--math", "fast", "--seed", 4238847672736)
    assert "1 passed" in out


def test_batch_invariant_choice():
    """The choice for one image is that for many: where a residual's strides are not canonical, and where a workspace
    grows with the batch only after its first 64 bytes."""
    assert "1 passed" in ok("check", "2d_n2_c2_i14x2_k4_w3x4_s1x2_p3:2x2:1_g2_f32_last", "--epilogue", "scale1+presum:1",
                            "--seed", 12584902960505, "--math", "fast", "--isa", "scalar", "--batch-invariant")
    assert "1 passed" in ok("check", "3d_n4_c5_i1x1x1_k8_w5x5x5_p2_f32_xs=0.180.-12.-2.-60.180.-2_fs=0.0.625.125.25.5.1_"
                            "ys=0.0.8.1.1.1.1", "--epilogue", "bias", "--seed", 14465841892777, "--isa", "avx2",
                            "--workspace", 237, "--batch-invariant")
