"""Epilogues: what happens to each sum before it is stored, as hk_epilogue and the vectors beside it.

v = acc*scale[k] + bias[k]; act(v) + beta*residual, or act(v + beta*residual); then user2; then conversion and store.
"""
import ctypes as C
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from . import _abi
from ._array import compute_type, fetched, is_int8, numpy_dtype
from ._geometry import place
from ._native import call, invalid, text


class Position(NamedTuple):
    """Where a run of values lies in y: its first element, and whether it runs along k or the last dimension."""
    n: int
    k: int
    p: Tuple[int, ...]
    along_k: bool


class Function(NamedTuple):
    """A function of your own for act, act2, user2 or store, on either device.

    python: called with (position, values); it changes values in place or returns new ones. cuda: CUDA source of one
    function, `float hk_user(hk_at at, float v, const void *user) {..}` (hk_user2 for user2; for store
    `void hk_user_store(hk_at at, float v, void *user) {..}`). A plain Python function stands for Function(python=f).

    >>> half = Function(python=lambda at, v: v / 2,
    ...                 cuda="float hk_user(hk_at at, float v, const void *user) { return v / 2; }")
    >>> import libhankel as hk
    >>> hk.conv(np.ones((1, 1, 3), "f4"), np.ones((1, 1, 1), "f4"), act=half).tolist()
    [[[0.5, 0.5, 0.5]]]
    """
    python: Optional[Callable] = None
    cuda: Optional[str] = None


class Callback:
    """A Python function as a C callback. The first exception is kept and raised after the call that met it."""

    def __init__(self, function, dtype, rank, owns_store):
        self.error = None
        kind = C.c_double if dtype == np.float64 else C.c_float

        def trampoline(_user, at, count, values):
            if self.error is not None:
                return
            try:
                run = np.ctypeslib.as_array(C.cast(values, C.POINTER(kind)), (count,))
                place_ = at.contents
                position = Position(place_.n, place_.k, tuple(place_.p[:rank]), bool(place_.along_k))
                result = function(position, run)
                if result is not None and not owns_store:
                    run[...] = result
            except BaseException as error:  # it may not cross the C frames; Epilogue.reraise brings it back
                self.error = error

        self.pointer = _abi.UserFn(trampoline)


class Epilogue:
    """What happens to each sum before it is stored (hk_epilogue), from text: "scale+bias+silu+sum:0.5".

    >>> e = Epilogue("bias+leaky:0.25+sum:0.5")
    >>> str(e), e == Epilogue("bias+leaky:0.25+sum"), e.reads("bias"), e.gated
    ('bias+leaky:0.25+sum:0.5', False, True, False)
    """

    def __init__(self, source: Optional[str] = None) -> None:
        self.raw = _abi.Epilogue()
        self.vectors: Dict[str, Any] = {}
        self.functions: Dict[str, Function] = {}
        self.callbacks: list = []
        self.dtype = None  # of the values that the callbacks see, once there are any
        if source is not None:
            call("hk_epilogue_parse", self.raw, source.encode())

    @property
    def gated(self) -> bool:
        """Whether y has half the channels."""
        return self.raw.gate != 0

    def reads(self, name: str) -> bool:
        """Whether "scale", "bias", "slopes" or "residual" has a part in it."""
        if name == "slopes":
            return _abi.ACT["prelu"] in (self.raw.act, self.raw.act2)
        return bool(getattr(self.raw, name))

    def attach(self, name: str, function: Function, raw, device: int) -> None:
        """Sets the field `name` ("user", "user2" or "store") to the function that the device runs."""
        self.functions[name] = function
        if device == _abi.CUDA:
            if not isinstance(function.cuda, str):
                raise invalid(f"{name} is a Python function, which a CUDA device cannot run; give its source: "
                              "Function(cuda=\"float hk_user(hk_at at, float v, const void *user) {..}\")")
            setattr(self.raw, "cuda_" + name, function.cuda.encode())
            return
        if not callable(function.python):
            raise invalid(f"{name} is CUDA source alone, which the CPU cannot run; give Function(python=..) too")
        self.dtype = numpy_dtype(compute_type(raw.x_type, raw.f_type, raw.y_type))
        self.callbacks.append(Callback(function.python, self.dtype, raw.rank, name == "store"))
        setattr(self.raw, name, self.callbacks[-1].pointer)

    def reraise(self) -> None:
        """Raises what a callback raised."""
        for callback in self.callbacks:
            if callback.error is not None:
                error, callback.error = callback.error, None
                raise error

    def key(self):
        """What two epilogues that run alike have in common, their vectors left out."""
        if not self.functions:
            return bytes(self.raw), ()  # no pointers are set
        return (tuple(sorted((k, str(v)) for k, v in _abi.fields(self.raw).items())),
                tuple(sorted(self.functions.items(), key=lambda item: item[0])))

    def bare(self) -> "Epilogue":
        """The same without its vectors; functions are attached when a plan is made with it."""
        return _restored(_abi.fields(self.raw), {}, self.functions)

    def _values(self):
        return {name: fetched(values, name) for name, values in self.vectors.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Epilogue):
            return NotImplemented
        mine, yours = self._values(), other._values()
        return self.key() == other.key() and mine.keys() == yours.keys() and all(
            np.array_equal(values, yours[name]) for name, values in mine.items())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return _restored, (_abi.fields(self.raw), self._values(), self.functions)

    def __str__(self) -> str:
        return text("hk_epilogue_print", self.raw)

    def __repr__(self) -> str:
        return f"Epilogue({str(self)!r})"


def _restored(fields, vectors, functions):
    """An epilogue out of its pickle. Its functions are attached when a plan is made with it."""
    epilogue = Epilogue()
    _abi.fill(epilogue.raw, fields)
    epilogue.vectors, epilogue.functions = vectors, functions
    return epilogue


def lay_residual(epilogue, raw, residual, axes):
    """Lays the residual as its tensor lies."""
    groups = max(raw.feature_groups, raw.batch_groups, 1)
    epilogue.raw.c_strided = 1
    place(epilogue.raw.c, residual, axes, raw.k // groups, 1)


def vector_type(raw, name):
    """hk_type of scale, bias or slopes."""
    if name == "bias" and is_int8(raw.x_type):
        return _abi.S32
    return compute_type(raw.x_type, raw.f_type, raw.y_type)
