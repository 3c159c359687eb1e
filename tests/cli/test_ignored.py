"""Nothing the command is told is ignored in silence: an option or a variable takes effect, or is refused."""
import json

import numpy as np
import pytest
from test_cli import SMALL, arrays, hankel, ok  # noqa: F401 (arrays is a fixture)


@pytest.mark.parametrize("option, value", [
    ("stride", "2"), ("padding", "1"), ("dilation", "1"), ("in-dilation", "1"), ("flip", "0"), ("groups", "1"),
    ("batch-groups", "1"), ("layout", "last"), ("spec", "NWC,WIO,NWC"), ("output-padding", "0"), ("y-type", "f32"),
    ("x-zero", "0"), ("transposed", None)])
def test_run_problem_refuses_options_of_arrays(option, value, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 16, 1), np.float32))
    np.save(tmp_path / "f.npy", np.ones((1, 3, 1), np.float32))
    code, _, err = hankel("run", "1d_n1_c1_i16_k1_w3_f32_last", "--x", tmp_path / "x.npy", "--f",
                          tmp_path / "f.npy", "--out", tmp_path / "y.npy", f"--{option}", *([value] if value else []))
    assert code == 2 and f"--{option} does not apply" in err and not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("words, refused", [
    (["--spec", "NHWC,OHWI,NHWC", "--layout", "first"], "--layout"),
    (["--spec", "NHWC,OHWI,NHWC", "--flip", "1"], "--flip"),
    (["--transposed", "--in-dilation", "2"], "--in-dilation"), (["--output-padding", "1"], "--output-padding")])
def test_run_refuses_options_that_exclude_each_other(arrays, words, refused):  # noqa: F811
    tmp, _, _ = arrays
    code, _, err = hankel("run", "--x", tmp / "x.npy", "--f", tmp / "f.npy", "--out", tmp / "y.npy", *words)
    assert code == 2 and f"{refused} does not apply" in err


@pytest.mark.parametrize("words", [
    ["bench", SMALL, "--layout", "first"], ["bench", SMALL, "--types", "bf16"], ["bench", SMALL, "--only", "a"],
    ["bench", SMALL, "--block", "8"], ["check", SMALL, "--layout", "first"], ["check", SMALL, "--from", "3"],
    ["tune", SMALL, "--only", "a", "--audit"], ["tune", "--random", "1", "--layout", "first", "--audit"]])
def test_options_of_a_batch(words):
    code, out, err = hankel(*words)
    assert code == 2 and out == "" and "does not apply" in err


@pytest.mark.parametrize("words, named", [
    (["plan", SMALL, "--workspace", "-5"], "--workspace: -5"), (["bench", SMALL, "--seconds", "nan"], "--seconds: nan"),
    (["bench", SMALL, "--seconds", "0"], "--seconds: 0"), (["check", SMALL, "--reduce", "-1"], "--reduce: -1"),
    (["bench", "--stream", "--threads", "2"], "--threads does not apply"),
    (["bench", "--stream", "--block", "0"], "--block: 0"),
    (["bench", "--stream", "--html", "x"], "--html does not apply"), (["tune", SMALL, "--csv"], "--csv does not apply"),
    (["tune", SMALL, "--audit", "--seed", "3"], "--seed does not apply"),
    (["tune", SMALL, "--audit", "--decision", "ref"], "--decision does not apply to tune: it measures every candidate"),
    (["tune", SMALL, "--decision", "ref"], "--decision does not apply to tune: it measures every candidate"),
    (["wisdom", "export", "--save", "x"], "--save does not apply")])
def test_other_options_without_effect(words, named):
    code, out, err = hankel(*words)
    assert code == 2 and out == "" and named in err


@pytest.mark.parametrize("words, named", [
    (["--x-zero", 2**32], "--x-zero: 4294967296"), (["--groups", 0], "--groups: 0"),
    (["--batch-groups", 0], "--batch-groups: 0"), (["--flip", 7], "--flip: 7"),
    (["--spec", "NWC,OWI,NWC,NWC"], "not three words"), (["--slopes", "f.npy"], "--slopes")])
