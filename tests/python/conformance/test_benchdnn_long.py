"""oneDNN's convolution and deconvolution problems through `hankel check`: every decision against the reference.

The lists lie beside the checkout, in ../shared/conformance/benchdnn, or where HANKEL_CONFORMANCE says; without them the
suite is skipped by name.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

import libhankel as hk
from conftest import BUILD, SOURCE
from suite import Suite

LISTS = Path(os.environ.get("HANKEL_CONFORMANCE", SOURCE.parent / "shared" / "conformance")) / "benchdnn"
COMMAND = os.environ.get("HANKEL_BIN", str(BUILD / "bin" / "hankel"))
LARGEST = 1 << 27  # elements of x and f: a check holds about a dozen times as many bytes
LISTED = {"memory": "x and f have more than 2^27 elements together; checking takes over 8 GB"}


def elements(line, deconv):
    """How many x and f of a problem hold at batch 1; 0 for lines that are not a bare problem."""
    text = line.strip()
    if not text or text[0] in "#-":
        return 0
    raw = hk.Problem(text, deconv).raw
    window, size = 1, 1
    for d in range(raw.rank):
        window, size = window * raw.window[d], size * raw.in_[d]
    return raw.c * size + raw.k * raw.c // max(raw.feature_groups, 1) * window


def small_enough(path, folder, suite):
    """The list without the problems that do not fit in memory, as a file in folder."""
    kept = []
    for line in path.read_text().splitlines():
        if elements(line, path.name.startswith("deconv")) > LARGEST:
            suite.refuse(f"{path.name}: {line}", "memory")
        else:
            kept.append(line)
    copy = folder / path.name
    copy.write_text("\n".join(kept) + "\n")
    return copy


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
def test_lists(tmp_path):
    suite = Suite("benchdnn", LISTED, least=500)
    for path in sorted(LISTS.iterdir()):
        passed, failed, skipped, printed = check(small_enough(path, tmp_path, suite))
        suite.passed += passed
        if failed:
            suite.failures += [f"{path.name}: {line}" for line in printed.splitlines() if "  # " in line][:failed] or \
                [f"{path.name}: {failed} failed"]
        for _ in range(skipped):
            suite.refuse(path.name, "skipped")
    suite.finish()
