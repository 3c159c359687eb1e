"""Convolutions with PyTorch's arguments, by position or by torch's names (x is also `input`): channels first in shape,
any strides in memory, batch axis optional.

They refuse what torch refuses: a window larger than the padded input, negative padding, "same" with a stride.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np  # noqa: F401  (the examples of the docstrings)

from . import _abi
from ._arguments import also_named, integer, per_axis
from ._array import Tensor, default_output_type, intake, with_axis
from ._geometry import dimension_numbers, pad_pairs
from ._native import call, invalid
from ._problem import Problem, set_axes
from ._repeat import repeatable
from ._request import Request, output_of, residual_of, run, y_type_for, zeros
from ._words import Array, Finish, How, Result, Tensors, explicit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    class Words(Result, Finish, Tensors, How):
        """All keywords of conv2d()."""

Numbers = Union[int, Sequence[int]]


def _desc(rank, x, f, y_type, c, k, groups, stride, padding, dilation):
    """hk_conv_desc of torch's arguments."""
    desc = _abi.ConvDesc(rank=rank, layout=_abi.CHANNELS_FIRST, x_type=x.type, f_type=f.type, y_type=y_type,
                         n=x.shape[0], c=c, k=k, groups=groups)
    for name, values in (("stride", stride), ("dilation", dilation)):
        if min(values) < 1:
            raise invalid(f"{name} is {values}; at least 1 is required")
        set_axes(getattr(desc, name), values)
    set_axes(desc.in_, x.shape[2:])
    set_axes(desc.window, f.shape[2:])
    name, pairs = pad_pairs(padding, rank)
    desc.padding = _abi.PADDING[name]
    if pairs is not None:
        set_axes(desc.pad_lo, [lo for lo, _ in pairs])
        set_axes(desc.pad_hi, [hi for _, hi in pairs])
    elif name in ("same", "same_lower") and max(stride) > 1:
        raise invalid(f"padding is {padding!r} and stride {stride}; \"same\" needs stride 1")
    return desc


class _Given:
    """The tensors of a call, x, out and residual with a batch axis where they lack it."""

    def __init__(self, rank, what, x, weight, out, words):
        x, self.f = intake(x, "x", words.get("x_dtype")), intake(weight, "weight", words.get("f_dtype"))
        if len(x.shape) not in (rank + 1, rank + 2):
            raise invalid(f"x has {len(x.shape)} dimensions; {what} needs {rank + 2}, or {rank + 1} without a batch")
        out = output_of(out, words.get("out_dtype"))
        self.y_type = y_type_for(out, words.get("out_dtype"), default_output_type(x.type, self.f.type))
        residual = residual_of(words, self.y_type)
        self.added = len(x.shape) == rank + 1
        self.x, self.out, self.residual = (with_axis(t, 0) if self.added and isinstance(t, Tensor) else t
                                           for t in (x, out, residual))

    def run(self, problem, words, bias, keep=None, lay_filter=None):
        request = Request(problem, dimension_numbers(None, problem.raw.rank), self.x, self.f, self.out, self.residual,
                          zeros(problem.raw, words), lay_filter, self.added)
        y = run(request, dict(words, bias=bias), keep)
        return y[0] if self.added and not keep and self.out is None and y is not None else y


def convolve(rank, x, weight, bias, stride, padding, dilation, groups, out, words, keep=None):
    """convNd; keep as in run()."""
    groups = integer(groups, "groups", least=1)
    given = _Given(rank, f"conv{rank}d", x, weight, out, words)
    x, f = given.x, given.f
    if len(f.shape) != rank + 2:
        raise invalid(f"weight has {len(f.shape)} dimensions; conv{rank}d needs {rank + 2}")
    desc = _desc(rank, x, f, given.y_type, x.shape[1], f.shape[0], groups, per_axis(stride, rank, "stride"), padding,
                 per_axis(dilation, rank, "dilation"))
    if f.shape[1] * groups != x.shape[1]:
        raise invalid(f"weight has {f.shape[1]} input channels in {groups} groups; x has {x.shape[1]} channels")
    problem = Problem()
    call("hk_problem_conv", problem.raw, desc)
    return given.run(problem, words, bias, keep)


