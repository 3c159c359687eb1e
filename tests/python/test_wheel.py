"""The package as a wheel: built by the backend, installed by pip into an empty place, used from there."""
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import SOURCE

PROGRAM = """
import numpy as np, libhankel as hk
from libhankel import library_path as used
assert used.startswith(%r), used
from libhankel import nam
if "nam" in %r:
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
    folder = tmp_path_factory.mktemp("wheel")
    return folder / backend.build_wheel(str(folder), {"library": os.environ["LIBHANKEL"]})


def test_one_wheel_for_every_python(wheel):
    assert "-py3-none-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        record = archive.read(next(n for n in names if n.endswith("/RECORD"))).decode()
    assert {"libhankel/libhankel.so", "libhankel/compat/wave.py", "libhankel/py.typed"} <= set(names)
    assert all(name + "," in record for name in names)


def test_installed_wheel_computes(wheel, tmp_path):
    """By pip where this Python has it, else unpacked as pip would."""
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        subprocess.run(pip + [str(wheel)], check=True, capture_output=True)
    else:
        shutil.unpack_archive(str(wheel), str(target), "zip")
    packed = " ".join(path.name for path in (target / "libhankel").glob("*.so"))
    env = {k: v for k, v in os.environ.items() if k not in ("LIBHANKEL", "PYTHONPATH")}
    printed = subprocess.run([sys.executable, "-c", PROGRAM % (str(target), packed)], check=True, capture_output=True, text=True,
                             cwd=str(tmp_path), env=dict(env, PYTHONPATH=str(target))).stdout
    assert "[[[6.0, 6.0, 6.0]" in printed


def test_source_archive_holds_what_a_build_needs(backend, tmp_path):
    name = backend.build_sdist(str(tmp_path))
    shutil.unpack_archive(str(tmp_path / name), str(tmp_path))
    top = tmp_path / name[:-len(".tar.gz")]
    for part in ("CMakeLists.txt", "pyproject.toml", "include/hankel.h", "python/hankel_build.py", "PKG-INFO",
                 "python/libhankel/__init__.py", "src/core/problem.c"):
        assert (top / part).is_file(), part
