"""Epilogue arguments: what happens to each sum before it is stored, as hk_epilogue and the vectors beside it.

v = acc*scale[k] + bias[k]; act(v) + beta*residual, or act(v + beta*residual); then user2; then conversion and store.
"""
import ctypes as C
from typing import Callable, Dict, NamedTuple, Tuple

import numpy as np

from . import _abi
from ._arguments import real
from ._array import compute_dtype, is_int8, vector
from ._native import call, invalid, text
from ._problem import place


class Position(NamedTuple):
    """Where a run of values lies in y: its first element, and whether it runs along k or the last dimension."""
    n: int
    k: int
    p: Tuple[int, ...]
    along_k: bool


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
    """hk_epilogue with what it refers to. Made by build(), or from text ("bias+silu+sum:0.5") by Epilogue(text)."""

    def __init__(self, source=None):
        self.raw = _abi.Epilogue()
        self.vectors: Dict[str, np.ndarray] = {}
        self.callbacks = []
        self.dtype = None  # of the values that the callbacks see, once there are any
        if source is not None:
            call("hk_epilogue_parse", self.raw, source.encode())

    @property
    def gated(self):
        return self.raw.gate != 0

    def reads(self, name):
        """Whether "scale", "bias", "slopes" or "residual" has a part in it."""
        if name == "slopes":
            return _abi.ACT["prelu"] in (self.raw.act, self.raw.act2)
        return bool(getattr(self.raw, name))

    def reraise(self):
        """Raises what a callback raised."""
        for callback in self.callbacks:
            if callback.error is not None:
                error, callback.error = callback.error, None
                raise error

    def __str__(self):
        return text("hk_epilogue_print", self.raw)


#: how many parameters an activation takes; 0 where it is not listed
_PARAMETERS = {"clip": (2,), "leaky": (1,), "hardtanh": (0, 2)}


def _activation(epilogue, spec, slot, wrap):
    """Sets act or act2 (slot "" or "2") from a name, a (name, a, b) tuple, or a function."""
    if spec is None:
        return
    if callable(spec):
        setattr(epilogue.raw, "act" + slot, _abi.ACT["user"])
        epilogue.raw.user = wrap(spec)
        return
    name, *parameters = spec if isinstance(spec, (tuple, list)) and spec else (spec,)
    if not isinstance(name, str) or name not in _abi.ACT or name == "user":
        known = ", ".join(known for known in _abi.ACT if known != "user")
        raise invalid(f"act{slot} is {spec!r}; one of {known} or a function is required")
    if len(parameters) not in _PARAMETERS.get(name, (0,)):
        counts = " or ".join(map(str, _PARAMETERS.get(name, (0,))))
        raise invalid(f"act{slot} is {spec!r}; {name} takes {counts} parameters")
    setattr(epilogue.raw, "act" + slot, _abi.ACT[name])
    for field, value in zip(("a" + slot, "b" + slot), parameters):
        setattr(epilogue.raw, field, real(value, f"act{slot}'s parameter {field[0]}"))


def _choice(table, value, what):
    if not isinstance(value, (str, type(None))) or value not in table:
        raise invalid(f"{what} is {value!r}; one of {', '.join(str(k) for k in table)} is required")
    return table[value]


def build(raw, *, scale=None, bias=None, act=None, act2=None, gate=None, slopes=None, beta=None, has_residual=False,
          residual_order=None, user2: Callable = None, store: Callable = None):
    """The Epilogue of a problem from keyword arguments. The residual's own strides are set by lay_residual()."""
    epilogue = Epilogue()
    dtype = compute_dtype(raw)
    if callable(act) and callable(act2) and act is not act2:
        raise invalid("act and act2 are two different functions; one user function serves both")

    def wrap(function, owns_store=False):
        callback = Callback(function, dtype, raw.rank, owns_store)
        epilogue.callbacks.append(callback)
        epilogue.dtype = dtype
        return callback.pointer

    if scale is not None:
        epilogue.raw.scale = 1 if np.ndim(scale) == 0 else 2
        epilogue.vectors["scale"] = vector(np.atleast_1d(scale), dtype, 1 if np.ndim(scale) == 0 else raw.k, "scale")
    if bias is not None:
        epilogue.raw.bias = 1
        epilogue.vectors["bias"] = vector(bias, np.int32 if is_int8(raw.x_type) else dtype, raw.k, "bias")
    _activation(epilogue, act, "", wrap)
    _activation(epilogue, act2, "2", wrap)
    if slopes is not None:
        if not epilogue.reads("slopes"):
            raise invalid(f"slopes are given and act is {act!r}; they belong to \"prelu\"")
        epilogue.vectors["slopes"] = vector(slopes, dtype, raw.k, "slopes")
    epilogue.raw.gate = _choice(_abi.GATE, gate, "gate")
    for name, given in (("beta", beta), ("residual_order", residual_order)):
        if given is not None and not has_residual:
            raise invalid(f"{name} is {given!r} and residual is None; {name} needs a residual")
    if has_residual:
        orders = {name: value for name, value in _abi.RESIDUAL.items() if value}
        epilogue.raw.residual = _choice(orders, "after" if residual_order is None else residual_order,
                                        "residual_order")
        epilogue.raw.beta = 1.0 if beta is None else real(beta, "beta")
    for name, function in (("user2", user2), ("store", store)):
        if function is not None and not callable(function):
            raise invalid(f"{name} is {function!r}; a function is required")
    if user2 is not None:
        epilogue.raw.user2 = wrap(user2)
    if store is not None:
        epilogue.raw.store = wrap(store, owns_store=True)
    return epilogue


def lay_residual(epilogue, raw, residual, axes):
    """Lays the residual as its tensor lies."""
    groups = max(raw.feature_groups, raw.batch_groups, 1)
    epilogue.raw.c_strided = 1
    place(epilogue.raw.c, residual, axes, raw.k // groups, 1)
