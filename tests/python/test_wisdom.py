"""Wisdom tuned by the command is found from Python: numpy's strides of size-1 dimensions make no other problem."""
import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, libhankel as hk
n, c, k, groups, size, window = %s
x, f = np.zeros((n, c) + size, "f"), np.zeros((k, c // groups) + window, "f")
plan = hk.plan(x, f, feature_group_count=groups, threads=1, wisdom_only=True)
print(plan)
"""


@pytest.mark.parametrize("problem, shape", [
    ("2d_n1_c4_i6x6_k5_w1x1_first", (1, 4, 5, 1, (6, 6), (1, 1))),
    ("1d_n1_c1_i40_k3_w5_first", (1, 1, 3, 1, (40,), (5,))),
    ("1d_n2_c8_i16_k8_w3_g8_first", (2, 8, 8, 8, (16,), (3,))),
    ("2d_n1_c6_i1x9_k4_w1x3_g2_first", (1, 6, 4, 2, (1, 9), (1, 3))),
])
def test_command_and_python_share_wisdom(tmp_path, problem, shape):
    env = dict(os.environ, HANKEL_WISDOM=str(tmp_path / "wisdom"))
    subprocess.run([os.environ["HANKEL_BIN"], "tune", problem, "--threads", "1"], env=env, check=True,
                   capture_output=True)
    found = subprocess.run([sys.executable, "-c", SCRIPT % (shape,)], env=env, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert problem.replace("_first", "_f32_first") in found.stdout and "(wisdom)" in found.stdout
