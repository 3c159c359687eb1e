"""The steps of a chain: what the user writes, and the hk_step structs made of it."""
from __future__ import annotations

import ctypes as C
from typing import Any, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _abi, _abi_stream
from ._arguments import integer, real
from ._array import vector
from ._native import invalid

_floats = C.POINTER(C.c_float)


class Act(NamedTuple):
    """An activation inside a chain: a name of hk_act with its parameters. "hardtanh": slope_lo below a, slope_hi above
    b; "tanh": rational takes a short form within 3e-3 of tanh; "prelu": slopes, one per channel."""
    name: str
    a: float = 0.0
    b: float = 0.0
    slope_lo: float = 0.0
    slope_hi: float = 0.0
    slopes: Optional[Sequence[float]] = None
    rational: bool = False


class Step(NamedTuple):
    """One operation on signals; made by conv(), fir(), mapped(), scaled() and lstm()."""
    kind: str
    words: dict


def conv(x: int, f: Any, bias: Any = None, *, dilation: int = 1, stride: int = 1, groups: int = 1, mix: int = 0,
         mix_f: Any = None, mix_groups: int = 1, act: Union[str, Act, None] = None, act2: Union[str, Act, None] = None,
         gate: Optional[str] = None, add: int = 0, order: str = "after", beta: float = 1.0) -> Step:
    """Causal convolution of signal x by f [k][c/groups][window], oldest tap first, plus a 1x1 of signal mix, plus bias;
    then activation or gate, and beta times signal `add` after or before it."""
    return Step("conv", dict(x=x, f=f, bias=bias, dilation=dilation, stride=stride, groups=groups, mix=mix,
                             mix_f=mix_f, mix_groups=mix_groups, act=act, act2=act2, gate=gate, add=add, order=order,
                             beta=beta))


def fir(x: int, f: Any, bias: Any = None, *, groups: int = 1, act: Union[str, Act, None] = None,
        act2: Union[str, Act, None] = None, gate: Optional[str] = None, add: int = 0, order: str = "after",
        beta: float = 1.0) -> Step:
    """conv() with a long window, up to 2^21 taps (reverbs, cabinets): without latency, most of it by FFT; within 1e-6 of
    the peak."""
    return Step("fir", dict(x=x, f=f, bias=bias, groups=groups, act=act, act2=act2, gate=gate, add=add, order=order,
                            beta=beta))


def mapped(x: int, *, act: Union[str, Act, None] = None, act2: Union[str, Act, None] = None,
           gate: Optional[str] = None, add: int = 0, order: str = "after", beta: float = 1.0) -> Step:
    """Signal x through an activation or gate, plus beta times signal `add`; mapped(x, add=z) is a sum."""
    return Step("map", dict(x=x, act=act, act2=act2, gate=gate, add=add, order=order, beta=beta))


def scaled(x: int, x2: int) -> Step:
    """x*s + h, with s and h the two halves of the channels of x2; h is 0 when x2 has as many channels as x."""
    return Step("scale", dict(x=x, x2=x2))


def lstm(x: int, f: Any, bias: Any = None, *, h0: Any = None, c0: Any = None) -> Step:
    """One LSTM layer over signal x: f [4k][c + k], gates i f g o, input before state; bias [4k]; h0 and c0 [k]."""
    return Step("lstm", dict(x=x, f=f, bias=bias, h0=h0, c0=c0))


class Built:
    """hk_step structs and the arrays they point to."""

    def __init__(self, steps):
        self.kept: List[np.ndarray] = []
        self.raw = (_abi_stream.Step * max(len(steps), 1))()
        for i, step in enumerate(steps):
            if not isinstance(step, Step):
                raise invalid(f"steps[{i}] is {step!r}; conv(), fir(), mapped(), scaled() or lstm() make one")
            self.raw[i] = self._step(step.kind, dict(step.words), f"steps[{i}]")

    def _floats(self, values, what, length=None):
        """A pointer to dense f32 copies; NULL for None."""
        if values is None:
            return None
        flat = np.ravel(np.asarray(values))
        array = vector(flat, np.float32, flat.size if length is None else length, what)
        self.kept.append(array)
        return array.ctypes.data_as(_floats)

    def _act(self, act, what):
        if act is None:
            return _abi_stream.StepAct()
        act = Act(act) if isinstance(act, str) else act
        if not isinstance(act, Act) or act.name not in _abi.ACT or act.name == "user":
            raise invalid(f"{what} is {act!r}; a name of an activation or an Act is required")
        return _abi_stream.StepAct(act=_abi.ACT[act.name], a=act.a, b=act.b, slope_lo=act.slope_lo,
                                   slope_hi=act.slope_hi, slopes=self._floats(act.slopes, f"{what}'s slopes"),
                                   rational=bool(act.rational))

    def _step(self, kind, words, what):
        raw = _abi_stream.Step(kind=_abi_stream.STEP_KIND[kind])
        for name in ("x", "x2", "mix", "add"):
            setattr(raw, name, integer(words.get(name, 0), f"{what}'s {name}", 32, least=0))
        for name in ("dilation", "stride", "groups", "mix_groups"):
            setattr(raw, name, integer(words.get(name, 1), f"{what}'s {name}", least=1))
        f = None if words.get("f") is None else np.asarray(words["f"])
        if kind in ("conv", "fir", "lstm"):
            rank = 2 if kind == "lstm" else 3
            if f is None or f.ndim != rank or kind == "lstm" and f.shape[0] % 4:
                shape = "[4k][c + k]" if kind == "lstm" else "[k][c/groups][window]"
                raise invalid(f"{what}'s f has shape {np.shape(f)}; {shape} is required")
            raw.k, raw.window = (f.shape[0] // 4, 0) if kind == "lstm" else (f.shape[0], f.shape[2])
            raw.f = self._floats(f, f"{what}'s f")
            raw.bias = self._floats(words.get("bias"), f"{what}'s bias", f.shape[0])
        for name, length in (("mix_f", None), ("h0", raw.k), ("c0", raw.k)):
            setattr(raw, name, self._floats(words.get(name), f"{what}'s {name}", length))
        raw.act, raw.act2 = self._act(words.get("act"), f"{what}'s act"), self._act(words.get("act2"), f"{what}'s act2")
        for table, name, field in ((_abi.GATE, "gate", "gate"), (_abi.RESIDUAL, "order", "residual")):
            value = words.get(name)
            if value not in table:
                raise invalid(f"{what}'s {name} is {value!r}; one of {', '.join(map(str, table))} is required")
            setattr(raw, field, table[value])
        raw.residual = raw.residual if raw.add else 0
        raw.beta = real(words.get("beta", 0.0), f"{what}'s beta") if raw.add else 0.0
        return raw
