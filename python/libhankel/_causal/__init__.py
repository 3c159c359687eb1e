"""hk_causal: a cache of handles by the layout of their tensors, and the shortest way from tensors to the library.

Tensors speak torch's names: shape, stride(), dtype, data_ptr(), get_device(); View gives them to any other array. What
a call looks like is one tuple, the key. Everything is checked where a key is new, so a decode step pays for one
look-up, one pack of its addresses and one call. Nothing is copied.
"""
from __future__ import annotations

import ctypes as C
import threading
from collections import OrderedDict
from typing import Any

from .. import _abi
from .._abi_causal import ARGS, BATCH, GRADS, IDS, OFFSETS
from .._array import intake
from .._memory import beside
from .._native import call, check, lib
from .desc import describe, strides

#: handles kept; the least recently used one goes first
KEPT = 512
#: activation -> hk_act
ACT = {None: _abi.ACT["none"], "silu": _abi.ACT["silu"], "swish": _abi.ACT["silu"]}
_handles: OrderedDict = OrderedDict()
_lock = threading.Lock()
_execute, _pack, _SIZE = lib.hk_causal_execute, ARGS.pack, ARGS.size


class Handle:
    """An hk_causal. Python's references keep it alive while calls run."""
    __slots__ = ("pointer", "workspace_bytes")

    def __init__(self, desc, device):
        pointer = C.c_void_p()
        self.pointer = None
        call("hk_causal_create", C.byref(pointer), C.byref(desc), C.byref(_abi.Options(device=device)))
        self.pointer = pointer.value
        self.workspace_bytes = lib.hk_causal_workspace(self.pointer)

    def __del__(self):
        if self.pointer is not None:
            lib.hk_causal_destroy(self.pointer)


class View:
    """Any array by torch's names. bool counts as u8."""
    __slots__ = ("shape", "dtype", "_strides", "_pointer", "_device", "home")

    def __init__(self, array: Any, what: str, writable: bool = False):
        if getattr(array, "dtype", None) == bool:
            array = array.view("u1")
        tensor = intake(array, what, writable=writable)
        self.shape, self._strides, self.dtype, self._pointer = tensor.shape, tensor.strides, tensor.type, tensor.pointer
        self._device, self.home = -1 if tensor.device == _abi.CPU else tensor.index, beside(tensor)

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._pointer

    def get_device(self):
        return self._device


def _facts(t):
    return t.shape, t.stride(), t.dtype, t.get_device()


def _found(key):
    handle = _handles.get(key)
    if handle is not None and len(_handles) > KEPT // 2:  # nothing is dropped soon below that
        try:
            _handles.move_to_end(key)
        except KeyError:  # another thread has just dropped it
            pass
    return handle


def _make(key, problem, optional):
    """A new handle for a key, kept; the least recently used one makes room."""
    desc = describe(problem, {name: tensor for name, tensor in optional.items() if tensor is not None})
    handle = Handle(desc, _abi.CPU if problem["x"].get_device() < 0 else _abi.CUDA)
    with _lock:
        _handles[key] = handle
        while len(_handles) > KEPT:
            _handles.popitem(last=False)
    return handle


def forget() -> None:
    """Drops every handle kept."""
    with _lock:
        _handles.clear()


def execute(x, f, bias, y, act=0, packing=BATCH, state_in=None, state_out=None, slots=None, *, slots_out=None,
            has_state=None, positions=None, accepted=None, index=None, pre=None, post=None, residual=None, skip=None,
            in_place=False, longest=0, dilation=1, stream=0):
    """Computes y and the new states. x, y, pre, post, residual: (n, c, time), or (n, c) for one token, or (c, tokens)
    with OFFSETS; f: (c, window); states: (slots, c, entries); index: the offsets or the ids of the packing."""
    key = (act, packing, skip, in_place, longest, dilation, _facts(x), _facts(f), _facts(y),
           None if bias is None else _facts(bias), None if state_in is None else _facts(state_in),
           None if state_out is None or state_out is state_in else _facts(state_out), state_out is None,
           None if slots is None else _facts(slots), None if slots_out is None else _facts(slots_out),
           None if has_state is None else _facts(has_state), None if positions is None else _facts(positions),
           None if accepted is None else _facts(accepted), None if index is None else _facts(index),
           None if pre is None else _facts(pre), None if post is None else _facts(post),
           None if residual is None else _facts(residual))
    handle = _found(key) or _make(
        key, dict(x=x, f=f, y=y, act=act, packing=packing, skip=skip, in_place=in_place, longest=longest,
                  dilation=dilation),
        dict(bias=bias, state_in=state_in, state_out=state_out, slots=slots, slots_out=slots_out, has_state=has_state,
             positions=positions, accepted=accepted, index=index, pre=pre, post=post, residual=residual))
    at = 0 if index is None else index.data_ptr()
    args = ARGS.pack(
        ARGS.size, x.data_ptr(), f.data_ptr(), 0 if bias is None else bias.data_ptr(),
        0 if pre is None else pre.data_ptr(), 0 if post is None else post.data_ptr(),
        0 if residual is None else residual.data_ptr(), y.data_ptr(), 0 if state_in is None else state_in.data_ptr(),
        0 if state_out is None else state_out.data_ptr(), 0 if slots is None else slots.data_ptr(),
        0 if slots_out is None else slots_out.data_ptr(), 0 if has_state is None else has_state.data_ptr(),
        0 if positions is None else positions.data_ptr(), 0 if accepted is None else accepted.data_ptr(),
        at if packing == OFFSETS else 0, at if packing == IDS else 0, 0, 0, stream)
    status = lib.hk_causal_execute(handle.pointer, args)
    if status:
        check(status)


