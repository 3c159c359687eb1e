"""Amp models: plays Neural Amp Modeler files (.nam), block by block, through libhankel-nam.

    model = Model("amp.nam")
    print(model, model.info["sample_rate"])
    y = model.process(x)                # x: float32 or float64 samples, (frames,) or (frames, channels)

The shared library is looked for in $LIBHANKEL_NAM and beside libhankel; a package without it says so.
"""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Optional, Union

from . import _abi, _abi_rig, _abi_stream
from ._array import intake, overlap
from ._dlpack import is_dense
from ._memory import beside
from ._native import HankelError, companion, declare, invalid, library_path
from ._options import make_options

_loaded = None


def _lib():
    """libhankel-nam, loaded at its first use."""
    global _loaded
    if _loaded is None:
        path = os.environ.get("LIBHANKEL_NAM") or companion("libhankel-nam")
        if path is None:
            raise ImportError(f"libhankel.nam: libhankel-nam is not beside {library_path}; build it (make), or name it in "
                              "LIBHANKEL_NAM")
        _loaded = declare(C.CDLL(path), {**_abi_stream.NAM_PROTOTYPES, **_abi_rig.PROTOTYPES})
    return _loaded


def _call(name, *arguments):
    status = getattr(_lib(), name)(*arguments)
    if status != _abi.OK:
        raise HankelError(status, _lib().hk_nam_last_error().decode("utf-8", "replace"))


def _facts(raw):
    """An hk_nam_facts as a dictionary; None where the file says nothing."""
    names = [f[0] for f in raw._fields_ if f[0] != "size" and not f[0].startswith("has_")]
    found = {name: getattr(raw, name) for name in names}
    found = {name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
             for name, value in found.items()}
    for name, has in (("loudness", raw.has_loudness), ("input_level_dbu", raw.has_input_level),
                      ("output_level_dbu", raw.has_output_level), ("sample_rate", raw.sample_rate)):
        found[name] = found[name] if has else None
    return dict(found, recurrent=bool(raw.recurrent))


class Model:
    """One amp model, prewarmed and ready to play (hk_nam); one thread at a time.

    source: the path of a .nam file, or its text as bytes. rational_tanh: the short tanh, within 3e-3. isa: a cap.
    film_blended_only: layer1x1_post_film as NAM Core 0.4.0 to 0.5.x applies it.
    """

    def __init__(self, source: Union[str, os.PathLike, bytes], *, rational_tanh: bool = False,
                 isa: Optional[str] = None, film_blended_only: bool = False) -> None:
        self._handle = C.c_void_p()
        self._arguments = source, bool(rational_tanh), isa, bool(film_blended_only)
        options = _abi_stream.NamOptions(rational_tanh=bool(rational_tanh), isa=make_options(isa=isa).isa,
                                         film_blended_only=bool(film_blended_only))
        if isinstance(source, bytes):
            _call("hk_nam_load_memory", C.byref(self._handle), source, len(source), options)
        else:
            _call("hk_nam_load_file", C.byref(self._handle), os.fspath(source).encode(), options)

    def __del__(self):
        if getattr(self, "_handle", None):
            _lib().hk_nam_free(self._handle)

    @property
    def info(self) -> dict:
        """architecture, version, name, modeled_by, gear, layers, sample_rate, in_channels, out_channels, sizes,
        at_size, loudness, input_level_dbu, output_level_dbu (None where the file says nothing), receptive_field,
        recurrent, flops per frame, bytes, isa."""
        raw = _abi_stream.NamFacts()
        _call("hk_nam_info", self._handle, C.byref(raw))
        return _facts(raw)

    def process(self, x: Any, out: Any = None) -> Any:
        """Plays a block of any length: float32 or float64 samples, (frames,) for one channel or (frames, channels).
        Returns `out`, or a new array of x's framework."""
        x, facts = intake(x, "x"), self.info
        if x.type not in (_abi.F32, _abi.F64) or x.device != _abi.CPU:
            raise invalid(f"x is of type {x.type} on {x.where}; f32 or f64 samples on the host are required")
        ins, outs = facts["in_channels"], facts["out_channels"]
        if len(x.shape) == 1 and ins == 1 and outs == 1:
            shape = x.shape
        elif len(x.shape) == 2 and x.shape[1] == ins:
            shape = (x.shape[0], outs)
        else:
            raise invalid(f"x has shape {x.shape}; (frames, {ins}) is required" + (" or (frames,)" if ins == 1 else ""))
        if not is_dense(x.shape, x.strides):
            raise invalid(f"x has strides {x.strides}; dense samples are required")
        out = beside(x).empty(shape, x.type, tuple(range(len(shape)))) if out is None else out
        y = intake(out, "out", writable=True)
        if y.shape != shape or y.type != x.type or y.device != x.device or not is_dense(shape, y.strides):
            raise invalid(f"out has shape {y.shape} and strides {y.strides}; a dense one of {shape} of x's type is "
                          "required")
        if overlap(x, y) and not (x.pointer == y.pointer and ins == outs):
            raise invalid("out shares memory with x; it may be x itself, or lie apart")
        name = "hk_nam_process" if x.type == _abi.F32 else "hk_nam_process_double"
        _call(name, self._handle, x.pointer, x.shape[0], y.pointer)
        return out

    def reset(self) -> None:
        """As after load, at the present size."""
        _call("hk_nam_reset", self._handle)

    def set_size(self, value: float) -> None:
        """Of containers and slimmable models: 0 is the smallest, 1 the largest."""
        _call("hk_nam_set_size", self._handle, float(value))

    def __reduce__(self):
        return _restored, self._arguments

    def __repr__(self) -> str:
        facts = self.info
        return f"<Model {facts['name'] or facts['architecture']!r} of {facts['bytes']} bytes, isa {facts['isa']}>"


def _restored(source, rational_tanh, isa, film_blended_only=False):
    return Model(source, rational_tanh=rational_tanh, isa=isa, film_blended_only=film_blended_only)
