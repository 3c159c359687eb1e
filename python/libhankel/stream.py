"""Real time: causal networks over blocks of any length, with state and without latency, on one CPU core.

A Chain is a list of steps with packed weights, immutable; a Stream is the history of one signal path, for one thread at
a time. Signals are numbered: 1 is the input, steps[i] makes signal i + 2, 0 means none. All is f32.

>>> import numpy as np
>>> chain = Chain(1, [conv(1, np.array([[[0.5, 2.0]]]), act="relu"), mapped(2, add=1)], max_block=64)
>>> stream = chain.stream()
>>> a = stream.process(np.array([[1.0], [0.0]], "f4"))    # two frames of one channel
>>> b = stream.process(np.array([[0.0]], "f4"))           # the history goes on
>>> np.concatenate([a, b])[:, 0].tolist()
[3.0, 0.5, 0.0]
"""
from __future__ import annotations

import ctypes as C
from typing import Any, Optional, Sequence, Union

import numpy as np

from . import _abi, _abi_stream
from ._arguments import integer
from ._array import intake_as, numpy_view, vector
from ._epilogue import Epilogue
from ._memory import beside
from ._native import call, invalid, lib
from ._options import make_options
from ._problem import Problem
from ._steps import Act, Built, Step, conv, fir, lstm, mapped, scaled

__all__ = ["Act", "Chain", "Step", "Stream", "conv", "fir", "lstm", "mapped", "scaled"]
_LAYOUTS = {"first": _abi.CHANNELS_FIRST, "last": _abi.CHANNELS_LAST}


