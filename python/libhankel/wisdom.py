"""What measuring has taught the planner (rigor="measure" or "patient"), as text and as files."""
import ctypes as C

from ._native import call, lib


def load_text(text):
    """Adds wisdom from text: all of it, or nothing and a HankelError."""
    call("hk_wisdom_import", text.encode())


def text():
    """All wisdom in memory, in the form that load_text reads."""
    return _filled("hk_wisdom_export")


def load(path=None):
    """Adds a file; None: the files hankel reads by itself, again."""
    call("hk_wisdom_load", None if path is None else str(path).encode())


def save(path=None):
    """Merges what is in memory into a file, atomically; None: the user's own."""
    call("hk_wisdom_save", None if path is None else str(path).encode())


def path():
    """The user's file; "" for none."""
    return _filled("hk_wisdom_path")


def forget():
    """Empties the memory; files stay."""
    lib.hk_wisdom_forget()


def count():
    """How many decisions are in memory."""
    return lib.hk_wisdom_count()


def _filled(name):
    length = C.c_size_t()
    call(name, None, 0, C.byref(length))
    buffer = C.create_string_buffer(length.value + 1)
    call(name, buffer, len(buffer), C.byref(length))
    return buffer.value.decode()
