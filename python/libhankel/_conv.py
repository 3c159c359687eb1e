"""Convolution in full generality, as XLA's conv_general_dilated describes it.

Arrays are read and written where they lie: any strides, also negative and zero ones, are passed on as views.
"""
import threading
from collections import OrderedDict

import numpy as np

from . import _abi
from ._arguments import also_named, integer
from ._array import NAMES, default_output_type, empty, intake
from ._epilogue import build, lay_residual
from ._native import invalid
from ._plan import OPTION_NAMES, Plan
from ._problem import dense, forward, geometry, output_shape, output_type, place_all

_EPILOGUE = ("scale", "bias", "act", "act2", "gate", "slopes", "beta", "residual_order", "user2", "store")

_cache = OrderedDict()
_cache_lock = threading.Lock()
_CACHE_PLANS = 128


def split_keywords(keywords):
    """(epilogue keywords, option keywords); anything else is a TypeError."""
    epilogue = {k: keywords.pop(k) for k in _EPILOGUE if k in keywords}
    options = {k: keywords.pop(k) for k in OPTION_NAMES if k in keywords}
    if keywords:
        raise TypeError(f"unknown argument {sorted(keywords)[0]!r}")
    return epilogue, options


def planned(problem, epilogue, f_zero, options):
    """A plan whose weights come at execute; the same request again finds the same plan."""
    if epilogue.callbacks or f_zero is not None or "slopes" in epilogue.vectors:
        return Plan(problem, epilogue, f_zero=f_zero, **options)
    key = (bytes(problem.raw), bytes(epilogue.raw), repr(sorted(options.items())))
    with _cache_lock:
        plan = _cache.get(key)
        if plan is not None:
            _cache.move_to_end(key)
            return plan
    plan = Plan(problem, epilogue, **options)
    with _cache_lock:
        _cache[key] = plan
        while len(_cache) > _CACHE_PLANS:
            _cache.popitem(last=False)
    return plan


class Laid:
    """Strides without memory: where an output that is yet to be made will lie."""

    def __init__(self, shape):
        self.strides = dense(shape)


def y_type_for(out, out_dtype, fallback):
    """hk_type of y: asked for by name, else out's own, else the default."""
    if out_dtype is None and out is not None:
        return intake(out, "out", writable=True).type
    return output_type(out_dtype, fallback)


def _check_shapes(shape, batch_added, **arrays):
    """Refuses arrays of another shape than y's. A batch axis that the package added is left out of the sentence."""
    start = 1 if batch_added else 0
    for name, array in arrays.items():
        if array is not None and np.shape(array) != shape:
            raise invalid(f"{name} has shape {np.shape(array)[start:]}; {shape[start:]} is required")


def run(problem, dims, x, f, keywords, out=None, residual=None, f_zero=0, lay_filter=None, keep=None,
        batch_added=False):
    """Lays a forward problem as the arrays lie and computes it. keep="weights" returns the Plan instead, which holds f,
    scale and bias; keep="plan" one that takes them at each call."""
    epilogue_words, options = split_keywords(keywords)
    raw = problem.raw
    epilogue = build(raw, has_residual=residual is not None, **epilogue_words)
    shape = output_shape(problem, dims.y, epilogue.gated)
    per_channel_zero = f_zero if np.ndim(f_zero) else None
    raw.f_zero = 0 if np.ndim(f_zero) else integer(f_zero, "f_zero", 32)
    y_name = NAMES[raw.y_type]
    y = Laid(shape) if out is None else intake(out, "out", y_name, writable=True)
    _check_shapes(shape, batch_added, out=out, residual=residual)
    place_all(problem, dims, x, None if lay_filter else f, y)
    if lay_filter:
        lay_filter(raw, f)
    layout = {"x": (x.shape, x.strides), "f": (f.shape, f.strides), "out": (shape, y.strides)}
    if residual is not None:
        residual = intake(residual, "residual", y_name)
        lay_residual(epilogue, raw, residual, dims.y)
        layout["residual"] = (residual.shape, residual.strides)
        residual = residual.owner
    vectors = {name: epilogue.vectors.get(name) for name in ("scale", "bias")}
    if keep:
        weights = dict(f=f.owner, **vectors) if keep == "weights" else {}
        plan = Plan(problem, epilogue, f_zero=per_channel_zero, **weights, **options)
        plan.layout = layout
        return plan
    plan = planned(problem, epilogue, per_channel_zero, options)
    if out is None and not epilogue.raw.store:
        out = empty(shape, raw.y_type)
    return plan.execute(x.owner, f.owner, out, residual, **vectors)


