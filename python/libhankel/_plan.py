"""Plans: a problem, an epilogue and options, frozen; execute as often as you like, from any thread."""
import ctypes as C

import numpy as np

from . import _abi
from ._arguments import integer, real
from ._array import NAMES, aligned_bytes, compute_dtype, empty, intake, is_int8, span, vector
from ._epilogue import Epilogue
from ._native import HankelError, call, invalid, lib, text
from ._problem import Problem

_FLAGS = ("wisdom_only", "forbid_fallback", "batch_invariant", "unaligned", "stateful")
OPTION_NAMES = ("threads", "isa", "workspace_limit", "rigor", "time_limit", "denormals", "math", "decision") + _FLAGS


def make_options(**given):
    """hk_options from keywords: threads, isa, workspace_limit (bytes), rigor ("estimate", "measure", "patient"),
    time_limit (seconds), denormals ("keep", "flush"), math (names, e.g. ("fast_algorithms",)), decision (text), and
    the flags wisdom_only, forbid_fallback, batch_invariant, unaligned, stateful."""
    options = _abi.Options()
    given = {name: value for name, value in given.items() if value is not None}
    options.threads = integer(given.pop("threads", 0), "threads", 32)
    options.time_limit_s = real(given.pop("time_limit", 0.0), "time_limit")
    if "decision" in given:
        decision = given.pop("decision")
        if not isinstance(decision, str):
            raise invalid(f"decision is {decision!r}; a string is required")
        options.decision = decision.encode()
    if "workspace_limit" in given:
        limit = integer(given.pop("workspace_limit"), "workspace_limit", least=0)
        options.limit_workspace, options.workspace_limit_bytes = 1, limit
    for name, table in (("isa", _abi.ISA), ("rigor", _abi.RIGOR), ("denormals", _abi.DENORMALS)):
        if name in given:
            value = given.pop(name)
            if not isinstance(value, str) or value not in table:
                raise invalid(f"{name} is {value!r}; one of {', '.join(str(k) for k in table)} is required")
            setattr(options, name, table[value])
    math = given.pop("math", ())
    for mode in math if isinstance(math, (tuple, list, set, frozenset)) else (math,):
        if not isinstance(mode, str) or mode not in _abi.MATH:
            raise invalid(f"math has {mode!r}; one of {', '.join(_abi.MATH)} is required")
        options.math |= _abi.MATH[mode]
    for name in _FLAGS:
        setattr(options, name, int(bool(given.pop(name, False))))
    if given:
        raise TypeError(f"unknown option {sorted(given)[0]!r}; known: {', '.join(OPTION_NAMES)}")
    return options


def _overlap(a, b):
    """Whether two arrays share an element; yes where that is too hard to tell."""
    try:
        return np.shares_memory(a, b, max_work=10 ** 6)
    except RuntimeError:  # numpy's TooHardError, which has moved between its versions
        return True


def _pointer(tensor_or_none):
    return None if tensor_or_none is None else tensor_or_none.pointer


