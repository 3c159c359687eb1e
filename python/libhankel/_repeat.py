"""Calls that repeat: arrays that lie as those of an earlier call need not be looked at again. numpy arrays, and torch
tensors on the CPU.

A Repeat is what one finished call found out: the plan, hk_args with all that stays, where results and scratch come
from. Plan.execute keeps them by the layout of its arrays, the functions (conv, conv2d, ..) by all of their arguments. A
call with Python functions, states, arrays of another kind, or anything that had to be converted is not kept.
"""
import functools
import importlib
import inspect
import math
import threading
from typing import Any, Callable, Dict, Optional, TypeVar

import numpy as np

from . import _abi
from ._native import HankelError, lib

F = TypeVar("F", bound=Callable[..., Any])
_KEPT = 512      # layouts per plan, calls per function
_ALIGNMENT = 64  # of scratch, in bytes
_PLAIN = (int, str, float, bool, type(None))


class _Trail(threading.local):
    """What a function of the package learns of the call that it ends in: (Repeat, operands, out, result, plan)."""
    wanted = False
    made: Any = None


trail = _Trail()


class _Numpy:
    """What a call must know of an array, and how it makes one. _repeat_torch has the same of a tensor."""

    @staticmethod
    def layout(array):
        """What two arrays that lie alike have in common; None where a call must look at them again."""
        return array.shape, array.strides, array.dtype

    @staticmethod
    def address(array):
        return array.__array_interface__["data"][0]

    @staticmethod
    def steps(array):
        """(strides in bytes, bytes of an element)."""
        return array.strides, array.itemsize

    @staticmethod
    def writable(array):
        return array.flags.writeable

    @staticmethod
    def maker(result):
        """A function that makes arrays which lie as a result does."""
        order = sorted(range(result.ndim), key=lambda axis: -result.strides[axis])
        shape, dtype = tuple(result.shape[i] for i in order), result.dtype
        if order == list(range(result.ndim)):
            return lambda: np.empty(shape, dtype)
        back = tuple(order.index(i) for i in range(result.ndim))
        return lambda: np.empty(shape, dtype).transpose(back)


_kinds: Dict[type, Any] = {np.ndarray: _Numpy}


def kind_of(array):
    """_Numpy or its like for the type of an array; None for what is never kept."""
    kind = type(array)
    found = _kinds.get(kind)
    if found is None and kind.__module__ in ("torch", "torch.nn.parameter"):
        _kinds.update(importlib.import_module("._repeat_torch", __package__).KINDS)
        found = _kinds.get(kind)
    return found


def layout_of(array):
    """The layout of an array of a known kind. None stays None; anything else gives a key that is never kept."""
    kind = kind_of(array)
    if kind is None:
        return None if array is None else False
    return kind.layout(array) or False


def _reach(kind, array):
    """First and one-past-last byte that an array touches, counted from its address."""
    strides, size = kind.steps(array)
    low = high = 0
    for stride, count in zip(strides, array.shape):
        if stride < 0:
            low += stride * (count - 1)
        else:
            high += stride * (count - 1)
    return low, high + size


class Repeat:
    """One call of a plan, again. The operands are those that the first call had, in the order of FIELDS, all of one
    kind. Who keeps it keeps the plan."""
    FIELDS = ("x", "f", "c", "scale", "bias")
    __slots__ = ("handle", "template", "kind", "operands", "read", "make", "written", "bytes", "scratch", "alike")

    def __init__(self, plan, args, operands, out, result):
        self.handle, self.template, self.kind = plan._handle, _abi.Args.from_buffer_copy(args), kind_of(result)
        self.operands = tuple((i, name) for i, name in enumerate(self.FIELDS) if operands[i] is not None)
        self.read = tuple(_reach(self.kind, operand) for operand in operands if operand is not None)
        self.make = self.kind.maker(result)
        self.written = None if out is None else _reach(self.kind, out)
        self.alike = operands[2] is not None and out is not None and \
            self.kind.steps(operands[2])[0] == self.kind.steps(out)[0]
        self.bytes = args.workspace_bytes
        self.scratch: list = []  # blocks that no call is using; list.pop and list.append need no lock

    def __call__(self, operands, out):
        """y, or None where only the long way can tell whether the call is right."""
        args, address_of = _abi.Args.from_buffer_copy(self.template), self.kind.address
        addresses = []
        for i, name in self.operands:
            address = address_of(operands[i])
            addresses.append(address)
            setattr(args, name, address)
        if out is None:
            y = self.make()
            args.y = address_of(y)
        else:
            y = out
            args.y = at = address_of(out)
            if not self.kind.writable(out) or self._meets(at, addresses, args.c):
                return None
        status = self._execute(args)
        if status != _abi.OK:
            raise HankelError(status, lib.hk_last_error().decode("utf-8", "replace"))
        return y

    def _meets(self, at, addresses, residual):
        """Whether out may share memory with what is read; it may be the residual itself."""
        first, last = at + self.written[0], at + self.written[1]
        for (low, high), address in zip(self.read, addresses):
            if address + low < last and first < address + high and not (self.alike and address == at == residual):
                return True
        return False

    def _execute(self, args):
        if not self.bytes:
            return lib.hk_plan_execute(self.handle, args)
        try:
            block = self.scratch.pop()
        except IndexError:
            block = np.empty(self.bytes + _ALIGNMENT, np.uint8)
        start = _Numpy.address(block)
        args.workspace = start + -start % _ALIGNMENT
        status = lib.hk_plan_execute(self.handle, args)
        self.scratch.append(block)
        return status


