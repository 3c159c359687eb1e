"""What measuring has taught the planner (rigor="measure" or "patient"), as text and as files."""
import ctypes as C
import os
from typing import Optional, Union

from ._native import call, lib

Path = Union[str, os.PathLike]


def load_text(text: str) -> None:
    """Adds wisdom from text: all of it, or nothing and a HankelError."""
    call("hk_wisdom_import", text.encode())


def text() -> str:
    """All wisdom in memory, in the form that load_text reads."""
    return _filled("hk_wisdom_export")


def load(path: Optional[Path] = None) -> None:
    """Adds a file; None: the files hankel reads by itself, again."""
    call("hk_wisdom_load", None if path is None else str(path).encode())


def save(path: Optional[Path] = None) -> None:
    """Merges what is in memory into a file, atomically; None: the user's own."""
    call("hk_wisdom_save", None if path is None else str(path).encode())


def path() -> str:
    """The user's file; "" for none."""
    return _filled("hk_wisdom_path")


def forget() -> None:
    """Empties the memory; files stay."""
    lib.hk_wisdom_forget()


def count() -> int:
    """How many decisions are in memory."""
    return lib.hk_wisdom_count()


def _filled(name):
    length = C.c_size_t()
    call(name, None, 0, C.byref(length))
    buffer = C.create_string_buffer(length.value + 1)
    call(name, buffer, len(buffer), C.byref(length))
    return buffer.value.decode()