def transposed(rank, x, weight, bias, stride, padding, output_padding, groups, dilation, out, words):
    """conv_transposeNd."""
    groups = integer(groups, "groups", least=1)
    given = _Given(rank, f"conv_transpose{rank}d", x, weight, out, words)
    x, f = given.x, given.f
    if len(f.shape) != rank + 2 or f.shape[0] != x.shape[1]:
        raise invalid(f"weight has shape {f.shape}; {rank + 2} dimensions, the first of x's {x.shape[1]} channels, are "
                      "required")
    desc = _desc(rank, x, f, given.y_type, x.shape[1], f.shape[1] * groups, groups, per_axis(stride, rank, "stride"),
                 padding, per_axis(dilation, rank, "dilation"))
    set_axes(desc.output_padding, per_axis(output_padding, rank, "output_padding"))
    problem = Problem()
    call("hk_problem_conv_transpose", problem.raw, desc)

    def lay_filter(raw, weight):
        # weight[c][k in group][..] read as f[k][c][..]; the problem's reversal says which way its windows run
        raw.f.offset, raw.f.outer, raw.f.channel = 0, weight.strides[1], weight.strides[0]
        raw.f.group = weight.strides[0] * (raw.c // groups)
        set_axes(raw.f.at, weight.strides[2:])

    return given.run(problem, words, bias, lay_filter=lay_filter)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv1d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
           padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, groups: int = 1, *,
           out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv1d; x (N, C, L) or (C, L), weight (K, C/groups, S). Keywords as of conv().

    >>> conv1d(np.ones((2, 5), "f4"), np.ones((1, 2, 3), "f4"), padding=1).tolist()
    [[4.0, 6.0, 6.0, 6.0, 4.0]]
    """
    return convolve(1, x, weight, bias, stride, padding, dilation, groups, out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv2d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
           padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, groups: int = 1, *,
           out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv2d; x (N, C, H, W) or (C, H, W), weight (K, C/groups, R, S). Keywords as of conv().

    x may be a numpy array, a torch tensor on the CPU or a CUDA device, or anything with __dlpack__; the result is
    of the same kind, on the same device, and channels last in memory where a torch x is.

    >>> conv2d(np.ones((1, 1, 2, 2), "f4"), np.ones((1, 1, 3, 3), "f4"), [-3], padding=1, act="relu").tolist()
    [[[[1.0, 1.0], [1.0, 1.0]]]]
    """
    return convolve(2, x, weight, bias, stride, padding, dilation, groups, out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv3d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
           padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, groups: int = 1, *,
           out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv3d; x (N, C, D, H, W) or (C, D, H, W), weight (K, C/groups, Q, R, S).

    >>> conv3d(np.ones((1, 2, 4, 4, 4), "f4"), np.ones((3, 2, 3, 3, 3), "f4"), stride=2).shape
    (1, 3, 1, 1, 1)
    """
    return convolve(3, x, weight, bias, stride, padding, dilation, groups, out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def depthwise_conv1d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
                     padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, *, out: Optional[Array] = None,
                     **words: Unpack[Words]) -> Any:
    """conv1d with one group per channel: x (N, C, L), weight (C*multiplier, 1, S), or (C, S) for multiplier 1.

    >>> depthwise_conv1d(np.ones((1, 2, 4), "f4"), np.array([[1, 1], [2, 2]], "f4"))[0].tolist()
    [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]
    """
    x, weight = intake(x, "x", words.get("x_dtype")), intake(weight, "weight", words.get("f_dtype"))
    if len(weight.shape) == 2:
        weight = with_axis(weight, 1)
    channels = x.shape[-2] if len(x.shape) >= 2 else 0
    return convolve(1, x, weight, bias, stride, padding, dilation, max(channels, 1), out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv_transpose1d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
                     padding: Union[int, Sequence] = 0, output_padding: Numbers = 0, groups: int = 1,
                     dilation: Numbers = 1, *, out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv_transpose1d; weight (C, K/groups, S). padding may also be (lo, hi) pairs.

    >>> conv_transpose1d(np.ones((1, 1, 2), "f4"), np.ones((1, 1, 3), "f4"), stride=2).tolist()
    [[[1.0, 1.0, 2.0, 1.0, 1.0]]]
    """
    return transposed(1, x, weight, bias, stride, padding, output_padding, groups, dilation, out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv_transpose2d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
                     padding: Union[int, Sequence] = 0, output_padding: Numbers = 0, groups: int = 1,
                     dilation: Numbers = 1, *, out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv_transpose2d; weight (C, K/groups, R, S).

    >>> conv_transpose2d(np.ones((1, 2, 3, 3), "f4"), np.ones((2, 5, 2, 2), "f4"), stride=2).shape
    (1, 5, 6, 6)
    """
    return transposed(2, x, weight, bias, stride, padding, output_padding, groups, dilation, out, words)


@repeatable
@also_named(input="x")
@explicit(Result, Finish, Tensors, How)
def conv_transpose3d(x: Array, weight: Array, bias: Optional[Array] = None, stride: Numbers = 1,
                     padding: Union[int, Sequence] = 0, output_padding: Numbers = 0, groups: int = 1,
                     dilation: Numbers = 1, *, out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """torch.nn.functional.conv_transpose3d; weight (C, K/groups, Q, R, S).

    >>> conv_transpose3d(np.ones((1, 1, 2, 2, 2), "f4"), np.ones((1, 1, 2, 2, 2), "f4"), stride=2).shape
    (1, 1, 4, 4, 4)
    """
    return transposed(3, x, weight, bias, stride, padding, output_padding, groups, dilation, out, words)
