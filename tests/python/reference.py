"""The definition of the convolution in numpy, written from the formulas and not from the library's code.

Output position p and tap s read i = p*stride + s*dilation - lo, which counts only if 0 <= i < W' and the input dilation
divides i, with W' = in_dilation*(W-1)+1 (0 for an empty axis).
"""
import itertools

import numpy as np


def output_size(size, window, stride, lo, hi, dilation, in_dilation):
    span = in_dilation * (size - 1) + 1 if size else 0
    reach = dilation * (window - 1) + 1
    if span + lo + hi < reach or span + lo + hi == 0:
        return 0
    return (span + lo + hi - reach) // stride + 1


def correlate(x, f, stride, pads, in_dilation, dilation, feature_groups=1, batch_groups=1, reverse=None, fill=0):
    """y (N, K, ..) of x (N, C, ..) and f (K, C/groups, ..) in x's type; `fill` is what padding holds."""
    rank = x.ndim - 2
    n, c = x.shape[:2]
    k, inner = f.shape[:2]
    groups = max(feature_groups, batch_groups)
    if reverse:
        f = f[(slice(None), slice(None)) + tuple(slice(None, None, -1 if r else 1) for r in reverse)]
    out = [output_size(x.shape[2 + d], f.shape[2 + d], stride[d], *pads[d], dilation[d], in_dilation[d])
           for d in range(rank)]
    y = np.zeros((n // batch_groups, k, *out), x.dtype)
    for tap in itertools.product(*[range(s) for s in f.shape[2:]]):
        picked, held = x, np.ones((1,) * rank, bool)
        for d in range(rank):
            i = np.arange(out[d]) * stride[d] + tap[d] * dilation[d] - pads[d][0]
            inside = (i >= 0) & (i < in_dilation[d] * (x.shape[2 + d] - 1) + 1) & (i % in_dilation[d] == 0)
            if x.shape[2 + d] == 0:
                inside = np.zeros(out[d], bool)
                picked = np.zeros(picked.shape[:2 + d] + (out[d],) + picked.shape[3 + d:], x.dtype)
            else:
                picked = np.take(picked, np.where(inside, i // in_dilation[d], 0), axis=2 + d)
            held = held & inside.reshape([-1 if e == d else 1 for e in range(rank)])
        picked = np.where(held, picked, np.asarray(fill, x.dtype))
        for g in range(groups):
            ks = slice(g * (k // groups), (g + 1) * (k // groups))
            part = picked[g * (n // groups):(g + 1) * (n // groups)] if batch_groups > 1 else \
                picked[:, g * inner:(g + 1) * inner]
            y[:, ks] += np.einsum("nc...,kc->nk...", part, f[(ks, slice(None)) + tap])
    return y


def transpose(array, axes):
    """The array whose logical axes lie at `axes`, as a logical one (N, C, ..): a view."""
    return np.transpose(array, axes)


def scatter_axes(logical, axes):
    """A logical array (N, C, ..) laid out so that logical axis i lies at axes[i]: a view."""
    return np.transpose(logical, np.argsort(axes))
