"""Finds and loads the shared library, and reports its statuses as HankelError.

Order: $LIBHANKEL, the copy inside the installed package, build/lib of the source tree, the system's linker.
"""
import ctypes
import ctypes.util
import os
from pathlib import Path

from . import _abi, _abi_causal, _abi_longconv, _abi_stream


class HankelError(RuntimeError):
    """A refusal. `status` is the number, `name` its name (e.g. "HK_INVALID"), the text the library's sentence. Where an
    argument is at fault (HK_INVALID, HK_SYNTAX) it is a ValueError too."""

    def __new__(cls, status, message):
        at_fault = cls is HankelError and status in (_abi.INVALID, _abi.SYNTAX)
        return super().__new__(ArgumentError if at_fault else cls, status, message)

    def __init__(self, status, message):
        self.status = status
        self.name = _abi.STATUS[status] if 0 <= status < len(_abi.STATUS) else str(status)
        self.message = message
        super().__init__(f"{self.name}: {message}")

    def __reduce__(self):
        return HankelError, (self.status, self.message)


class ArgumentError(HankelError, ValueError):
    """The HankelError of an argument that breaks a rule."""


def invalid(message):
    """The error for an argument that breaks a rule before the library is asked."""
    return HankelError(_abi.INVALID, message)


def _inside(folder, stem):
    """Paths of a library in a folder; wheels hold it by its soname."""
    paths = (Path(folder) / (stem + suffix) for suffix in (".so", ".so.0", ".dylib"))
    return [str(path) for path in paths if path.exists()]


def _candidates():
    if os.environ.get("LIBHANKEL"):
        yield os.environ["LIBHANKEL"]
        return
    here = Path(__file__).resolve().parent
    for folder in (here, here.parents[1] / "build" / "lib"):
        yield from _inside(folder, "libhankel")
    found = ctypes.util.find_library("hankel")
    if found:
        yield found


def companion(stem):
    """Path of another of hankel's libraries, "libhankel-nam" for one: beside the loaded one, else the system's; or None."""
    loaded = Path(library_path)
    if loaded.name != library_path:
        return next(iter(_inside(loaded.resolve().parent, stem)), None)
    return ctypes.util.find_library(stem[3:])


_VOID = ("hk_plan_destroy", "hk_wisdom_forget", "hk_gpu_free", "hk_chain_destroy", "hk_stream_destroy", "hk_nam_free",
         "hk_causal_destroy", "hk_longconv_destroy")


def declare(library, prototypes):
    """Gives a library's functions their types."""
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype = None if name in _VOID else ctypes.c_int if result is None else result
        function.argtypes = arguments
    return library


def _load():
    prototypes = {**_abi.PROTOTYPES, **_abi_stream.PROTOTYPES, **_abi_causal.PROTOTYPES,
                  **_abi_longconv.PROTOTYPES}
    for path in _candidates():
        return declare(ctypes.CDLL(path), prototypes), path
    raise ImportError("libhankel: no shared library found; build it (make), or name it in LIBHANKEL")


lib, library_path = _load()


def check(status):
    """Raises HankelError unless status is HK_OK."""
    if status != _abi.OK:
        raise HankelError(status, lib.hk_last_error().decode("utf-8", "replace"))


def call(name, *arguments):
    """Calls a function that returns hk_status."""
    check(getattr(lib, name)(*arguments))


def text(name, handle):
    """The whole text of one of the print functions."""
    length = ctypes.c_size_t()
    call(name, handle, None, 0, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value + 1)
    call(name, handle, buffer, len(buffer), ctypes.byref(length))
    return buffer.value.decode()


def version() -> str:
    """Version of the loaded library."""
    return lib.hk_version().decode()


def machine() -> dict:
    """What the library knows of this machine: cpu, best_isa, cores, cache sizes.

    >>> sorted(machine())
    ['best_isa', 'cores', 'cpu', 'l1d_bytes', 'l2_bytes', 'l3_bytes']
    """
    raw = _abi.Machine()
    call("hk_machine_info", ctypes.byref(raw))
    return {"cpu": raw.cpu.decode(), "best_isa": lib.hk_isa_name(raw.best_isa).decode(), "cores": raw.cores,
            "l1d_bytes": raw.l1d_bytes, "l2_bytes": raw.l2_bytes, "l3_bytes": raw.l3_bytes}
