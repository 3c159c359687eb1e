"""hk_longconv: handles by the layout of their tensors, which speak torch's names as in _causal.py, and the two calls.
Everything is checked where a layout is new."""
from __future__ import annotations

import ctypes as C
import threading
from collections import OrderedDict

from .. import _abi
from .._abi_causal import BATCH, CausalStrides
from .._abi_longconv import LongconvArgs, LongconvDesc, LongconvGrads
from .._native import call, check, invalid, lib
from .desc import _float_type, _same_shape, strides

#: handles kept; one holds tables of at most a few MB
KEPT = 64
_handles: OrderedDict = OrderedDict()
_lock = threading.Lock()


class Handle:
    """An hk_longconv. Python's references keep it alive while calls run."""
    __slots__ = ("pointer", "workspace_bytes")

    def __init__(self, desc, device):
        pointer = C.c_void_p()
        self.pointer = None
        options = _abi.Options(device=device, math=_abi.MATH["fast_algorithms"])
        call("hk_longconv_create", C.byref(pointer), C.byref(desc), None, None, C.byref(options))
        self.pointer = pointer.value
        self.workspace_bytes = lib.hk_longconv_workspace(self.pointer)

    def __del__(self):
        if self.pointer is not None:
            lib.hk_longconv_destroy(self.pointer)


def describe(x, f, skip, pre, post, y, gradient):
    """The hk_longconv_desc of a call; refuses what does not fit together."""
    if len(x.shape) != 3:
        raise invalid(f"x has shape {tuple(x.shape)}; (batch, dim, seqlen) is required")
    n, c, length = x.shape
    _same_shape(y, x, "out")
    if len(f.shape) != 2 or f.shape[0] != c or f.shape[1] < 1:
        raise invalid(f"filters has shape {tuple(f.shape)}; ({c}, taps) is required, with x of {c} channels")
    for name, t in (("filters", f), ("D", skip), ("gate_in", pre), ("gate_out", post), ("out", y)):
        if t is not None and t.get_device() != x.get_device():
            where = ["the host" if d < 0 else f"CUDA device {d}" for d in (t.get_device(), x.get_device())]
            raise invalid(f"{name} lies on {where[0]} and x on {where[1]}; both must lie on one device")
    if not any(f.stride()) and c * f.shape[1] > 1:
        raise invalid(f"filters has shape {tuple(f.shape)} and strides of zero only; give a copy")
    f_channel, f_tap = (tuple(f.stride()) if any(f.stride()) else (1, 1))
    desc = LongconvDesc(x_type=_float_type(x, "x"), f_type=_float_type(f, "filters"), y_type=_float_type(y, "out"), n=n,
                        c=c, length=length, window=f.shape[1], f_channel=f_channel, f_tap=f_tap,
                        has_skip=skip is not None, gradient=gradient)
    if skip is not None and (skip.dtype != f.dtype or tuple(skip.shape) != (c,) or c > 1 and skip.stride()[0] != 1):
        raise invalid(f"D has shape {tuple(skip.shape)}, strides {tuple(skip.stride())} and elements of {skip.dtype}; "
                      f"a dense ({c},) of the filters' type, {f.dtype}, is required")
    for name, what, t in (("x", "x", x), ("y", "out", y), ("pre", "gate_in", pre), ("post", "gate_out", post)):
        if t is None:
            continue
        _same_shape(t, x, what)
        if name != "y" and t.dtype != x.dtype:
            raise invalid(f"{what} has elements of {t.dtype}; {x.dtype}, as x, are required")
        setattr(desc, name, CausalStrides(*strides(t, what, BATCH)))
    desc.has_pre, desc.has_post = pre is not None, post is not None
    return desc


def _facts(t):
    return None if t is None else (tuple(t.shape), tuple(t.stride()), t.dtype, t.get_device())


def _handle(x, f, skip, pre, post, y, gradient):
    key = (gradient,) + tuple(map(_facts, (x, f, skip, pre, post, y)))
    with _lock:
        handle = _handles.get(key)
        if handle is not None:
            _handles.move_to_end(key)
            return handle
    handle = Handle(describe(x, f, skip, pre, post, y, gradient), _abi.CPU if x.get_device() < 0 else _abi.CUDA)
    with _lock:
        _handles[key] = handle
        while len(_handles) > KEPT:
            _handles.popitem(last=False)
    return handle


def _at(t):
    return None if t is None else t.data_ptr()


def _args(handle, x, f, skip, pre, post, y, scratch, stream):
    """The arguments, and what must live as long."""
    at, work = scratch(handle.workspace_bytes) if handle.workspace_bytes else (None, None)
    return LongconvArgs(x=_at(x), f=_at(f), skip=_at(skip), pre=_at(pre), post=_at(post), y=_at(y), workspace=at,
                        workspace_bytes=handle.workspace_bytes, stream=stream), work


def execute(x, f, skip, pre, post, y, scratch, stream=0):
    """Computes y. x, pre, post, y: (n, c, time); f: (c, taps); skip: (c,). scratch(bytes) gives the address of
    memory to work in, and what keeps it alive."""
    handle = _handle(x, f, skip, pre, post, y, False)
    args, work = _args(handle, x, f, skip, pre, post, y, scratch, stream)
    check(lib.hk_longconv_execute(handle.pointer, C.byref(args)))
    del work


def gradient(x, f, skip, pre, post, dy, scratch, stream=0, *, dx=None, dpre=None, dpost=None, df=None, dskip=None):
    """Computes the gradients asked for; df and dskip are f32 and dense."""
    handle = _handle(x, f, skip, pre, post, dy, True)
    args, work = _args(handle, x, f, skip, pre, post, None, scratch, stream)
    grads = LongconvGrads(dy=_at(dy), dx=_at(dx), dpre=_at(dpre), dpost=_at(dpost), df=_at(df), dskip=_at(dskip))
    for name, t in (("dx_at", dx), ("dpre_at", dpre), ("dpost_at", dpost)):
        if t is not None:
            setattr(grads, name, CausalStrides(*strides(t, name, BATCH)))
    check(lib.hk_longconv_gradient(handle.pointer, C.byref(args), C.byref(grads)))
    del work