class Plan:
    """hk_plan. Weights given here are copied and packed; given to execute they are read there.

    `f` must lie as the problem says. Attributes: problem, epilogue, decision, symbols, workspace_bytes,
    error_factor; str(plan) tells the whole story.
    """

    def __init__(self, problem, epilogue=None, *, f=None, scale=None, bias=None, slopes=None, f_zero=None, **options):
        self.problem = Problem(problem) if isinstance(problem, str) else problem
        self.epilogue = Epilogue(epilogue) if epilogue is None or isinstance(epilogue, str) else epilogue
        self.layout = None
        self._handle = C.c_void_p()
        self._measure()
        raw = self.problem.raw
        self._kept = {name: self._vector(name, given) for name, given in self.epilogue.vectors.items()}
        weights = _abi.Weights()
        if f is not None:
            f = self._tensor(f, "f", raw.f_type, self._extents[1])
            weights.f = f.pointer
        for name, given in (("scale", scale), ("bias", bias), ("slopes", slopes)):
            if given is not None:
                self._kept[name] = self._vector(name, given)
            if given is not None or name == "slopes" and name in self._kept:
                setattr(weights, name, self._kept[name].ctypes.data)
        if f_zero is not None:
            f_zero = vector(f_zero, np.int32, raw.k, "f_zero")
            weights.f_zero = f_zero.ctypes.data_as(C.POINTER(C.c_int32))
        self._given = set()
        self._check_use(scale=scale, bias=bias, slopes=slopes)
        self._given = {name for name in ("f", "scale", "bias") if getattr(weights, name)}
        call("hk_plan_create", C.byref(self._handle), raw, self.epilogue.raw, make_options(**options), weights)

    def like(self, problem):
        """A plan for another batch or input size that shares this plan's packed weights."""
        other = Plan.__new__(Plan)
        other.problem = Problem(problem) if isinstance(problem, str) else problem
        other.epilogue, other.layout, other._handle = self.epilogue, None, C.c_void_p()
        other._given, other._kept = self._given, self._kept
        other._measure()
        call("hk_plan_create_like", C.byref(other._handle), self._handle, other.problem.raw)
        return other

    def _measure(self):
        """Keeps what memory x, f, y and the residual touch."""
        epilogue, dtype = self.epilogue.raw, compute_dtype(self.problem.raw)
        if self.epilogue.dtype not in (None, dtype):
            raise invalid(f"the epilogue's functions take {self.epilogue.dtype.name} values; a problem of x "
                          f"{NAMES[self.problem.raw.x_type]}, f {NAMES[self.problem.raw.f_type]} and y "
                          f"{NAMES[self.problem.raw.y_type]} gives them {dtype.name}")
        self._extents = self.problem.extents(self.epilogue.gated)
        self._residual_extent = self._extents[2]
        if epilogue.residual and epilogue.c_strided:
            self._residual_extent = self.problem.reach(epilogue.c, self.epilogue.gated)

    def __del__(self):
        handle = getattr(self, "_handle", None)
        if handle:
            lib.hk_plan_destroy(handle)

    @property
    def workspace_bytes(self):
        """Bytes of scratch that execute needs."""
        return lib.hk_plan_workspace(self._handle)

    @property
    def decision(self):
        """The decision as text; the option `decision` reads it."""
        return text("hk_plan_decision", self._handle)

    @property
    def error_factor(self):
        """0 when integers come out exact, else the factor on gk*eps that the error stays under."""
        return lib.hk_plan_error_factor(self._handle)

    @property
    def symbols(self):
        """The symbol table: sizes, GEMM sizes, tiles."""
        table, name, value = {}, C.c_char_p(), C.c_double()
        while lib.hk_plan_symbol(self._handle, len(table), C.byref(name), C.byref(value)) == _abi.OK:
            number = value.value
            table[name.value.decode()] = int(number) if number == int(number) else number
        return table

    def __str__(self):
        return text("hk_plan_print", self._handle)

    def _vector(self, name, values):
        raw = self.problem.raw
        dtype = compute_dtype(raw)
        if name == "bias" and is_int8(raw.x_type):
            dtype = np.dtype(np.int32)
        one = name == "scale" and self.epilogue.raw.scale == 1
        return vector(np.atleast_1d(values), dtype, 1 if one else raw.k, name)

    def _tensor(self, array, what, hk_type, extent, writable=False):
        """Takes an array in and makes sure that all the problem touches lies inside it."""
        bits = isinstance(array, np.ndarray) and array.dtype.kind == "u" and hk_type in (_abi.BF16, _abi.F8E4M3)
        known = NAMES[hk_type] if bits else None
        tensor = intake(array, what, known, writable)
        if tensor.type != hk_type:
            raise invalid(f"{what} is {NAMES[tensor.type]}; the plan was made for {NAMES[hk_type]}")
        if self.layout is not None and what in self.layout:
            shape, strides = self.layout[what]
            if tensor.shape != shape or any(a != b for a, b, n in zip(tensor.strides, strides, shape) if n > 1):
                raise invalid(f"{what} has shape {tensor.shape} and strides {tensor.strides}; the plan was made for "
                              f"{shape} and {strides}")
        elements, below = extent
        first, last = span(tensor.owner)
        size = tensor.owner.itemsize
        start = tensor.pointer - below * size
        if elements and (start < first or start + elements * size > last):
            raise invalid(f"{what} spans {last - first} bytes; the problem touches {elements * size} bytes from "
                          f"{-below * size} on")
        return tensor

    def _output(self, out, extent):
        """The tensor of y and the array to return."""
        if self.epilogue.raw.store:
            return None, out
        if out is not None:
            return self._tensor(out, "out", self.problem.raw.y_type, extent, writable=True).pointer, out
        if self.layout is not None:
            out = empty(self.layout["out"][0], self.problem.raw.y_type)
            return out.__array_interface__["data"][0], out
        flat, view = self.problem.empty_output(self.epilogue.gated)
        return flat.__array_interface__["data"][0] + extent[1] * flat.itemsize, view

    def execute(self, x, f=None, out=None, residual=None, scale=None, bias=None, state_in=None, state_out=None):
        """Computes y and returns it: `out` where given, else a new array. Weights the plan holds are left out."""
        raw, extents = self.problem.raw, self._extents
        self._check_use(f=f, residual=residual, scale=scale, bias=bias)
        x = self._tensor(x, "x", raw.x_type, extents[0])
        f = None if f is None else self._tensor(f, "f", raw.f_type, extents[1])
        pointer, out = self._output(out, extents[2])
        c = None if residual is None else self._tensor(residual, "residual", raw.y_type, self._residual_extent)
        self._apart(out, x, f, c)
        args = _abi.Args(x=x.pointer, f=_pointer(f), y=pointer, c=_pointer(c))
        vectors = {}
        for name, given in (("scale", scale), ("bias", bias)):
            if name not in self._given:
                vectors[name] = self._kept.get(name) if given is None else self._vector(name, given)
            if vectors.get(name) is not None:
                setattr(args, name, vectors[name].ctypes.data)
        state = self._states(args, state_in, state_out)
        workspace = aligned_bytes(self.workspace_bytes)
        if workspace is not None:
            args.workspace, args.workspace_bytes = workspace.ctypes.data, workspace.size
        status = lib.hk_plan_execute(self._handle, args)
        self.epilogue.reraise()
        if status != _abi.OK:
            raise HankelError(status, lib.hk_last_error().decode("utf-8", "replace"))
        del state
        return out

    __call__ = execute

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

    def _apart(self, out, x, f, c):
        """y may be the residual itself, and overlaps nothing else."""
        if out is None:
            return
        for name, other in (("x", x), ("f", f), ("residual", c)):
            if other is None or not np.may_share_memory(out, other.owner):
                continue
            same = name == "residual" and other.pointer == out.__array_interface__["data"][0] and \
                other.owner.strides == out.strides
            if not same and _overlap(out, other.owner):
                raise invalid(f"out shares memory with {name}; the output must lie apart from what is read")

    def _states(self, args, state_in, state_out):
        """Checks the state arrays of a stateful plan: dense [n][c][dilation*(window-1)] of x's type."""
        raw = self.problem.raw
        shape = (raw.n, raw.c, raw.dilation[0] * (raw.window[0] - 1))
        kept = []
        for name, array in (("state_in", state_in), ("state_out", state_out)):
            if array is None:
                continue
            tensor = self._tensor(array, name, raw.x_type, (0, 0), writable=name == "state_out")
            if tensor.shape != shape or not tensor.owner.flags.c_contiguous:
                raise invalid(f"{name} has shape {tensor.shape}; a dense array of {shape} is required")
            setattr(args, name, tensor.pointer)
            kept.append(tensor)
        return kept


def candidates(problem, epilogue=None, **options):
    """Every decision the planner would consider, best first, then the refused: a list of dicts with decision, refusal
    (None when usable), predicted_s and workspace_bytes."""
    problem = Problem(problem) if isinstance(problem, str) else problem
    epilogue = Epilogue(epilogue) if epilogue is None or isinstance(epilogue, str) else epilogue
    found = []

    @_abi.CandidateFn
    def visit(_context, candidate):
        c = candidate.contents
        found.append({"decision": c.decision.decode(), "refusal": c.refusal.decode() if c.refusal else None,
                      "predicted_s": c.predicted_s, "workspace_bytes": c.workspace_bytes})

    call("hk_plan_candidates", problem.raw, epilogue.raw, make_options(**options), visit, None)
    return found
