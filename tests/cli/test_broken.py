"""A test of the tests: `hankel check` sees every kind of fault that tests/cli/broken_kernel.c can make."""
import os
import subprocess

import pytest

HANKEL = os.environ.get("HANKEL_BIN", "build/bin/hankel")
SOURCE = os.environ.get("HANKEL_SOURCE_DIR", ".")
# y has a gap of two elements after its four channels
PROBLEM = "2d_n1_c4_i5x5_k4_w3x3_p1_f32_xs=0.0.100.1.20.4_fs=0.0.36.1.12.4_ys=0.0.150.1.30.6"

pytestmark = pytest.mark.skipif(bool(os.environ.get("HK_SANITIZE")), reason="a preloaded library and sanitizers do not mix")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    path = tmp_path_factory.mktemp("broken") / "broken.so"
    subprocess.run([os.environ.get("HK_CC", "cc"), "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", f"{SOURCE}/include",
                    "-o", path, f"{SOURCE}/tests/cli/broken_kernel.c"], check=True)
    return path


def check(broken, fault):
    env = {**os.environ, "LD_PRELOAD": str(broken), "HANKEL_BREAK": fault}
    return subprocess.run([HANKEL, "check", PROBLEM], capture_output=True, text=True, env=env, timeout=120)


def test_unbroken(broken):
    done = check(broken, "nothing")
    assert done.returncode == 0 and done.stdout == "1 passed, 0 failed, 0 skipped\n", done.stdout


@pytest.mark.parametrize("fault,words", [
    ("value", "the reference"), ("small", "the reference"), ("overrun", "died"), ("underrun", "was written"),
    ("gap", "a gap"), ("overread", "died"), ("underread", "died"), ("twice", "gives other bits")])
def test_broken(broken, fault, words):
    done = check(broken, fault)
    assert done.returncode == 1
    assert words in done.stdout and done.stdout.endswith("0 passed, 1 failed, 0 skipped\n"), done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("hankel check "))
    # the printed line reproduces the failure
    words = line.split("#")[0].replace("hankel", HANKEL, 1)
    env = {**os.environ, "LD_PRELOAD": str(broken), "HANKEL_BREAK": fault}
    assert subprocess.run(words, shell=True, capture_output=True, env=env, timeout=120).returncode == 1
