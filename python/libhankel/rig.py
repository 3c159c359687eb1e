"""What a guitarist plays through: input gain, noise gate, amp, cabinet and output gain, at any sample rate.

    rig = Rig(44100, channels=2)
    rig.load_amp("amp.nam")
    rig.load_cabinet(response, 48000)   # (frames,) or (frames, 1, 2 or 4 channels)
    y = rig.process(x, input_db=3, gate_db=-60, level="normalized")   # x: float32, (frames,) or (channels, frames)

Parts that are loaded between two blocks fade in; rig.latency says how late the output is.
"""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Optional, Union

from . import _abi, _abi_rig
from ._abi_stream import NamOptions
from ._array import intake, overlap
from ._dlpack import is_dense
from ._memory import beside
from ._native import invalid
from ._options import make_options
from .nam import _call, _facts, _lib


class Rig:
    """A chain of amp and cabinet (hk_rig) with channels of 1 or 2 that share the weights; one thread at a time."""

    def __init__(self, sample_rate: float, channels: int = 1, *, fade_seconds: float = 0,
                 isa: Optional[str] = None) -> None:
        self._handle = C.c_void_p()
        self.sample_rate, self.channels = float(sample_rate), int(channels)
        self._isa = make_options(isa=isa).isa
        _call("hk_rig_create", C.byref(self._handle),
              _abi_rig.RigOptions(sample_rate=self.sample_rate, channels=self.channels, fade_seconds=fade_seconds,
                                  isa=self._isa))

    def __del__(self):
        if getattr(self, "_handle", None):
            _lib().hk_rig_free(self._handle)

    def _set(self, slot, part):
        facts = _abi_rig.RigPartFacts()
        if part:
            _call("hk_rig_part_info", part, C.byref(facts))
        _lib().hk_rig_set(self._handle, slot, part)
        self._free_retired()
        return facts

    def _free_retired(self):
        while True:
            part = _lib().hk_rig_retired(self._handle)
            if not part:
                return
            _lib().hk_rig_part_free(part)

    def load_amp(self, path: Union[str, os.PathLike, None], *, rational_tanh: bool = False,
                 film_blended_only: bool = False) -> dict:
        """Fades to the amp of a .nam file, or to none (None). Returns its facts as Model.info does, and the latency."""
        part = C.c_void_p()
        if path is not None:
            options = NamOptions(rational_tanh=bool(rational_tanh), isa=self._isa,
                                 film_blended_only=bool(film_blended_only))
            _call("hk_rig_load_amp", C.byref(part), self._handle, os.fspath(path).encode(), options)
        facts = self._set(_abi_rig.AMP, part)
        return dict(_facts(facts.amp), latency=facts.latency, bytes=facts.bytes) if part else {}

    def load_cabinet(self, samples: Any, sample_rate: float = 0) -> dict:
        """Fades to an impulse response, float32 (frames,) or (frames, channels) at its rate, or to none (None). Returns
        frames at the rig's rate, and bytes."""
        part = C.c_void_p()
        if samples is not None:
            h = intake(samples, "samples")
            if h.type != _abi.F32 or h.device != _abi.CPU or len(h.shape) not in (1, 2):
                raise invalid(f"samples has shape {h.shape} and type {h.type} on {h.where}; f32 of (frames,) or "
                              "(frames, channels) on the host is required")
            if not is_dense(h.shape, h.strides):
                raise invalid(f"samples has strides {h.strides}; dense samples are required")
            channels = h.shape[1] if len(h.shape) == 2 else 1
            _call("hk_rig_load_cabinet", C.byref(part), self._handle, h.pointer, h.shape[0], channels, sample_rate)
        facts = self._set(_abi_rig.CABINET, part)
        return {"frames": facts.frames, "bytes": facts.bytes} if part else {}

    def process(self, x: Any, out: Any = None, *, input_db: float = 0, output_db: float = 0, gate_db: float = 0,
                bypass: bool = False, model_size: Optional[float] = None, level: str = "raw",
                interface_dbu: float = 0) -> Any:
        """Plays a block of any length: float32 (frames,) for one channel, or (channels, frames). Returns `out` (which
        may be x), or a new array of x's framework. gate_db: threshold of the noise gate, 0 or above for none.
        model_size: 0 to 1 of an amp of several sizes. level: "raw", "normalized" or "calibrated" (by interface_dbu)."""
        x = intake(x, "x")
        if x.type != _abi.F32 or x.device != _abi.CPU or not is_dense(x.shape, x.strides):
            raise invalid(f"x has strides {x.strides} on {x.where}; dense f32 samples on the host are required")
        if x.shape[:-1] != ((self.channels,) if len(x.shape) == 2 else ()) or (len(x.shape) == 1 and self.channels > 1):
            raise invalid(f"x has shape {x.shape}; ({self.channels}, frames) is required" +
                          (" or (frames,)" if self.channels == 1 else ""))
        if level not in _abi_rig.LEVEL:
            raise invalid(f"level is {level!r}; one of {', '.join(_abi_rig.LEVEL)} is required")
        out = beside(x).empty(x.shape, x.type, tuple(range(len(x.shape)))) if out is None else out
        y = intake(out, "out", writable=True)
        if y.shape != x.shape or y.type != x.type or y.device != x.device or not is_dense(y.shape, y.strides):
            raise invalid(f"out has shape {y.shape} and strides {y.strides}; a dense one of {x.shape} of x's type is "
                          "required")
        if overlap(x, y) and x.pointer != y.pointer:
            raise invalid("out shares memory with x; it may be x itself, or lie apart")
        controls = _abi_rig.RigControls(input_db=input_db, output_db=output_db, gate_db=gate_db, bypass=bool(bypass),
                                        resize=model_size is not None, model_size=model_size or 0,
                                        level=_abi_rig.LEVEL[level], interface_dbu=interface_dbu)
        frames = x.shape[-1]
        rows = C.c_void_p * self.channels
        steps = [4 * frames * c for c in range(self.channels)]
        _call("hk_rig_process", self._handle, controls, rows(*(x.pointer + step for step in steps)), frames,
              rows(*(y.pointer + step for step in steps)))
        self._free_retired()
        return out

    def reset(self) -> None:
        """Silence before the next frame; the parts stay."""
        _lib().hk_rig_reset(self._handle)

    @property
    def latency(self) -> int:
        """Frames that the output is late."""
        return int(_lib().hk_rig_latency(self._handle))

    def __repr__(self) -> str:
        return f"<Rig of {self.channels} channel(s) at {self.sample_rate:g} Hz, {self.latency} frames late>"
