"""One call of a plan: its tensors checked and handed to the library as hk_args."""
from __future__ import annotations

from typing import Any, Dict, Optional, Union

import numpy as np

from . import _abi
from ._array import NAMES, dimensions, intake, intake_as, overlap, span, together
from ._dlpack import is_dense
from ._epilogue import Epilogue, vector_type
from ._memory import Host, beside
from ._native import HankelError, invalid, lib
from ._options import DEVICES
from ._problem import Problem
from ._repeat import keep, kind_of, layout_of, made, trail
from ._words import Array


class Executable:
    """What Plan needs to run. `layout` holds the shape and strides that tensors must have, `order` the memory order of
    a new y, _given the names of the weights that the plan holds, _vectors the others."""
    problem: Problem
    epilogue: Epilogue
    layout: Optional[Dict[str, Any]]
    order: Optional[tuple]
    _handle: Any
    _device: int
    _index: Optional[int]  # of the CUDA device, where it is known
    _queued: bool
    _given: set
    _ready: dict
    _vectors: dict
    _extents: tuple
    _residual_extent: tuple
    _repeats: dict

    @property
    def device(self) -> str:
        """"cpu" or "cuda"."""
        return next(name for name, value in DEVICES.items() if value == self._device)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of scratch that execute needs."""
        return lib.hk_plan_workspace(self._handle)

    @property
    def state_shape(self) -> tuple:
        """Shape of a stateful plan's state: (n, c, dilation*(window-1)), of x's type."""
        raw = self.problem.raw
        return raw.n, raw.c, raw.dilation[0] * (raw.window[0] - 1)

    def execute(self, x: Array, f: Optional[Array] = None, out: Optional[Array] = None,
                residual: Optional[Array] = None, scale: Union[float, Array, None] = None,
                bias: Optional[Array] = None, state_in: Optional[Array] = None, state_out: Optional[Array] = None,
                user: Optional[Array] = None) -> Any:
        """Computes y and returns it: `out` where given, else a new array of x's framework. Weights the plan holds are
        left out. On a CUDA device the work is queued on the framework's current stream. user: a tensor on the device,
        handed to the epilogue's CUDA functions."""
        if kind_of(x) is not None and scale is None and bias is None and state_in is None and state_out is None:
            repeat = self._repeats.get((layout_of(x), layout_of(f), layout_of(residual), layout_of(out)))
            if repeat is not None and user is None:
                y = repeat((x, f, residual, None, None), out)
                if y is not None:
                    return y
        return self._run(x, f, out, residual, scale, bias, state_in, state_out, user)

    __call__ = execute

    def _run(self, x, f, out, residual, scale, bias, state_in=None, state_out=None, user=None, fresh=None):
        """execute() of arrays that are looked at. fresh: called by a function of the package, whose out is new or not."""
        raw, extents = self.problem.raw, self._extents
        self._check_use(f=f, residual=residual, scale=scale, bias=bias)
        given = [getattr(array, "owner", array) for array in (x, f, residual, scale, bias, out)]
        x = self._tensor(x, "x", raw.x_type, extents[0])
        if x.device != self._device:
            raise invalid(f"x lies on {x.where}; the plan was made for {self.device}")
        if self._index not in (None, x.index):
            raise invalid(f"x lies on {x.where}; the plan was made for CUDA device {self._index}")
        home = beside(x)
        f = None if f is None else self._tensor(f, "f", raw.f_type, extents[1])
        if f is None and "f" not in self._given:
            raise invalid("f is None and the plan holds none (a pickled plan never does); give f at the call")
        c = None if residual is None else self._tensor(residual, "residual", raw.y_type, self._residual_extent)
        if c is None and self.epilogue.raw.residual and self.epilogue.raw.beta:
            raise invalid(f"residual is None; the plan's epilogue ({self.epilogue}) adds one")
        y, pointer, result = self._output(out, home)
        together(x, f=f, residual=c, out=y)
        _apart(y, x, f, c)
        args = _abi.Args(x=x.pointer, f=f and f.pointer, y=pointer, c=c and c.pointer, stream=home.stream)
        kept = [self._call_vectors(args, home, scale=scale, bias=bias), self._states(args, x, state_in, state_out)]
        if user is not None:
            args.user = self._user(x, user)
        if self.workspace_bytes:
            args.workspace, scratch = home.scratch(self.workspace_bytes)
            args.workspace_bytes = self.workspace_bytes
            kept.append(scratch)
        self._queued = self._device == _abi.CUDA
        with home.here():
            status = lib.hk_plan_execute(self._handle, args)
        self.epilogue.reraise()
        if status != _abi.OK:
            raise HankelError(status, lib.hk_last_error().decode("utf-8", "replace"))
        if state_in is None and state_out is None and user is None and (fresh is None or trail.wanted):
            self._keep(args, given[:-1] + [None if fresh else given[-1]], result)
        return result

    def _keep(self, args, given, result):
        """Keeps a finished call of arrays on the host, so that the next one that lies alike is short."""
        if self._device != _abi.CPU or self.epilogue.functions:
            return
        *operands, out = given
        repeat = made(self, args, operands, out, result)
        if trail.wanted:
            trail.made = repeat and (repeat, operands, out, result, self)
        elif repeat is not None and operands[3] is None and operands[4] is None:
            keep(self._repeats, tuple(layout_of(array) for array in (*operands[:3], out)), repeat)

    def _user(self, x, user):
        tensor = intake(user, "user")
        if x.device != _abi.CUDA:
            raise invalid("user is given and the plan runs on the CPU, where functions are Python's own and need none")
        together(x, user=tensor)
        return tensor.pointer

    def _call_vectors(self, args, home, **given):
        """Sets scale and bias of a call, where the plan does not hold them. Returns what keeps them alive."""
        kept = []
        for name, values in given.items():
            if name in self._given or not self.epilogue.reads(name):
                continue
            if values is None and name in self._ready:
                pointer, keep = self._ready[name]
            elif values is None and name in self._vectors:
                pointer, keep = self._vector(name, self._vectors[name], home)
            elif values is None:
                raise invalid(f"{name} is None; the plan's epilogue ({self.epilogue}) reads one")
            else:
                pointer, keep = self._vector(name, values, home)
            setattr(args, name, pointer)
            kept.append(keep)
        return kept

    def _home_of(self, values):
        """Where a vector that the plan keeps lies: the host, unless it came on a device."""
        if isinstance(values, np.ndarray):
            return Host()
        return beside(intake(values, "vector"))

    def _vector(self, name, values, home):
        """(address, what keeps it alive) of scale, bias or slopes."""
        one = name == "scale" and self.epilogue.raw.scale == 1
        if one and dimensions(values) == 0:
            values = values.reshape(1) if hasattr(values, "reshape") else np.atleast_1d(values)
        raw = self.problem.raw
        return home.vector(values, vector_type(raw, name), 1 if one else raw.k, name)

    def _tensor(self, array, what, hk_type, extent, writable=False):
        """Takes an array in and makes sure that all the problem touches lies inside it."""
        tensor = intake_as(array, what, hk_type, writable)
        if self.layout is not None and what in self.layout:
            shape, strides = self.layout[what]
            if tensor.shape != shape or any(a != b for a, b, n in zip(tensor.strides, strides, shape) if n > 1):
                raise invalid(f"{what} has shape {tensor.shape} and strides {tensor.strides}; the plan was made for "
                              f"{shape} and {strides}")
        elements, below = extent
        first, last = span(tensor)
        size = lib.hk_type_bytes(hk_type)
        start = tensor.pointer - below * size
        if elements and (start < first or start + elements * size > last):
            raise invalid(f"{what} spans {last - first} bytes; the problem touches {elements * size} bytes from "
                          f"{-below * size} on")
        return tensor

    def _output(self, out, home):
        """(tensor of y, address of y, object to return)."""
        extent = self._extents[2]
        if self.epilogue.functions.get("store"):
            return None, None, getattr(out, "owner", out)
        if out is None and self.layout is None:
            flat, view = self.problem.empty_output(home, self.epilogue.gated)
            tensor = intake(flat, "out")
            return tensor, tensor.pointer + extent[1] * lib.hk_type_bytes(tensor.type), view
        if out is None:
            shape = self.layout["out"][0]
            out = home.empty(shape, self.problem.raw.y_type, self.order or tuple(range(len(shape))))
            tensor = intake(out, "out", NAMES[self.problem.raw.y_type])
        else:
            tensor = self._tensor(out, "out", self.problem.raw.y_type, extent, writable=True)
        return tensor, tensor.pointer, tensor.owner

    def _check_use(self, **given):
        """Refuses arrays that the plan would not read."""
        for name, array in given.items():
            if array is None:
                continue
            if name in self._given:
                raise invalid(f"{name} is given and the plan holds its own; make it with hold_weights=False or leave "
                              f"{name} out")
            if name != "f" and not self.epilogue.reads(name):
                raise invalid(f"{name} is given and the plan's epilogue ({self.epilogue}) is without it")

    def _states(self, args, x, state_in, state_out):
        """Checks the state arrays of a stateful plan: dense [n][c][dilation*(window-1)] of x's type."""
        kept, shape = [], self.state_shape
        for name, array in (("state_in", state_in), ("state_out", state_out)):
            if array is None:
                continue
            tensor = self._tensor(array, name, self.problem.raw.x_type, (0, 0), writable=name == "state_out")
            if tensor.shape != shape or not is_dense(shape, tensor.strides):
                raise invalid(f"{name} has shape {tensor.shape}; a dense array of {shape} is required")
            together(x, **{name: tensor})
            setattr(args, name, tensor.pointer)
            kept.append(tensor)
        return kept


def _apart(y, x, f, c):
    """y may be the residual itself, and overlaps nothing else."""
    if y is None:
        return
    for name, other in (("x", x), ("f", f), ("residual", c)):
        if other is None:
            continue
        same = name == "residual" and (other.pointer, other.strides) == (y.pointer, y.strides)
        if not same and overlap(y, other):
            raise invalid(f"out shares memory with {name}; the output must lie apart from what is read")
