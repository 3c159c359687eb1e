"""oneDNN's convolution and deconvolution problems through `hankel check`: every decision against the reference.

The lists lie beside the checkout, in ../shared/conformance/benchdnn, or where HANKEL_CONFORMANCE says; without them the
suite is skipped by name.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, SOURCE
from suite import Suite

LISTS = Path(os.environ.get("HANKEL_CONFORMANCE", SOURCE.parent / "shared" / "conformance")) / "benchdnn"
COMMAND = os.environ.get("HANKEL_BIN", str(BUILD / "bin" / "hankel"))


def check(path):
    """(passed, failed, skipped, what it printed) of one list; problems above the limit run on a smaller batch."""
    words = [COMMAND, "check", "--batch", str(path), "--reduce", "0.02", "--jobs", str(min(2, os.cpu_count() or 1))]
    if path.name.startswith("deconv"):
        words.append("--deconv")
    done = subprocess.run(words, capture_output=True, text=True)
    found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.M)
    assert found, f"{path.name}: exit code {done.returncode}: {done.stderr[-500:]}"
    return (*map(int, found[-1]), done.stdout)


@pytest.mark.skipif(not LISTS.is_dir(), reason="benchdnn suite: ../shared/conformance/benchdnn is not there")
def test_lists():
    suite = Suite("benchdnn", least=500)
    for path in sorted(LISTS.iterdir()):
        passed, failed, skipped, printed = check(path)
        suite.passed += passed
        if failed:
            suite.failures += [f"{path.name}: {line}" for line in printed.splitlines() if "  # " in line][:failed] or \
                [f"{path.name}: {failed} failed"]
        for _ in range(skipped):
            suite.refuse(path.name, "skipped")
    suite.finish()
