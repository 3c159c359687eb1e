"""The package as a wheel: built by the backend, installed by pip into an empty place and into a fresh venv, used from there.
HANKEL_WHEEL names a wheel to test in the place of one packed here (scripts/wheel.sh makes them)."""
import email
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from conftest import SOURCE

PROGRAM = """
import numpy as np, libhankel as hk
from libhankel import library_path as used
assert used.startswith(%r), used
from libhankel import nam
if "libhankel-nam" in %r:
    assert nam._lib()
print(hk.__version__, hk.conv(np.ones((1, 2, 5), 'f4'), np.ones((3, 2, 3), 'f4')).tolist())
"""


@pytest.fixture(scope="module")
def backend():
    sys.path.insert(0, str(SOURCE / "python"))
    try:
        import hankel_build
    finally:
        sys.path.pop(0)
    return hankel_build


@pytest.fixture(scope="module")
def wheel(backend, tmp_path_factory):
    if os.environ.get("HANKEL_WHEEL"):
        return Path(os.environ["HANKEL_WHEEL"])
    folder = tmp_path_factory.mktemp("wheel")
    return folder / backend.build_wheel(str(folder), {"library": os.environ["LIBHANKEL"]})


def test_one_wheel_for_every_python(wheel):
    assert re.search(r"-py3-none-(many)?linux_", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        record = archive.read(next(n for n in names if n.endswith("/RECORD"))).decode()
    assert {"libhankel/libhankel.so.0", "libhankel/compat/wave.py", "libhankel/py.typed"} <= set(names)
    assert all(name + "," in record for name in names if not name.endswith("/"))


def test_metadata(backend):
    facts = email.message_from_string(backend._metadata({"url": "https://example.org/hankel"}))
    assert facts["Name"] == "libhankel" and facts["Version"] == backend._version() and facts["Author"] == "hankel developers"
    assert facts["Project-URL"] == "Source, https://example.org/hankel" and facts["Requires-Dist"].startswith("numpy")
    assert "License :: OSI Approved :: MIT License" in facts.get_all("Classifier") and "Typing :: Typed" in facts.get_all("Classifier")
    text = facts.get_payload()
    assert text.lstrip().startswith("# libhankel") and not re.search(r"\]\((?!https?:)", text), "a link that leads nowhere"
    assert "Project-URL" not in backend._metadata()


def test_installed_wheel_computes(wheel, tmp_path):
    """By pip where this Python has it, else unpacked as pip would."""
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        subprocess.run(pip + [str(wheel)], check=True, capture_output=True)
    else:
        shutil.unpack_archive(str(wheel), str(target), "zip")
    packed = " ".join(path.name for path in (target / "libhankel").glob("*.so*"))
    env = {k: v for k, v in os.environ.items() if k not in ("LIBHANKEL", "PYTHONPATH")}
    printed = subprocess.run([sys.executable, "-c", PROGRAM % (str(target), packed)], check=True, capture_output=True, text=True,
                             cwd=str(tmp_path), env=dict(env, PYTHONPATH=str(target))).stdout
    assert "[[[6.0, 6.0, 6.0]" in printed


def python_blocks(page):
    """The fenced Python of a page that needs numpy alone."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
    return [block for block in blocks if not re.search(r"\b(torch|jax)\b(?!')", re.sub("#.*", "", block))]


def test_readme_in_a_fresh_venv(wheel, tmp_path):
    """numpy and the wheel, nothing else: the Python of README.md prints what it says, that of python/README.md runs."""
    python = tmp_path / "venv" / "bin" / "python"
    if subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], capture_output=True).returncode:
        pytest.skip("this Python makes no venv (Debian: python3-venv)")
    env = {k: v for k, v in os.environ.items() if k not in ("LIBHANKEL", "PYTHONPATH")}
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run(pip + ["--only-binary", ":all:", "numpy"], capture_output=True, env=env).returncode:
        pytest.skip("pip cannot install numpy here")
    start = time.monotonic()
    subprocess.run(pip + ["--no-deps", "--no-index", str(wheel)], check=True, capture_output=True, env=env)
    assert time.monotonic() - start < 60
    def run(text):
        return subprocess.run([str(python), "-c", text], check=True, capture_output=True, text=True, cwd=str(tmp_path), env=env).stdout
    readme = (SOURCE / "README.md").read_text()
    wanted = re.search(r"^```python\n.*?^```text\n(.*?)^```", readme, re.S | re.M).group(1)
    first = python_blocks(SOURCE / "README.md")[0]
    assert run(first) == wanted
    others = python_blocks(SOURCE / "python" / "README.md")
    assert len(others) >= 2
    for block in others:
        run(block)
    assert "venv" in run("import libhankel; print(libhankel.library_path)")


def test_source_archive_holds_what_a_build_needs(backend, tmp_path):
    name = backend.build_sdist(str(tmp_path))
    shutil.unpack_archive(str(tmp_path / name), str(tmp_path))
    top = tmp_path / name[:-len(".tar.gz")]
    for part in ("CMakeLists.txt", "pyproject.toml", "include/hankel.h", "python/hankel_build.py", "PKG-INFO",
                 "python/libhankel/__init__.py", "src/core/problem.c"):
        assert (top / part).is_file(), part