def test_run_numbers_that_were_cut(words, named, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 16, 1), np.int8))
    np.save(tmp_path / "f.npy", np.ones((1, 3, 1), np.int8))
    code, _, err = hankel("run", "--x", tmp_path / "x.npy", "--f", tmp_path / "f.npy", "--out",
                          tmp_path / "y.npy", *words)
    assert code == 2 and named in err and not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("verb", [["bench", "--rounds", "1"], ["bench", "--csv"], ["bench", "--json"],
                                  ["tune", "--audit", "--csv"]])
def test_only_that_matches_nothing(verb, tmp_path):
    (tmp_path / "s.tsv").write_text("one 1 4 6 6 4 3 3 1 1 1 1\n")
    code, out, err = hankel(*verb, "--batch", tmp_path / "s.tsv", "--only", "nine")
    assert code == 2 and out == "" and "'nine'" in err and "'one'" in err


@pytest.mark.parametrize("more", [[], ["--in-process"], ["--jobs", "2"]])
def test_check_without_a_device(more):
    if hankel("info", "--device", "cuda")[0] == 0:
        pytest.skip("there is a CUDA device")
    for problems in ([SMALL], ["--random", "5"]):
        code, out, err = hankel("check", *problems, "--device", "cuda", *more)
        assert code == 3 and out == "" and "--device cuda" in err and "CUDA" in err


@pytest.mark.parametrize("isa", ["scalar", "neon", "avx2", "avx512", "amx"])
def test_isa_that_is_printed_is_there(isa):
    have = [i["name"] for i in json.loads(ok("info", "--json", "--quick"))["isas"]]
    lines = ok("plan", SMALL, "--isa", isa).splitlines()
    printed = [line for line in lines if line.startswith("threads")][0].split()[-1]
    assert printed in have and (printed == isa or isa not in have)


@pytest.mark.parametrize("name, value, accepted", [
    ("HANKEL_MAX_ISA", "avx3", "scalar"), ("HANKEL_WITHOUT", "avxvnni,vnni", "avx512vnni"),
    ("HANKEL_NUM_THREADS", "0", "1 to 4096"),
    ("HANKEL_NUM_THREADS", "2x", "1 to 4096"), ("HANKEL_NUM_THREADS", "99999", "1 to 4096"),
    ("HANKEL_VERBOSE", "warn,profil", "profile_exec"), ("HANKEL_VERBOSE", "none,7", "profile_exec"),
    ("HANKEL_LOGFILE", "/nonexistent/log", "stderr")])
def test_environment_that_is_ignored_is_told_once(name, value, accepted):
    env = {name: value, **({"HANKEL_VERBOSE": "profile_exec"} if name == "HANKEL_LOGFILE" else {})}
    code, out, err = hankel("bench", SMALL, "--rounds", "1", "--csv", env=env)
    told = [line for line in err.splitlines() if line.startswith("hankel,error,environment")]
    assert code == 0 and out and len(told) == 1
    assert name in told[0] and value.split(",")[-1] in told[0] and accepted in told[0]


@pytest.mark.parametrize("name, value", [
    ("HANKEL_MAX_ISA", "scalar"), ("HANKEL_MAX_ISA", ""), ("HANKEL_MAX_ISA", "best"), ("HANKEL_WITHOUT", ""),
    ("HANKEL_WITHOUT", "avxvnni,i8mm"), ("HANKEL_NUM_THREADS", "1"),
    ("HANKEL_NUM_THREADS", ""), ("OMP_NUM_THREADS", "2,1"), ("OMP_NUM_THREADS", "x"), ("HANKEL_VERBOSE", "error,warn,"),
    ("HANKEL_VERBOSE", "0")])
def test_environment_that_is_accepted_is_silent(name, value):
    code, _, err = hankel("plan", SMALL, env={name: value})
    assert code == 0 and "environment" not in err


def test_features_that_are_taken_away_are_not_listed():
    have = json.loads(ok("info", "--json", "--quick"))["features"].split()
    for name in have:
        left = json.loads(hankel("info", "--json", "--quick", env={"HANKEL_WITHOUT": name})[1])["features"].split()
        assert left == [f for f in have if f != name]