def step(x, f, bias, y, act, state, slots, positions, skip, stream):
    """execute() of a decode step, written out for speed: y is torch.empty_like(x) or lies as it would, bias is dense,
    state is read and written."""
    key = (act, skip, x.shape, x.stride(), x.dtype, x.get_device(), f.shape, f.stride(), f.dtype, f.get_device(),
           state.shape, state.stride(), state.dtype, state.get_device(),
           None if bias is None else (bias.shape, bias.dtype, bias.get_device()),
           None if slots is None else _facts(slots), None if positions is None else _facts(positions))
    handle = _found(key)
    if handle is None:
        handle = _make(key, dict(x=x, f=f, y=y, act=act, packing=BATCH, skip=skip, longest=0, dilation=1),
                       dict(bias=bias, state_in=state, slots=slots, positions=positions))
    at = state.data_ptr()
    status = _execute(handle.pointer, _pack(
        _SIZE, x.data_ptr(), f.data_ptr(), 0 if bias is None else bias.data_ptr(), 0, 0, 0, y.data_ptr(), at, at,
        0 if slots is None else slots.data_ptr(), 0, 0, 0 if positions is None else positions.data_ptr(), 0, 0, 0, 0, 0,
        stream))
    if status:
        check(status)


def gradient(x, f, bias, dy, act=0, packing=BATCH, state_in=None, dstate_out=None, index=None, *, dx=None, df=None,
             dbias=None, dstate_in=None, longest=0, dilation=1, scratch=None, stream=0):
    """Computes the gradients asked for. dy may lie in any way of its own; dstate_out and dstate_in lie as state_in.
    scratch(bytes) gives a tensor to work in."""
    key = ("gradient", act, packing, longest, dilation, _facts(x), _facts(f), _facts(dy),
           None if bias is None else _facts(bias), None if state_in is None else _facts(state_in),
           None if dstate_out is None else _facts(dstate_out), None if dstate_in is None else _facts(dstate_in),
           None if index is None else _facts(index))
    handle = _found(key) or _make(
        key, dict(x=x, f=f, y=dy, act=act, packing=packing, longest=longest, dilation=dilation, gradient=True),
        dict(bias=bias, state_in=state_in, dstate_out=dstate_out, dstate_in=dstate_in, index=index))
    work = scratch(handle.workspace_bytes) if handle.workspace_bytes else None
    at = 0 if index is None else index.data_ptr()
    args = ARGS.pack(
        ARGS.size, x.data_ptr(), f.data_ptr(), 0 if bias is None else bias.data_ptr(), 0, 0, 0, 0,
        0 if state_in is None else state_in.data_ptr(), 0, 0, 0, 0, 0, 0, at if packing == OFFSETS else 0,
        at if packing == IDS else 0, 0 if work is None else work.data_ptr(), handle.workspace_bytes, stream)
    outer, channel, time = (0, 0, 0) if dx is None else strides(dx, "dx", packing)
    grads = GRADS.pack(
        GRADS.size, dy.data_ptr(), 0 if dstate_out is None else dstate_out.data_ptr(),
        0 if dx is None else dx.data_ptr(), outer, channel, time, 0 if df is None else df.data_ptr(),
        0 if dbias is None else dbias.data_ptr(), 0 if dstate_in is None else dstate_in.data_ptr())
    status = lib.hk_causal_gradient(handle.pointer, args, grads)
    if status:
        check(status)