class Chain:
    """Checked steps with packed weights (hk_chain): immutable, any number of streams run from one.

    channels: of the input; max_block: the longest block that process takes; output: which signal, 0 the last; layout:
    blocks are (frames, channels) for "last", (channels, frames) for "first". Pickles as these arguments.
    """

    def __init__(self, channels: int, steps: Sequence[Step], *, max_block: int, output: int = 0, layout: str = "last",
                 isa: Optional[str] = None) -> None:
        if layout not in _LAYOUTS:
            raise invalid(f"layout is {layout!r}; \"first\" or \"last\" is required")
        words = dict(max_block=max_block, output=output, layout=layout, isa=isa)
        self._arguments: Optional[tuple] = (channels, list(steps), words)
        self.layout, self._handle = layout, C.c_void_p()
        built = Built(steps)
        desc = _abi_stream.ChainDesc(channels=integer(channels, "channels"), count=len(steps), steps=built.raw,
                                     max_block=integer(max_block, "max_block"), output=integer(output, "output", 32),
                                     layout=_LAYOUTS[layout], isa=make_options(isa=isa).isa)
        call("hk_chain_create", C.byref(self._handle), C.byref(desc), None, 0)

    @classmethod
    def of_problem(cls, problem: Union[str, Problem], epilogue: Union[str, Epilogue, None] = None, *, f: Any,
                   scale: Any = None, bias: Any = None, isa: Optional[str] = None) -> "Chain":
        """One convolution: rank 1, batch 1, f32, causal padding, dense channels last; in[0] is the longest block."""
        problem, chain = Problem(problem), cls.__new__(cls)
        epilogue = Epilogue(epilogue) if epilogue is None or isinstance(epilogue, str) else epilogue
        chain._arguments, chain.layout, chain._handle = None, "last", C.c_void_p()
        raw = problem.raw
        if (raw.x.channel, raw.x.at[0]) != (1, raw.c) and raw.c > 1:
            raise invalid(f"the problem {problem} is not channels last; blocks of a stream are (frames, channels)")
        kept = [intake_as(f, "f", _abi.F32)]
        weights = _abi.Weights(f=kept[0].pointer)
        for name, values in (("scale", scale), ("bias", bias)):
            if values is not None:
                one = name == "scale" and epilogue.raw.scale == 1
                kept.append(vector(np.atleast_1d(values), np.float32, 1 if one else raw.k, name))
                setattr(weights, name, kept[-1].ctypes.data)
        call("hk_chain_create_conv", C.byref(chain._handle), raw, epilogue.raw, make_options(isa=isa), weights)
        return chain

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.hk_chain_destroy(self._handle)

    @property
    def facts(self) -> dict:
        """x_channels, y_channels, max_block, max_out, receptive_field, recurrent, flops per frame, chain_bytes,
        stream_bytes, state_bytes, isa."""
        raw = _abi_stream.ChainFacts()
        call("hk_chain_info", self._handle, C.byref(raw))
        found = {name: getattr(raw, name) for name in (f[0] for f in raw._fields_) if name != "size"}
        return dict(found, recurrent=bool(raw.recurrent), isa=raw.isa.decode())

    def stream(self) -> "Stream":
        """A new Stream of this chain."""
        return Stream(self)

    def __reduce__(self):
        if self._arguments is None:
            raise TypeError("a chain of one problem cannot be pickled; pickle its problem, epilogue and weights")
        channels, steps, words = self._arguments
        return _restored, (channels, steps, words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        return self is other or None not in (self._arguments, other._arguments) and \
            _plain(self._arguments) == _plain(other._arguments)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        f = self.facts
        return (f"<Chain of {f['x_channels']} to {f['y_channels']} channels, {f['receptive_field']} frames of history, "
                f"blocks of at most {f['max_block']}>")


def _plain(value):
    """Nested tuples that compare by value, also where arrays stand."""
    if isinstance(value, dict):
        return tuple((name, _plain(value[name])) for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    return ("array", np.shape(value), np.asarray(value).tobytes()) if np.ndim(value) else value


def _restored(channels, steps, words):
    return Chain(channels, steps, **words)


class Stream:
    """The history of one signal path (hk_stream); one thread at a time."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self._facts, self._handle = chain, chain.facts, C.c_void_p()
        call("hk_stream_create", C.byref(self._handle), chain._handle, None, 0)

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.hk_stream_destroy(self._handle)

    def process(self, x: Any, out: Any = None) -> Any:
        """Takes a block of frames and returns what it makes: (frames, channels), channels first in a chain of that
        layout. Blocks longer than max_block go in pieces. Writes into `out` where it is given; else the result is of
        x's framework."""
        given = intake_as(x, "x", _abi.F32)
        if given.device != _abi.CPU:
            raise invalid(f"x lies on {given.where}; streams run on the host")
        last = self.chain.layout == "last"
        channels = self._facts["x_channels"]
        if len(given.shape) != 2 or given.shape[1 if last else 0] != channels:
            raise invalid(f"x has shape {given.shape}; {('frames', channels) if last else (channels, 'frames')} is "
                          "required")
        frames, block = given.shape[0 if last else 1], self._facts["max_block"]
        view = numpy_view(given)
        made = [self._block(view[i:i + block] if last else view[:, i:i + block])
                for i in range(0, frames, block)] or [self._block(view)]
        y = np.concatenate(made, 0 if last else 1)
        if out is None:
            home = beside(given)
            out = home.empty(y.shape, _abi.F32, (0, 1))
        target = intake_as(out, "out", _abi.F32, writable=True)
        if target.shape != y.shape:
            raise invalid(f"out has shape {target.shape}; {y.shape} is required")
        if target.device != _abi.CPU:
            raise invalid(f"out lies on {target.where}; streams run on the host")
        numpy_view(target)[...] = y
        return out

    def _block(self, x):
        """One block of at most max_block frames, dense as the chain's layout wants it."""
        facts, last = self._facts, self.chain.layout == "last"
        frames = x.shape[0 if last else 1]
        if last:
            source = np.ascontiguousarray(x)
            y = np.empty((facts["max_out"], facts["y_channels"]), np.float32)
        else:
            source = np.zeros((facts["x_channels"], facts["max_block"]), np.float32)
            source[:, :frames] = x
            y = np.empty((facts["y_channels"], facts["max_out"]), np.float32)
        count = C.c_int64()
        call("hk_stream_process", self._handle, source.ctypes.data, frames, y.ctypes.data, C.byref(count))
        return y[:count.value] if last else y[:, :count.value]

    def reset(self) -> None:
        """As new."""
        call("hk_stream_reset", self._handle)

    def prewarm(self, frames: int) -> None:
        """As after reset and then `frames` frames of zeros."""
        call("hk_stream_prewarm", self._handle, integer(frames, "frames", least=0))

    def save(self) -> bytes:
        """The whole state; restore() takes it into any stream of the same chain, or of one made alike."""
        state = C.create_string_buffer(max(self._facts["state_bytes"], 1))
        call("hk_stream_save", self._handle, state, self._facts["state_bytes"])
        return state.raw[:self._facts["state_bytes"]]

    def restore(self, state: bytes) -> None:
        """Takes a state that save() gave."""
        call("hk_stream_restore", self._handle, state, len(state))

    def __reduce__(self):
        return _resumed, (self.chain, self.save())

    def __repr__(self) -> str:
        return f"<Stream of {self.chain!r}>"


def _resumed(chain, state):
    stream = Stream(chain)
    stream.restore(state)
    return stream
