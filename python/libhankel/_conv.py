"""Convolution in full generality, as XLA's conv_general_dilated describes it.

Arrays are read and written in place, on the host or on a CUDA device: any strides, also negative and zero ones,
are passed on as views.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np  # noqa: F401  (the examples of the docstrings)

from . import _abi
from ._arguments import also_named
from ._array import default_output_type, intake
from ._geometry import forward, geometry
from ._native import invalid
from ._plan import Plan
from ._repeat import repeatable
from ._request import Request, output_of, residual_of, run, y_type_for, zeros
from ._words import Array, Bias, Finish, How, Tensors, explicit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    class Words(Finish, Bias, Tensors, How):
        """All keywords of conv()."""


def _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
             batch_group_count, out_dtype, reverse, out, words):
    """The Request of conv()'s arguments."""
    x, f = intake(x, "x", words.get("x_dtype")), intake(f, "f", words.get("f_dtype"))
    rank = len(x.shape) - 2
    if not 1 <= rank <= _abi.MAX_RANK:
        raise invalid(f"x has {len(x.shape)} dimensions; 3 to {_abi.MAX_RANK + 2} are required")
    geom = geometry(rank, window_strides, padding, lhs_dilation, rhs_dilation, reverse, feature_group_count,
                    batch_group_count, dimension_numbers)
    out = output_of(out, out_dtype)
    y_type = y_type_for(out, out_dtype, default_output_type(x.type, f.type))
    problem = forward(geom, x.shape, x.type, f.shape, f.type, y_type)
    return Request(problem, geom.dims, x, f, out, residual_of(words, y_type), zeros(problem.raw, words))


@repeatable
@also_named(lhs="x", rhs="f")
@explicit(Finish, Bias, Tensors, How)
def conv(x: Array, f: Array, window_strides: Union[int, Sequence[int]] = 1,
         padding: Union[str, int, Sequence] = "VALID", lhs_dilation: Union[int, Sequence[int]] = 1,
         rhs_dilation: Union[int, Sequence[int]] = 1, dimension_numbers: Union[str, Sequence, None] = None,
         feature_group_count: int = 1, batch_group_count: int = 1, preferred_element_type: object = None, *,
         reverse: Union[bool, Sequence[bool]] = False, out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """Convolution (cross-correlation) with the arguments of jax.lax.conv_general_dilated, and more.

    x, f, out and residual are numpy arrays, torch tensors, or anything with __dlpack__ or __cuda_array_interface__; the
    result is of x's framework and on x's device (numpy for other host objects). Nothing is copied.

    padding: "VALID", "SAME", "SAME_LOWER", "CAUSAL", an integer, or (lo, hi) pairs; negative crops.
    dimension_numbers: ("NHWC", "HWIO", "NHWC"), "NHWC" alone, or tuples of axes (N, C, ..), (O, I, ..), (N, C, ..);
    None is channels first. preferred_element_type: type of the result (int8 gives s32, others x's own, by default).
    x_dtype, f_dtype: reinterpret equally wide elements, e.g. uint16 as "bf16". reverse: read the filter backwards.

    Epilogue: scale (one or K), bias (K), act ("relu", ("leaky", 0.1), ("clip", a, b), a function, a Function, or a
    whole epilogue's text: "presum:0.5+relu"), gate ("gated", "blended") with act2, slopes (of "prelu"), residual with
    beta and residual_order ("after", "before" act), user2, store. Functions get (position, values); they change values
    in place or return new ones; store owns the write. int8: x_zero, f_zero (one or K), y_zero.

    Options: threads, isa ("avx2", ..), workspace_limit (bytes), rigor ("estimate", "measure", "patient"), time_limit
    (seconds), denormals ("keep", "flush"), math ("fast_algorithms", "tf32", "split_f32"), decision (text), wisdom_only,
    forbid_fallback, batch_invariant, unaligned.

    >>> x = np.arange(8, dtype="f4").reshape(1, 1, 8)
    >>> conv(x, np.ones((1, 1, 3), "f4"), 2, "SAME", act="relu", bias=[-10]).tolist()
    [[[0.0, 0.0, 5.0, 3.0]]]
    """
    request = _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                       feature_group_count, batch_group_count, preferred_element_type, reverse, out, words)
    return run(request, words)


@also_named(lhs="x", rhs="f")
@explicit(Finish, Bias, Tensors, How)
def plan(x: Array, f: Array, window_strides: Union[int, Sequence[int]] = 1,
         padding: Union[str, int, Sequence] = "VALID", lhs_dilation: Union[int, Sequence[int]] = 1,
         rhs_dilation: Union[int, Sequence[int]] = 1, dimension_numbers: Union[str, Sequence, None] = None,
         feature_group_count: int = 1, batch_group_count: int = 1, preferred_element_type: object = None, *,
         reverse: Union[bool, Sequence[bool]] = False, out: Optional[Array] = None, hold_weights: bool = True,
         **words: Unpack[Words]) -> Plan:
    """The Plan of conv() with the same arguments, for x's device. It holds f, scale and bias; call it with arrays that
    lie as x (and residual) did: plan(x), plan(x, out=y), plan(x, residual=r). residual=True stands for one that lies as
    y does. With hold_weights=False f comes with each call.

    >>> x = np.arange(8, dtype="f4").reshape(1, 1, 8)
    >>> p = plan(x, np.ones((1, 1, 3), "f4"), bias=[1])
    >>> p(x)[0, 0, :3].tolist(), p.epilogue, p.device
    ([4.0, 7.0, 10.0], Epilogue('bias'), 'cpu')
    """
    request = _prepare(x, f, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                       feature_group_count, batch_group_count, preferred_element_type, reverse, out, words)
    return run(request, words, keep="weights" if hold_weights else "plan")
