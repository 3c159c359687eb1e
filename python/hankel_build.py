"""PEP 517 and 660 backend of libhankel: builds the C library with CMake and packs it beside the Python files.

The package is pure ctypes, so one wheel, py3-none-<platform>, serves every Python 3. Metadata stands here; the version
is hankel.h's. Settings (--config-settings NAME=VALUE):
  library=PATH    packs a library that is already built
  build=FOLDER    builds there and keeps it; default: a temporary folder
  cmake=OPTIONS   more options of cmake, e.g. -DHK_CUDA=OFF
  platform=TAG    of the wheel, e.g. linux_aarch64; default: this machine's
  url=URL         where the project is found, for the metadata
"""
import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
NAME = "libhankel"
SUMMARY = "Convolution by implicit GEMM: every convolution on numpy arrays, torch tensors and anything with DLPack"
LIBRARIES = (NAME, f"{NAME}-jax", f"{NAME}-nam", f"{NAME}-cuda")  # the last one where nvcc was found
KEYWORDS = ("convolution", "implicit GEMM", "deep learning", "state-space models", "audio", "CUDA", "AVX-512")
CLASSIFIERS = (
    "Development Status :: 4 - Beta", "Environment :: GPU :: NVIDIA CUDA", "Intended Audience :: Developers",
    "Intended Audience :: Science/Research", "License :: OSI Approved :: MIT License", "Operating System :: POSIX :: Linux",
    "Programming Language :: C", "Programming Language :: Python :: 3", "Programming Language :: Python :: 3 :: Only",
    "Topic :: Multimedia :: Sound/Audio", "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: Scientific/Engineering :: Mathematics", "Typing :: Typed")
SKIP = re.compile(r"(^|/)(\.git|\.venv|build[^/]*|dist|__pycache__|[^/]*\.egg-info|\.pytest_cache|\.hypothesis)(/|$)")


def _version():
    return re.search(r'HK_VERSION_TEXT "(.*)"', (TOP / "include" / "hankel.h").read_text()).group(1)


def _metadata(settings=None):
    url = (settings or {}).get("url")
    readme = (TOP / "python" / "README.md").read_text()
    readme = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", readme)  # links into the source tree lead nowhere from here
    return "\n".join([
        "Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {_version()}", f"Summary: {SUMMARY}", "Author: hankel developers",
        "License: MIT", "License-File: LICENSE", f"Keywords: {','.join(KEYWORDS)}", *(f"Classifier: {c}" for c in CLASSIFIERS),
        *([f"Project-URL: Source, {url}"] if url else []), "Requires-Python: >=3.8", "Requires-Dist: numpy>=1.20",
        "Description-Content-Type: text/markdown", "", readme])


def _tag(settings=None):
    return "py3-none-" + re.sub(r"[-.]", "_", (settings or {}).get("platform") or sysconfig.get_platform())


def _build_library(folder, options=""):
    """Builds the shared library, and beside it what JAX and amp models call, under `folder`; returns the library's path."""
    source = ["cmake", "-S", str(TOP), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DHK_TESTS=OFF", "-DHK_BENCH=OFF",
              "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_SHARED_LINKER_FLAGS=-s", *shlex.split(options)]
    if shutil.which("ninja"):
        source += ["-G", "Ninja"]
    subprocess.run(source, check=True)
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(folder), "--target", *(name[3:].replace("-", "_") for name in LIBRARIES[:-1]), "-j", jobs],
                   check=True)
    return Path(folder) / "lib" / f"{NAME}.so"


def _libraries(library):
    """{name in the package: bytes}. What other libraries look for by its soname is named by it."""
    major, files = _version().split(".")[0], {}
    for stem in LIBRARIES:
        path = library if stem == NAME else library.with_name(f"{stem}.so")
        path = path if path.exists() else library.with_name(f"{stem}.so.{major}")
        if path.exists():
            suffix = f".so.{major}" if stem in (NAME, LIBRARIES[-1]) else ".so"
            files[f"{NAME}/{stem}{suffix}"] = path.resolve().read_bytes()
    return files


def _write_wheel(directory, files, settings=None):
    """Writes a wheel of {archive name: bytes}, with its RECORD, and returns its file name."""
    stem, info = f"{NAME}-{_version()}", f"{NAME}-{_version()}.dist-info"
    files = dict(files)
    files[f"{info}/METADATA"] = _metadata(settings).encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: hankel_build\nRoot-Is-Purelib: false\n"
                              f"Tag: {_tag(settings)}\n").encode()
    files[f"{info}/LICENSE"] = (TOP / "LICENSE").read_bytes()
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = "\n".join(record + [f"{info}/RECORD,,", ""]).encode()
    path = Path(directory) / f"{stem}-{_tag(settings)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, data)
    return path.name


def get_requires_for_build_wheel(config_settings=None):
    return [] if shutil.which("cmake") else ["cmake>=3.22", "ninja"]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    source = TOP / "python"
    files = {p.relative_to(source).as_posix(): p.read_bytes() for p in
             [*sorted((source / NAME).rglob("*.py")), source / NAME / "py.typed"]}
    with tempfile.TemporaryDirectory() as folder:
        library = settings.get("library") or _build_library(settings.get("build") or folder, settings.get("cmake", ""))
        files.update(_libraries(Path(library)))
    return _write_wheel(wheel_directory, files, settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The installed package points at the source tree, which finds the library in build/lib."""
    if not (TOP / "build" / "lib" / f"{NAME}.so").exists():
        _build_library(TOP / "build")
    return _write_wheel(wheel_directory, {f"__{NAME}__.pth": f"{TOP / 'python'}\n".encode()}, config_settings)


def _sources():
    try:
        listed = subprocess.run(["git", "-C", str(TOP), "ls-files", "-z"], check=True, capture_output=True).stdout
        names = [name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(TOP)) for p in sorted(TOP.rglob("*")) if p.is_file()]
    return [name for name in names if not SKIP.search(name) and (TOP / name).is_file()]


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{NAME}-{_version()}"
    path = Path(sdist_directory) / f"{stem}.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in _sources():
            archive.add(TOP / name, f"{stem}/{name}")
        data = _metadata().encode()
        entry = tarfile.TarInfo(f"{stem}/PKG-INFO")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return path.name
