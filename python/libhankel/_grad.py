"""Gradients of conv(): each is a convolution of the same algebra, derived by the library and run on views."""
import numpy as np

from . import _abi
from ._array import compute_dtype, empty, intake
from ._conv import Laid, planned, y_type_for
from ._epilogue import Epilogue
from ._native import call, invalid
from ._problem import dimension_numbers as read_dimension_numbers
from ._problem import Problem, forward, geometry, integers, output_shape, place, place_all


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


def _target(out, shape, dtype, fallback, what):
    """(hk_type, tensor or Laid, array) of the gradient that is computed."""
    hk_type = y_type_for(out, dtype, fallback)
    array = empty(shape, hk_type) if out is None else out
    if np.shape(array) != tuple(shape):
        raise invalid(f"out has shape {np.shape(array)}; {what} has {tuple(shape)}")
    return hk_type, Laid(shape) if out is None else intake(out, "out", None if dtype is None else dtype, True), array


def conv_grad_input(dy, f, x_shape, window_strides=1, padding="VALID", lhs_dilation=1, rhs_dilation=1,
                    dimension_numbers=None, feature_group_count=1, batch_group_count=1, *, reverse=False, out=None,
                    out_dtype=None, dy_dtype=None, f_dtype=None, **options):
    """The gradient of conv() with respect to x, which has x_shape; other arguments as given to conv()."""
    dy, f, x_shape = intake(dy, "dy", dy_dtype), intake(f, "f", f_dtype), integers(x_shape, "x_shape")
    geom = geometry(len(x_shape) - 2, window_strides, padding, lhs_dilation, rhs_dilation, reverse,
                    feature_group_count, batch_group_count, dimension_numbers)
    x_type, dx, out = _target(out, x_shape, out_dtype, dy.type, "x")
    problem = forward(geom, x_shape, x_type, f.shape, f.type, dy.type)
    _given_dy(problem, geom.dims, dy)
    place_all(problem, geom.dims, x=dx, f=f)
    grad = problem.grad_input()
    _lay_dy(grad.raw.x, problem.raw, dy, geom.dims.y, swapped=False)
    grad.raw.x_type = dy.type
    return planned(grad, Epilogue(), None, options).execute(dy.owner, f.owner, out)


def conv_grad_filter(x, dy, f_shape, window_strides=1, padding="VALID", lhs_dilation=1, rhs_dilation=1,
                     dimension_numbers=None, feature_group_count=1, batch_group_count=1, *, reverse=False, out=None,
                     out_dtype=None, x_dtype=None, dy_dtype=None, **options):
    """The gradient of conv() with respect to f, which has f_shape; other arguments as given to conv()."""
    x, dy, f_shape = intake(x, "x", x_dtype), intake(dy, "dy", dy_dtype), integers(f_shape, "f_shape")
    geom = geometry(len(f_shape) - 2, window_strides, padding, lhs_dilation, rhs_dilation, reverse,
                    feature_group_count, batch_group_count, dimension_numbers)
    f_type, df, out = _target(out, f_shape, out_dtype, dy.type, "f")
    problem = forward(geom, x.shape, x.type, f_shape, f_type, dy.type)
    _given_dy(problem, geom.dims, dy)
    if 0 in dy.shape:
        out[...] = 0  # nothing to add up; the library has no problem without a window
        return out
    place_all(problem, geom.dims, x=x, f=df)
    grad = problem.grad_filter()
    _lay_dy(grad.raw.f, problem.raw, dy, geom.dims.y, swapped=True)
    grad.raw.f_type = dy.type
    return planned(grad, Epilogue(), None, options).execute(x.owner, dy.owner, out)


def conv_grad_bias(dy, dimension_numbers=None, dy_dtype=None):
    """The gradient of the bias: dy summed over batch and space, one f32 (f64 for f64) a channel."""
    dy = intake(dy, "dy", dy_dtype)
    rank = len(dy.shape) - 2
    axes = read_dimension_numbers(dimension_numbers, rank).y
    if any(s == 0 and n > 1 for s, n in zip(dy.strides, dy.shape)):
        dy = intake(np.ascontiguousarray(dy.owner), "dy", dy_dtype)  # hk_grad_bias takes y's strides: distinct elements
    n, k, *spatial = [dy.shape[a] for a in axes]
    problem = Problem()
    raw = problem.raw
    raw.rank, raw.x_type, raw.f_type, raw.y_type = rank, dy.type, dy.type, dy.type
    raw.n, raw.c, raw.k, raw.feature_groups, raw.batch_groups = n, 1, k, 1, 1
    for i, size in enumerate(spatial):
        raw.in_[i], raw.window[i], raw.stride[i], raw.dilation[i], raw.in_dilation[i] = size, 1, 1, 1, 1
    call("hk_problem_dense", raw, _abi.CHANNELS_FIRST)
    place(raw.y, dy, axes, k, 1)
    db = np.empty(k, compute_dtype(raw))
    call("hk_grad_bias", raw, dy.pointer, db.ctypes.data)
    return db
