"""NKI's depthwise_conv1d_implicit_gemm: the same signature, every argument with a meaning."""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np  # noqa: F401  (the example of the docstring)

from .._arguments import integers
from .._array import NAMES, intake
from .._conv import conv, plan
from .._native import invalid
from .._plan import Plan
from .._words import Array


def _permutation(perm, what):
    perm = tuple(range(4)) if perm is None else integers(perm, what)
    if sorted(perm) != [0, 1, 2, 3]:
        raise invalid(f"{what} is {perm}; a permutation of 0, 1, 2, 3 is required")
    return perm


def _words(img_ref, padding, stride, rhs_dilation, lhs_dilation, feature_group_count, batch_group_count, in_perm,
           kern_perm, out_perm):
    """The arguments as conv() takes them."""
    dims = (_permutation(in_perm, "in_perm"), _permutation(kern_perm, "kern_perm"), _permutation(out_perm, "out_perm"))
    return dict(window_strides=stride, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
                dimension_numbers=dims, feature_group_count=feature_group_count, batch_group_count=batch_group_count,
                preferred_element_type=NAMES[intake(img_ref, "img_ref").type])


def depthwise_conv1d_implicit_gemm(img_ref: Array, filter_ref: Array, padding: Sequence = ((0, 0), (0, 0)),
                                   stride: Sequence[int] = (1, 1), rhs_dilation: Sequence[int] = (1, 1),
                                   lhs_dilation: Sequence[int] = (1, 1), feature_group_count: int = 1,
                                   batch_group_count: int = 1, in_perm: Optional[Sequence[int]] = None,
                                   kern_perm: Optional[Sequence[int]] = None, out_perm: Optional[Sequence[int]] = None,
                                   *, out: Optional[Array] = None, threads: Optional[int] = None) -> Any:
    """Convolution of img_ref (N, C, H, W) by filter_ref (O, I, H, W) into (N, K, P, Q), of img_ref's type, framework
    and device.

    perm[i] is the array axis that holds logical axis i of (N, C, H, W), (O, I, H, W) and (N, K, P, Q). Depthwise is
    feature_group_count = C with a filter of (C, 1, 1, S); any other grouping works too. As XLA's conv_general_dilated.

    >>> img = np.arange(8, dtype="f4").reshape(1, 2, 1, 4)
    >>> depthwise_conv1d_implicit_gemm(img, np.ones((2, 1, 1, 3), "f4"), feature_group_count=2).tolist()
    [[[[3.0, 6.0]], [[15.0, 18.0]]]]
    """
    words = _words(img_ref, padding, stride, rhs_dilation, lhs_dilation, feature_group_count, batch_group_count,
                   in_perm, kern_perm, out_perm)
    return conv(img_ref, filter_ref, out=out, threads=threads, **words)


def depthwise_conv1d_plan(img_ref: Array, filter_ref: Array, padding: Sequence = ((0, 0), (0, 0)),
                          stride: Sequence[int] = (1, 1), rhs_dilation: Sequence[int] = (1, 1),
                          lhs_dilation: Sequence[int] = (1, 1), feature_group_count: int = 1,
                          batch_group_count: int = 1, in_perm: Optional[Sequence[int]] = None,
                          kern_perm: Optional[Sequence[int]] = None, out_perm: Optional[Sequence[int]] = None, *,
                          threads: Optional[int] = None) -> Plan:
    """The Plan of depthwise_conv1d_implicit_gemm with the same arguments. It keeps the filter: plan(img), or
    plan(img, out=y), for images that lie as img_ref does."""
    words = _words(img_ref, padding, stride, rhs_dilation, lhs_dilation, feature_group_count, batch_group_count,
                   in_perm, kern_perm, out_perm)
    return plan(img_ref, filter_ref, threads=threads, **words)
