"""Gradients of conv(): each is a convolution of the same algebra, derived by the library and run on views."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

from . import _abi
from ._arguments import integers
from ._array import NAMES, Tensor, compute_type, intake, numpy_view, together
from ._dlpack import dense
from ._epilogue import Epilogue
from ._geometry import dimension_numbers as read_dimension_numbers
from ._geometry import forward, geometry, output_shape, place, place_all
from ._memory import beside
from ._native import call, invalid
from ._problem import Problem
from ._repeat import repeatable
from ._request import output_of, planned, y_type_for
from ._words import Array, How, explicit, split

if TYPE_CHECKING:
    from typing_extensions import Unpack

Numbers = Union[int, Sequence[int]]


def _given_dy(problem, dims, dy):
    """Checks dy's shape against the forward problem's output."""
    shape = output_shape(problem, dims.y)
    if dy.shape != shape:
        raise invalid(f"dy has shape {dy.shape}; the convolution's output has {shape}")


def _lay_dy(strides, raw, dy, axes, swapped):
    """Lays dy in a derived problem. The forward problem keeps a dense y, whose elements must be distinct; dy is only
    read, so it may overlap itself (a broadcast gradient). For the filter's gradient k is its outer axis, n its
    channel."""
    groups = max(raw.feature_groups, raw.batch_groups, 1)
    place(strides, dy, axes, raw.k // groups, 1)
    if swapped:
        strides.outer, strides.channel = strides.channel, strides.outer


def _target(out, shape, dtype, dy, what):
    """The tensor of the gradient that is computed: out, or a new one beside dy."""
    out = output_of(out, dtype)
    hk_type = y_type_for(out, dtype, dy.type)
    if out is None:
        axes = tuple(range(len(shape)))
        return intake(beside(dy).empty(tuple(shape), hk_type, axes), "out", NAMES[hk_type])
    if out.shape != tuple(shape):
        raise invalid(f"out has shape {out.shape}; {what} has {tuple(shape)}")
    return out


def input_problem(geom, dx, f, dy):
    """The problem whose x is dy, f is f and y is dx."""
    problem = forward(geom, dx.shape, dx.type, f.shape, f.type, dy.type)
    _given_dy(problem, geom.dims, dy)
    place_all(problem, geom.dims, x=dx, f=f)
    grad = problem.grad_input()
    _lay_dy(grad.raw.x, problem.raw, dy, geom.dims.y, swapped=False)
    grad.raw.x_type = dy.type
    return grad


def filter_problem(geom, x, df, dy):
    """The problem whose x is x, f is dy and y is df; None where dy is empty: then df is zero, and the library has no
    problem without a window."""
    problem = forward(geom, x.shape, x.type, df.shape, df.type, dy.type)
    _given_dy(problem, geom.dims, dy)
    if 0 in dy.shape:
        return None
    place_all(problem, geom.dims, x=x, f=df)
    grad = problem.grad_filter()
    _lay_dy(grad.raw.f, problem.raw, dy, geom.dims.y, swapped=True)
    grad.raw.f_type = dy.type
    return grad


def _run(problem, x, f, y, fresh, options):
    """Runs a derived problem. fresh: y was made here."""
    plan = planned(x, problem, Epilogue(), None, split(options, How)[0])
    return plan._run(x, f, y, None, None, None, fresh=fresh)


@repeatable
@explicit(How)
def conv_grad_input(dy: Array, f: Array, x_shape: Sequence[int], window_strides: Numbers = 1,
                    padding: Union[str, int, Sequence] = "VALID", lhs_dilation: Numbers = 1, rhs_dilation: Numbers = 1,
                    dimension_numbers: Union[str, Sequence, None] = None, feature_group_count: int = 1,
                    batch_group_count: int = 1, *, reverse: Union[bool, Sequence[bool]] = False,
                    out: Optional[Array] = None, out_dtype: object = None, dy_dtype: object = None,
                    f_dtype: object = None, **options: Unpack[How]) -> Any:
    """The gradient of conv() with respect to x, which has x_shape; other arguments as given to conv().

    >>> conv_grad_input(np.ones((1, 1, 3), "f4"), np.ones((1, 1, 3), "f4"), (1, 1, 5)).tolist()
    [[[1.0, 2.0, 3.0, 2.0, 1.0]]]
    """
    dy, f, x_shape = intake(dy, "dy", dy_dtype), intake(f, "f", f_dtype), integers(x_shape, "x_shape")
    geom = geometry(len(x_shape) - 2, window_strides, padding, lhs_dilation, rhs_dilation, reverse,
                    feature_group_count, batch_group_count, dimension_numbers)
    dx = _target(out, x_shape, out_dtype, dy, "x")
    together(dy, f=f, out=dx)
    return _run(input_problem(geom, dx, f, dy), dy, f, dx, out is None, options)


@repeatable
@explicit(How)
def conv_grad_filter(x: Array, dy: Array, f_shape: Sequence[int], window_strides: Numbers = 1,
                     padding: Union[str, int, Sequence] = "VALID", lhs_dilation: Numbers = 1,
                     rhs_dilation: Numbers = 1, dimension_numbers: Union[str, Sequence, None] = None,
                     feature_group_count: int = 1, batch_group_count: int = 1, *,
                     reverse: Union[bool, Sequence[bool]] = False, out: Optional[Array] = None,
                     out_dtype: object = None, x_dtype: object = None, dy_dtype: object = None,
                     **options: Unpack[How]) -> Any:
    """The gradient of conv() with respect to f, which has f_shape; other arguments as given to conv().

    >>> conv_grad_filter(np.arange(5, dtype="f4").reshape(1, 1, 5), np.ones((1, 1, 3), "f4"), (1, 1, 3)).tolist()
    [[[3.0, 6.0, 9.0]]]
    """
    x, dy, f_shape = intake(x, "x", x_dtype), intake(dy, "dy", dy_dtype), integers(f_shape, "f_shape")
    geom = geometry(len(f_shape) - 2, window_strides, padding, lhs_dilation, rhs_dilation, reverse,
                    feature_group_count, batch_group_count, dimension_numbers)
    df = _target(out, f_shape, out_dtype, dy, "f")
    together(x, dy=dy, out=df)
    problem = filter_problem(geom, x, df, dy)
    if problem is None:
        df.owner[...] = 0
        return df.owner
    return _run(problem, x, dy, df, out is None, options)


def conv_grad_bias(dy: Array, dimension_numbers: Union[str, Sequence, None] = None, dy_dtype: object = None) -> Any:
    """The gradient of the bias: dy summed over batch and space, one f32 (f64 for f64) per channel.

    >>> conv_grad_bias(np.ones((2, 3, 5), "f4")).tolist()
    [10.0, 10.0, 10.0]
    """
    dy = intake(dy, "dy", dy_dtype)
    rank = len(dy.shape) - 2
    axes = read_dimension_numbers(dimension_numbers, rank).y
    result = compute_type(dy.type, dy.type, dy.type)
    if dy.device == _abi.CUDA:
        return _summed(dy, axes, result)
    home = beside(dy)
    if any(s == 0 and n > 1 for s, n in zip(dy.strides, dy.shape)):  # hk_grad_bias takes distinct elements
        copy = np.ascontiguousarray(numpy_view(dy))
        dy = dy._replace(pointer=copy.ctypes.data, strides=dense(dy.shape), owner=copy)
    n, k, *spatial = [dy.shape[a] for a in axes]
    problem = Problem()
    raw = problem.raw
    raw.rank, raw.x_type, raw.f_type, raw.y_type = rank, dy.type, dy.type, dy.type
    raw.n, raw.c, raw.k, raw.feature_groups, raw.batch_groups = n, 1, k, 1, 1
    for i, size in enumerate(spatial):
        raw.in_[i], raw.window[i], raw.stride[i], raw.dilation[i], raw.in_dilation[i] = size, 1, 1, 1, 1
    call("hk_problem_dense", raw, _abi.CHANNELS_FIRST)
    place(raw.y, dy, axes, k, 1)
    db = home.empty((k,), result, (0,))
    call("hk_grad_bias", raw, dy.pointer, intake(db, "out").pointer)
    return db


def _summed(dy, axes, result):
    """The sums on the device, where hk_grad_bias does not reach: the filter's gradient of a 1x1 window over a single 1
    that is broadcast to one channel of dy's size."""
    home = beside(dy)
    shape = [dy.shape[a] for a in axes]
    one = intake(home.one(dy.type), "one")
    ones = Tensor(one.pointer, (shape[0], 1, *shape[2:]), (0,) * len(shape), dy.type, dy.device, one.owner, dy.index)
    logical = dy._replace(shape=tuple(shape), strides=tuple(dy.strides[a] for a in axes))
    df = home.empty((shape[1],) + (1,) * (len(shape) - 1), result, tuple(range(len(shape))))
    return conv_grad_filter(ones, logical, (shape[1],) + (1,) * (len(shape) - 1), out=df).reshape(shape[1])
