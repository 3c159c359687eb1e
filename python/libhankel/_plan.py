"""Plans: a problem, an epilogue and options, frozen; execute as often as you like, from any thread."""
from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

import numpy as np

from . import _abi
from ._array import NAMES, compute_dtype, fetched, host_values, intake_as, vector
from ._call import Executable
from ._dlpack import on_device
from ._epilogue import Epilogue
from ._memory import Host, beside
from ._native import call, invalid, lib, text
from ._options import device_of, make_options
from ._problem import Problem
from ._words import Array, How, explicit

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Plan(Executable):
    """One convolution, planned: execute it as often as you like, from any thread (hk_plan).

    Weights given here are copied and packed; given to execute they are read there. `f` must lie as the problem says.
    device: "cpu" or "cuda"; None follows f, else "cpu". A pickle holds the description (problem, epilogue with its
    vectors, options), not the filter: the plan made from it takes f at each call.

    >>> plan = Plan("1d_n1_c1_i5_k1_w3_f32", "bias+relu", f=np.ones((1, 1, 3), "f4"), bias=[-6])
    >>> plan(np.arange(5, dtype="f4").reshape(1, 1, 5)).tolist()
    [[[0.0, 0.0, 3.0]]]
    >>> plan.symbols["W_OUT"], plan.workspace_bytes >= 0, plan.decision in str(plan)
    (3, True, True)
    """
    problem: Problem
    epilogue: Epilogue

    @explicit(How)
    def __init__(self, problem: Union[str, Problem], epilogue: Union[str, Epilogue, None] = None, *,
                 f: Optional[Array] = None, scale: Union[float, Array, None] = None, bias: Optional[Array] = None,
                 slopes: Optional[Array] = None, f_zero: Optional[Array] = None, device: Optional[str] = None,
                 **options: Unpack[How]) -> None:
        self.problem = Problem(problem)
        self.epilogue = Epilogue(epilogue) if epilogue is None or isinstance(epilogue, str) else epilogue
        self.layout: Optional[Dict[str, Any]] = None
        self.order: Optional[tuple] = None
        self.options = {name: value for name, value in options.items() if value is not None}
        self._handle, self._queued, self._repeats = C.c_void_p(), False, {}
        raw = self.problem.raw
        f = None if f is None else intake_as(f, "f", raw.f_type)
        self._device = device_of(device, f)
        self._index = f.index if f is not None and f.device == _abi.CUDA else None
        self._attach()
        self._measure()
        self._given: set = set()
        self._ready: dict = {}  # scale and bias as the CPU reads them
        self._check_use(scale=scale, bias=bias, slopes=slopes)
        given = {"scale": scale, "bias": bias, "slopes": slopes}
        vectors = dict(self.epilogue.vectors, **{k: v for k, v in given.items() if v is not None})
        self._vectors = {name: self._own(name, values) for name, values in vectors.items()}
        self._f_zero = None if f_zero is None else vector(f_zero, np.int32, raw.k, "f_zero")
        self._create(f, {name for name, value in given.items() if value is not None})

    def _create(self, f, held):
        """Makes the plan, which holds f, the vectors named in `held`, and slopes always."""
        raw, weights, kept = self.problem.raw, _abi.Weights(), []
        if f is not None:
            weights.f = self._tensor(f, "f", raw.f_type, self._extents[1]).pointer
        for name, values in self._vectors.items():
            pointer, keep = self._vector(name, values, self._home_of(values))
            kept.append(keep)
            if name in held or name == "slopes":
                setattr(weights, name, pointer)
            elif self._device == _abi.CPU:
                self._ready[name] = pointer, keep
        if self._f_zero is not None:
            weights.f_zero = self._f_zero.ctypes.data_as(C.POINTER(C.c_int32))
        self._given = (set() if f is None else {"f"}) | held & {"scale", "bias"}
        options = make_options(self._device, **self.options)
        home = Host() if f is None else beside(f)
        with home.here():
            if self._device == _abi.CUDA and (kept or f is not None):
                call("hk_gpu_sync", home.stream)  # weights that the framework still computes are copied only then
            call("hk_plan_create", C.byref(self._handle), raw, self.epilogue.raw, options, weights)

    def _attach(self):
        """Attaches the functions of an epilogue that came out of a pickle."""
        e = self.epilogue
        for name, function in e.functions.items():
            if not getattr(e.raw, name) and not getattr(e.raw, "cuda_" + name):
                e.attach(name, function, self.problem.raw, self._device)

    def like(self, problem: Union[str, Problem]) -> "Plan":
        """A plan for another batch or input size that shares this plan's packed weights."""
        other = Plan.__new__(Plan)
        other.__dict__.update(self.__dict__, problem=Problem(problem), layout=None, order=None, _handle=C.c_void_p(),
                              _queued=False, _repeats={})
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
        if not getattr(self, "_handle", None):
            return
        if self._queued:
            lib.hk_gpu_sync(None)  # a plan is destroyed only when nothing of it is queued
        lib.hk_plan_destroy(self._handle)

    @property
    def decision(self) -> str:
        """The decision as text; the option `decision` reads it."""
        return text("hk_plan_decision", self._handle)

    @property
    def error_factor(self) -> float:
        """0: exact on integers. Else errors stay under it * gk * eps * sum|f| * the largest |x| of the image."""
        return lib.hk_plan_error_factor(self._handle)

    @property
    def symbols(self) -> Dict[str, Union[int, float]]:
        """The symbol table: sizes, GEMM sizes, tiles."""
        table: Dict[str, Union[int, float]] = {}
        name, value = C.c_char_p(), C.c_double()
        while lib.hk_plan_symbol(self._handle, len(table), C.byref(name), C.byref(value)) == _abi.OK:
            number = value.value
            table[(name.value or b"").decode()] = int(number) if number == int(number) else number
        return table

    def __str__(self) -> str:
        return text("hk_plan_print", self._handle)

    def __repr__(self) -> str:
        epilogue, options = str(self.epilogue), "".join(f", {k}={v!r}" for k, v in self.options.items())
        return (f"Plan({str(self.problem)!r}" + (f", {epilogue!r}" if epilogue not in ("", "none") else "")
                + (", device='cuda'" if self._device == _abi.CUDA else "") + options + ")")

    def _description(self):
        return self.problem, self.device, self.options, self.layout, self.order

    def _values(self):
        """The vectors and zero points, on the host."""
        found = dict(self._vectors) if self._f_zero is None else dict(self._vectors, f_zero=self._f_zero)
        return {name: fetched(values, name) for name, values in found.items()}

    def _own(self, name, values):
        """The plan's own copy of a vector on the host; one on a device stays there."""
        if self._device == _abi.CUDA and on_device(values):
            return values
        return np.array(host_values(values, name))

    def __eq__(self, other: object) -> bool:
        """Whether both have one description: problem, epilogue, vectors, options, layout. Filters are not compared."""
        if not isinstance(other, Plan):
            return NotImplemented
        mine, yours = self._values(), other._values()
        return self._description() == other._description() and self.epilogue.key() == other.epilogue.key() and \
            mine.keys() == yours.keys() and all(np.array_equal(mine[name], yours[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((str(self.problem), str(self.epilogue), self.device))

    def __reduce__(self):
        return _restored, (self._description(), self.epilogue.bare(), self._values(), self._given - {"f"})

def _restored(description, epilogue, values, held):
    """A plan out of its pickle."""
    problem, device, options, layout, order = description
    f_zero = values.pop("f_zero", None)
    epilogue.vectors = values
    plan = Plan(problem, epilogue, device=device, f_zero=f_zero, **{name: values[name] for name in held}, **options)
    plan.layout, plan.order = layout, order
    return plan


@explicit(How)
def candidates(problem: Union[str, Problem], epilogue: Union[str, Epilogue, None] = None, *,
               device: Optional[str] = None, **options: Unpack[How]) -> List[Dict[str, Any]]:
    """Every decision the planner would consider, best first, then the refused: a list of dicts with decision, refusal
    (None when usable), predicted_s and workspace_bytes.

    >>> [c["decision"] for c in candidates("1d_n1_c1_i5_k1_w3_f64") if c["decision"] == "ref"]
    ['ref']
    """
    problem = Problem(problem)
    epilogue = Epilogue(epilogue) if epilogue is None or isinstance(epilogue, str) else epilogue
    found = []

    @_abi.CandidateFn
    def visit(_context, candidate):
        c = candidate.contents
        found.append({"decision": c.decision.decode(), "refusal": c.refusal.decode() if c.refusal else None,
                      "predicted_s": c.predicted_s, "workspace_bytes": c.workspace_bytes})

    call("hk_plan_candidates", problem.raw, epilogue.raw, make_options(device_of(device, None), **options), visit, None)
    return found
