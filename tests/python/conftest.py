"""What all Python tests share: the library under test, and where a suite leaves its counts."""
import os
import sys
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("HANKEL_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("HANKEL_BUILD_DIR", SOURCE / "build"))
os.environ.setdefault("LIBHANKEL", os.environ.get("HANKEL_LIBRARY", str(BUILD / "lib" / "libhankel.so")))
os.environ["HANKEL_WISDOM"] = "none"  # what this machine's user has measured has no part in the tests
for folder in (SOURCE / "python", SOURCE / "tests" / "python"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def pytest_configure(config):
    if os.environ.get("HK_SANITIZE"):
        # a sanitized library cannot be loaded into a Python that was built without the sanitizer's run time
        pytest.exit("SKIPPED: Python suites run without sanitizers", returncode=77)


@pytest.fixture(scope="session")
def build_dir():
    return BUILD