def _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
             batch_group_count, reverse, out, x_dtype, f_dtype, out_dtype, x_zero, y_zero):
    """(problem, dims, x, f) of conv()'s arguments."""
    x, f = intake(x, "x", x_dtype), intake(f, "f", f_dtype)
    rank = len(x.shape) - 2
    if not 1 <= rank <= _abi.MAX_RANK:
        raise invalid(f"x has {len(x.shape)} dimensions; 3 to {_abi.MAX_RANK + 2} are required")
    geom = geometry(rank, window_strides, padding, lhs_dilation, rhs_dilation, reverse, feature_group_count,
                    batch_group_count, dimension_numbers)
    y_type = y_type_for(out, out_dtype, default_output_type(x.type, f.type))
    problem = forward(geom, x.shape, x.type, f.shape, f.type, y_type)
    problem.raw.x_zero, problem.raw.y_zero = integer(x_zero, "x_zero", 32), integer(y_zero, "y_zero", 32)
    return problem, geom.dims, x, f


@also_named(lhs="x", rhs="f")
def conv(x, f, window_strides=1, padding="VALID", lhs_dilation=1, rhs_dilation=1, dimension_numbers=None,
         feature_group_count=1, batch_group_count=1, preferred_element_type=None, *, reverse=False, out=None,
         x_dtype=None, f_dtype=None, x_zero=0, f_zero=0, y_zero=0, residual=None, **keywords):
    """Convolution (cross-correlation) with the arguments of jax.lax.conv_general_dilated, and more.

    padding: "VALID", "SAME", "SAME_LOWER", "CAUSAL", an integer, or (lo, hi) pairs; negative crops.
    dimension_numbers: ("NHWC", "HWIO", "NHWC"), "NHWC" alone, or tuples of axes (N, C, ..), (O, I, ..), (N, C, ..);
    None is channels first. preferred_element_type: type of the result (int8 gives s32, others x's own, by default).
    x_dtype, f_dtype: reinterpret equally wide elements, e.g. uint16 as "bf16". reverse: read the filter backwards.

    Epilogue: scale (one or K), bias (K), act ("relu", ("leaky", 0.1), ("clip", a, b), a function, ..), gate ("gated",
    "blended") with act2, slopes (of "prelu"), residual with beta and residual_order ("after", "before" act), user2,
    store. Functions get (position, values); they change values in place or return new ones; store owns the write.
    int8: x_zero, f_zero (one or K), y_zero. Options: threads, isa, workspace_limit, rigor, decision, ..
    """
    problem, dims, x, f = _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                                   feature_group_count, batch_group_count, reverse, out, x_dtype, f_dtype,
                                   preferred_element_type, x_zero, y_zero)
    return run(problem, dims, x, f, keywords, out, residual, f_zero)


@also_named(lhs="x", rhs="f")
def plan(x, f, window_strides=1, padding="VALID", lhs_dilation=1, rhs_dilation=1, dimension_numbers=None,
         feature_group_count=1, batch_group_count=1, preferred_element_type=None, *, reverse=False, out=None,
         x_dtype=None, f_dtype=None, x_zero=0, f_zero=0, y_zero=0, residual=None, hold_weights=True, **keywords):
    """The Plan of conv() with the same arguments. It holds f, scale and bias; call it with arrays that lie as x (and
    residual) did: plan(x), plan(x, out=y), plan(x, residual=r). With hold_weights=False f comes with each call."""
    problem, dims, x, f = _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                                   feature_group_count, batch_group_count, reverse, out, x_dtype, f_dtype,
                                   preferred_element_type, x_zero, y_zero)
    return run(problem, dims, x, f, keywords, out, residual, f_zero, keep="weights" if hold_weights else "plan")
