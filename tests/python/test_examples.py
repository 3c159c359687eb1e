"""The programs of examples/ run, and find themselves right."""
import os
import subprocess
import sys

import pytest

from conftest import SOURCE

pytest.importorskip("torch")


@pytest.mark.parametrize("arguments", [["--tokens", "30"], ["--width", "7", "--tokens", "10"]])
def test_mamba_block(arguments):
    paths = os.pathsep.join(filter(None, [str(SOURCE / "python"), os.environ.get("PYTHONPATH")]))
    run = subprocess.run([sys.executable, str(SOURCE / "examples" / "mamba_block.py"), *arguments], text=True,
                         capture_output=True, env={**os.environ, "PYTHONPATH": paths}, timeout=300)
    assert run.returncode == 0 and run.stdout.count("relative error") == 4, run.stdout + run.stderr