def made(plan, args, operands, out, result) -> Optional[Repeat]:
    """The Repeat of a call, None where something was converted: operands are the arrays that the caller gave."""
    kind, arrays = kind_of(result), [operand for operand in (*operands, out) if operand is not None]
    if kind is None or any(kind_of(array) is not kind for array in arrays) or 0 in result.shape:
        return None
    low, high = _reach(kind, result)
    if out is None and math.prod(result.shape) * kind.steps(result)[1] != high - low:
        return None  # a view of a larger block
    given = {name: operand for name, operand in zip(Repeat.FIELDS, operands) if operand is not None}
    for name, operand in given.items():
        if getattr(args, name) != kind.address(operand):
            return None
    return Repeat(plan, args, operands, out, result)


def remembered(function, *arguments, **words):
    """(result, (Repeat, plan) or None): calls a function of the package that ends in one plan, and says how to repeat it
    on x, f, residual, scale and bias that lie as these do."""
    trail.wanted, trail.made = True, None
    try:
        result = function(*arguments, **words)
        found = trail.made
        return result, None if found is None or found[3] is not result else (found[0], found[4])
    finally:
        trail.wanted, trail.made = False, None


def keep(kept, key, repeat):
    """Keeps a Repeat, and not more than a few."""
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = repeat


def _plain(value):
    """Whether a value is a number, or a tuple of such: nothing in it can change."""
    return type(value) is int or type(value) is tuple and all(map(_plain, value))


def _described(value):
    """Part of a key: how an array lies, or a plain value with its type; None for what is neither."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, (tuple, list)):
        return (kind, *value) if all(map(_plain, value)) else None
    known = kind_of(value)
    return None if known is None else known.layout(value)


def _key(arguments, keywords):
    key = []
    for value in arguments:
        part = _described(value)
        if part is None:
            return None
        key.append(part)
    for name, value in keywords.items():
        part = _described(value)
        if part is None:
            return None
        key.append((name, part))
    return tuple(key)


def _places(arguments, keywords, operands, out):
    """Where the operands and out stand among the arguments; None where one array stands twice, or one is missing."""
    where = {}
    for place, value in [*enumerate(arguments), *keywords.items()]:
        if kind_of(value) is not None:
            if id(value) in where:
                return None
            where[id(value)] = place
    wanted = [None if operand is None else where.get(id(operand), -1) for operand in (*operands, out)]
    return None if -1 in wanted or len(where) != sum(place is not None for place in wanted) else wanted


def repeatable(function: F) -> F:
    """A decorator: a call whose arguments lie as those of an earlier one goes straight to its plan."""
    kept: dict = {}

    @functools.wraps(function)
    def call(*arguments, **keywords):
        key = _key(arguments, keywords)
        found = None if key is None else kept.get(key)
        if found is not None:
            repeat, places, _ = found
            *operands, out = [None if p is None else arguments[p] if type(p) is int else keywords[p] for p in places]
            y = repeat(operands, out)
            if y is not None:
                return y
        if key is None:
            return function(*arguments, **keywords)
        trail.wanted, trail.made = True, None
        try:
            y = function(*arguments, **keywords)
            if trail.made is not None:
                repeat, operands, out, result, plan = trail.made
                places = _places(arguments, keywords, operands, out) if y is result else None
                if places is not None:
                    keep(kept, key, (repeat, places, plan))
        finally:
            trail.wanted, trail.made = False, None
        return y
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]
