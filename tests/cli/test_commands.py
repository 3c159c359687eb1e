"""Every command that a log line or `hankel check` prints does what was done: same problem, options and decision."""
import shlex

import pytest
from test_cli import hankel, ok

DENSE = "2d_n2_c16_i9x9_k16_w3x3_p1_f32_first"
CASES = [
    [DENSE], [DENSE, "--epilogue", "bias+relu", "--threads", "3"], [DENSE, "--isa", "scalar"], [DENSE, "--math", "fast"],
    [DENSE, "--math", "fast,split", "--workspace", "0"], [DENSE, "--batch-invariant", "--forbid-fallback"],
    [DENSE, "--late-weights"], [DENSE, "--late-weights", "--epilogue", "scale+bias+prelu"], [DENSE, "--flush-denormals"],
    [DENSE, "--decision", "ref"], [DENSE, "--decision", "transpose / igemm"], [DENSE, "--rigor", "measure"],
    ["1d_n1_c8_i64_k16_w3_p2:0_bf16_first", "--stateful", "--epilogue", "gated:tanh:sigmoid"],
    ["1d_n1_c8_i64_k16_w3_last", "--epilogue", "bias+blended:tanh:sigmoid"],
    ["1d_n2_c8_i20_k8_w3_f32_xs=0.0.800.40.2_fs=0.0.24.3.1_ys=0.0.1.36.2", "--epilogue", "presum:0.5+clip:-2:3"],
    ["2d_n1_c8_i9x9_k8_w3x3_u8:s8:s8_xz3_fz-2_last", "--epilogue", "scale+bias+relu"]]


def logged(word, *words, env=None):
    """The fields of the log lines of a run, without the command at their end, and those commands."""
    code, _, err = hankel(*words, env={"HANKEL_VERBOSE": word, "HANKEL_WISDOM": "none", **(env or {})})
    assert code == 0, err
    lines = [line for line in err.splitlines() if line.startswith("hankel,")]
    assert lines
    return [line.rsplit(",hankel ", 1) for line in lines]


def again(command, word):
    return logged(word, *shlex.split(command))


@pytest.mark.parametrize("words", CASES, ids=" ".join)
@pytest.mark.parametrize("env", [{}, {"HANKEL_NUM_THREADS": "2", "HANKEL_MAX_ISA": "scalar"}], ids=["", "limited"])
def test_create_line(words, env):
    (fields, command), = logged("profile_create", "plan", *words, env=env)
    (second, same), = again(command, "profile_create")
    what = fields.split(",")[:6]  # hankel, create, device, problem, epilogue, decision
    assert second.split(",")[:6] == what and second.split(",")[6] == "forced"
    assert same == command
    problem, epilogue, decision = what[3:]
    assert command.startswith(f"plan '{problem}' --epilogue '{epilogue}'") and command.endswith(f"--decision '{decision}'")


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_exec_line(words):
    lines = logged("profile_exec", "bench", *words, "--rounds", "7", "--seconds", "0.01")
    fields, command = lines[0]
    second, same = again(command + " --rounds 7 --seconds 0.01", "profile_exec")[0]
    assert second.split(",")[:6] == fields.split(",")[:6] and same == command


def test_dispatch_lines():
    for fields, command in logged("dispatch", "plan", DENSE, "--epilogue", "relu", "--math", "fast", "--threads", "1"):
        code, out, err = hankel(*shlex.split(command))
        assert code == 0, err
        decision, verdict = fields.split(",")[3:5]
        if verdict == "usable":
            assert f"decision   {decision}  (forced)" in out
        else:
            assert f"{decision}" in out.split("\nrefused\n")[1]


OPTIONS = [
    [], ["--threads", "3"], ["--isa", "scalar"], ["--math", "fast,tf32"], ["--workspace", "4096"], ["--batch-invariant"],
    ["--forbid-fallback"], ["--rigor", "measure"], ["--rigor", "patient", "--time-limit", "0.5"], ["--wisdom-only"],
    ["--flush-denormals"], ["--unaligned"], ["--reduce", "0"], ["--reduce", "0.3"], ["--seed", "7"],
    ["--with", "late,state", "--epilogue", "bias+tanh"], ["--device", "cuda"]]


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_check_line_says_its_options(words):
    """--list prints the line that a failure would print."""
    line = ok("check", "1d_n1_c8_i64_k16_w3_p2:0_first", *words, "--list").strip()
    for word in words:
        assert word in line or word in ("--flush-denormals", "cuda"), line
    assert "--flush-denormals" not in words or "flush" in line
    assert ok(*shlex.split(line)[1:], "--list").strip() == line


def test_random_check_lines_read_back():
    for line in ok("check", "--random", "200", "--seed", "3", "--threads", "2", "--list").splitlines():
        assert ok(*shlex.split(line)[1:], "--list").strip() == line
