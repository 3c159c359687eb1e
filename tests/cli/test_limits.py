"""docs/limits.md is what docs/limits.py writes now. Which algorithm is fastest depends on the machine: the page is that of Zen 4."""
import os
import shutil
import subprocess
import sys

import pytest
from test_cli import HANKEL

DOCS = os.path.join(os.environ.get("HANKEL_SOURCE_DIR", "."), "docs")


def is_zen4():
    """As src/cost/cpu.c finds it, but for the models of Zen 3."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            fields = dict(map(str.strip, line.split(":", 1)) for line in f.read().split("\n\n")[0].splitlines())
    except (OSError, ValueError):
        return False
    model = int(fields.get("model", 0))
    return (fields.get("vendor_id"), fields.get("cpu family")) == ("AuthenticAMD", "25") and (
        0x10 <= model < 0x20 or 0x60 <= model < 0x80 or model >= 0xA0)


def check(docs):
    return subprocess.run([sys.executable, os.path.join(docs, "limits.py"), "--check"], capture_output=True, text=True,
                          env={**os.environ, "HANKEL_BIN": os.path.abspath(HANKEL)}, timeout=300)


pytestmark = pytest.mark.skipif(not is_zen4(), reason="the page is that of Zen 4")


def test_page_is_current():
    done = check(DOCS)
    assert done.returncode == 0, done.stderr


def test_stale_page_is_seen(tmp_path):
    for name in ("limits.py", "limits.md"):
        shutil.copy(os.path.join(DOCS, name), tmp_path)
    page = tmp_path / "limits.md"
    page.write_text(page.read_text(encoding="utf-8").replace("strip", "planes", 1), encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 1 and "out of date" in done.stderr
